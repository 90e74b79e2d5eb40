"""Convert a llama2.c checkpoint (and its tokenizer.bin) to a folder that transformers opens.

A llama2.c file is a header of seven int32 (dim, hidden, layers, heads, key heads, vocabulary,
longest sequence; a negative vocabulary means that the output head is not tied) and then float32
tensors, each for all layers at once. Some distributions append tokenizer.bin to it.
"""

import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from headwise.core.errors import InputError, require
from headwise.core.files import appearing_folder, check_new_folder, read_bytes

_HEADER = struct.Struct("7i")


class Header(NamedTuple):
    """The seven numbers at a llama2.c file's beginning."""

    dim: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int
    length: int


def convert_llama2c(
    file: str | Path, folder: str | Path, tokenizer: str | Path | None = None
) -> Path:
    """Write `folder` with config.json, model.safetensors and, if there is one, the tokenizer.

    The tokenizer is the tokenizer.bin named, or what follows the weights in `file`, if anything.
    """
    file, folder = Path(file), Path(folder)
    check_new_folder(folder)
    data = read_bytes(file)
    header, tied = _header(data, file)
    tensors, end = _tensors(data, header, tied, file)
    model = _model(header, tied, tensors)
    pieces = read_bytes(Path(tokenizer)) if tokenizer else data[end:]
    with appearing_folder(folder) as staging:
        model.save_pretrained(staging)
        if pieces:
            build_tokenizer(parse_tokenizer(pieces, header.vocabulary)).save_pretrained(staging)
    return folder


def _header(data: bytes, path: Path) -> tuple[Header, bool]:
    require(len(data) >= _HEADER.size, f"{path} is too short to be a llama2.c checkpoint")
    header = Header(*_HEADER.unpack_from(data))
    tied = header.vocabulary > 0
    header = header._replace(vocabulary=abs(header.vocabulary))
    plausible = (
        all(0 < value < 2**24 for value in header)
        and header.dim % header.heads == 0
        and header.heads % header.kv_heads == 0
        and (header.dim // header.heads) % 2 == 0
    )
    require(plausible, f"{path} is not a llama2.c checkpoint: its header reads {tuple(header)}")
    return header, tied


def _tensors(
    data: bytes, header: Header, tied: bool, path: Path
) -> tuple[dict[str, np.ndarray], int]:
    """The file's tensors by name, and where they end."""
    dim, hidden, layers = header.dim, header.hidden, header.layers
    head_dim = dim // header.heads
    kv_dim = head_dim * header.kv_heads
    shapes: list[tuple[str, tuple[int, ...]]] = [
        ("embedding", (header.vocabulary, dim)),
        ("attention_norm", (layers, dim)),
        ("q", (layers, dim, dim)),
        ("k", (layers, kv_dim, dim)),
        ("v", (layers, kv_dim, dim)),
        ("o", (layers, dim, dim)),
        ("mlp_norm", (layers, dim)),
        ("gate", (layers, hidden, dim)),
        ("down", (layers, dim, hidden)),
        ("up", (layers, hidden, dim)),
        ("final_norm", (dim,)),
        ("rope_cos", (header.length, head_dim // 2)),
        ("rope_sin", (header.length, head_dim // 2)),
    ]
    if not tied:
        shapes.append(("head", (header.vocabulary, dim)))
    needed = _HEADER.size + 4 * sum(int(np.prod(shape)) for _, shape in shapes)
    require(
        len(data) >= needed,
        f"{path} is truncated: its header asks for {needed:,} bytes, it has {len(data):,}",
    )
    tensors = {}
    offset = _HEADER.size
    for name, shape in shapes:
        count = int(np.prod(shape))
        tensors[name] = np.frombuffer(data, "<f4", count, offset).reshape(shape)
        offset += 4 * count
    require(
        all(bool(np.isfinite(tensor).all()) for tensor in tensors.values()),
        f"{path} is corrupted: some of its weights are not finite numbers",
    )
    return tensors, offset


def _model(header: Header, tied: bool, tensors: dict[str, np.ndarray]) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=header.vocabulary,
        hidden_size=header.dim,
        intermediate_size=header.hidden,
        num_hidden_layers=header.layers,
        num_attention_heads=header.heads,
        num_key_value_heads=header.kv_heads,
        max_position_embeddings=header.length,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        tie_word_embeddings=tied,
        bos_token_id=1,
        eos_token_id=2,
    )
    head_dim = header.dim // header.heads
    state: dict[str, Tensor] = {
        "model.embed_tokens.weight": _tensor(tensors["embedding"]),
        "model.norm.weight": _tensor(tensors["final_norm"]),
        "lm_head.weight": _tensor(tensors["embedding" if tied else "head"]),
    }
    for layer in range(header.layers):
        prefix = f"model.layers.{layer}"
        state |= {
            f"{prefix}.input_layernorm.weight": _tensor(tensors["attention_norm"][layer]),
            f"{prefix}.post_attention_layernorm.weight": _tensor(tensors["mlp_norm"][layer]),
            f"{prefix}.self_attn.q_proj.weight": _halves(tensors["q"][layer], head_dim),
            f"{prefix}.self_attn.k_proj.weight": _halves(tensors["k"][layer], head_dim),
            f"{prefix}.self_attn.v_proj.weight": _tensor(tensors["v"][layer]),
            f"{prefix}.self_attn.o_proj.weight": _tensor(tensors["o"][layer]),
            f"{prefix}.mlp.gate_proj.weight": _tensor(tensors["gate"][layer]),
            f"{prefix}.mlp.down_proj.weight": _tensor(tensors["down"][layer]),
            f"{prefix}.mlp.up_proj.weight": _tensor(tensors["up"][layer]),
        }
    model = LlamaForCausalLM(config)
    model.load_state_dict(state)
    return model


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array.astype(np.float32))


def _halves(weight: np.ndarray, head_dim: int) -> Tensor:
    """llama2.c's RoPE turns neighbouring rows (2i, 2i + 1); Llama's turns rows i, i + dim / 2."""
    rows, inputs = weight.shape
    paired = weight.reshape(rows // head_dim, head_dim // 2, 2, inputs)
    return _tensor(paired.transpose(0, 2, 1, 3).reshape(rows, inputs))


def parse_tokenizer(data: bytes, vocabulary: int) -> list[tuple[str, float]]:
    """tokenizer.bin's pieces and scores: an int32, then (float32 score, int32 length, bytes)."""
    pieces = []
    offset = 4
    try:
        for _ in range(vocabulary):
            score, length = struct.unpack_from("<fi", data, offset)
            offset += 8
            require(0 <= length <= len(data) - offset, "the tokenizer file is truncated")
            pieces.append((data[offset : offset + length].decode("utf-8"), float(score)))
            offset += length
    except (struct.error, UnicodeDecodeError) as error:
        raise InputError(
            f"the tokenizer data is not a tokenizer.bin of {vocabulary} pieces: {error}"
        ) from error
    return pieces


def build_tokenizer(pieces: list[tuple[str, float]]) -> Any:
    """A fast tokenizer that merges as llama2.c (and SentencePiece) does: best score first.

    llama2.c writes SentencePiece's word mark as a space and surrounds nothing; piece 0 is unknown,
    1 begins and 2 ends a text, 3 to 258 are the single bytes.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    names = [piece.replace(" ", "▁") for piece, _ in pieces]
    names[:3] = ["<unk>", "<s>", "</s>"]
    vocabulary = {name: index for index, name in enumerate(names)}
    merges = _merges(vocabulary, [score for _, score in pieces])
    core = Tokenizer(
        models.BPE(
            vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True
        )
    )
    core.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    core.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    from tokenizers.processors import TemplateProcessing

    core.post_processor = TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def _merges(vocabulary: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """Every way to join two pieces into a third, the best-scored result first."""
    found = []
    for name, index in vocabulary.items():
        for cut in range(1, len(name)):
            left, right = name[:cut], name[cut:]
            if left in vocabulary and right in vocabulary:
                found.append((-scores[index], vocabulary[left], vocabulary[right], left, right))
    found.sort()
    return [(left, right) for *_, left, right in found]
