"""llama2.c checkpoints: converted, they compute what run.c does; broken, they get a sentence."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from headwise.cli import app
from headwise.core.errors import InputError
from headwise.pretrained import convert_llama2c, load_model
from headwise.pretrained.model.llama2c import build_tokenizer


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def write_llama2c(path: Path, kv_heads: int) -> list[tuple[str, float]]:
    """A small llama2.c file with random weights and its tokenizer behind it."""
    dim, hidden, layers, heads, length = 16, 24, 2, 4, 32
    pieces = [("<unk>", 0.0), ("\n<s>\n", 0.0), ("\n</s>\n", 0.0)]
    pieces += [(f"<0x{byte:02X}>", 0.0) for byte in range(256)]
    pieces += [(" ", -9.0), ("a", -8.0), ("b", -7.0), (" a", -1.0), ("ab", -2.0), (" ab", -3.0)]
    rng = np.random.default_rng(0)
    kv_dim = dim * kv_heads // heads
    sizes = [len(pieces) * dim, layers * dim, layers * dim**2, layers * kv_dim * dim]
    sizes += [layers * kv_dim * dim, layers * dim**2, layers * dim]
    sizes += [layers * dim * hidden] * 3 + [dim, length * dim // heads]
    weights = rng.standard_normal(sum(sizes)).astype("<f4") * 0.2
    data = struct.pack("7i", dim, hidden, layers, heads, kv_heads, len(pieces), length)
    data += weights.tobytes() + struct.pack("i", 8)
    for piece, score in pieces:
        raw = piece.encode()
        data += struct.pack("<fi", score, len(raw)) + raw
    path.write_bytes(data)
    return pieces


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_a_llama2c_checkpoint_converts(kv_heads: int, tmp_path: Path) -> None:
    """The logits are those of llama2.c's own forward pass, written out here."""
    write_llama2c(tmp_path / "tiny.bin", kv_heads)
    assert run("convert", "llama2c", tmp_path / "tiny.bin", tmp_path / "hf").exit_code == 0
    model = load_model(tmp_path / "hf")
    tokens = [1, 5, 260, 262, 9]
    with torch.no_grad():
        found = model(torch.tensor([tokens])).logits[0, -1].numpy()
    np.testing.assert_allclose(
        found, llama2c_forward(tmp_path / "tiny.bin", tokens), rtol=1e-3, atol=1e-4
    )


def llama2c_forward(path: Path, tokens: list[int]) -> np.ndarray[Any, Any]:
    """run.c in numpy: one token after the other, rotation of neighbouring coordinates."""
    data = path.read_bytes()
    dim, hidden, layers, heads, kv_heads, vocabulary, _length = struct.unpack_from("7i", data)
    head, kv_dim, at = dim // heads, dim * kv_heads // heads, 28

    def take(*shape: int) -> np.ndarray[Any, Any]:
        nonlocal at
        count = int(np.prod(shape))
        part = np.frombuffer(data, "<f4", count, at).reshape(shape).astype(np.float64)
        at += 4 * count
        return part

    table, norm1 = take(vocabulary, dim), take(layers, dim)
    wq, wk, wv = take(layers, dim, dim), take(layers, kv_dim, dim), take(layers, kv_dim, dim)
    wo, norm2 = take(layers, dim, dim), take(layers, dim)
    w1, w2, w3 = take(layers, hidden, dim), take(layers, dim, hidden), take(layers, hidden, dim)
    final = take(dim)

    def rms(x: Any, w: Any) -> Any:
        return w * x / np.sqrt(np.mean(x * x) + 1e-5)

    def rotate(x: Any, position: int) -> Any:
        x = x.copy()
        for i in range(0, len(x), 2):
            angle = position / 10000.0 ** ((i % head) / head)
            c, s = np.cos(angle), np.sin(angle)
            x[i], x[i + 1] = x[i] * c - x[i + 1] * s, x[i] * s + x[i + 1] * c
        return x

    keys: list[list[Any]] = [[] for _ in range(layers)]
    values: list[list[Any]] = [[] for _ in range(layers)]
    for position, token in enumerate(tokens):
        x = table[token].copy()
        for layer in range(layers):
            y = rms(x, norm1[layer])
            q = rotate(wq[layer] @ y, position)
            keys[layer].append(rotate(wk[layer] @ y, position))
            values[layer].append(wv[layer] @ y)
            mixed = np.zeros(dim)
            for h in range(heads):
                g = h * kv_heads // heads
                part = slice(g * head, (g + 1) * head)
                own = slice(h * head, (h + 1) * head)
                scores = np.array([q[own] @ k[part] / np.sqrt(head) for k in keys[layer]])
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                mixed[own] = sum(w * v[part] for w, v in zip(weights, values[layer], strict=True))
            x = x + wo[layer] @ mixed
            y = rms(x, norm2[layer])
            gate = w1[layer] @ y
            x = x + w2[layer] @ (gate / (1 + np.exp(-gate)) * (w3[layer] @ y))
    return np.asarray(table @ rms(x, final))


@pytest.mark.parametrize("text", ["ab a b", "aab  ab", "é ab"])
def test_the_tokenizer_merges_as_llama2c_does(text: str, tmp_path: Path) -> None:
    pieces = write_llama2c(tmp_path / "tiny.bin", 4)
    assert build_tokenizer(pieces)(text)["input_ids"] == greedy_merges(pieces, text)


def greedy_merges(pieces: list[tuple[str, float]], text: str) -> list[int]:
    """run.c's encoder: single characters (or bytes), then the best-scored pair again and again."""
    index = {piece: i for i, (piece, _) in enumerate(pieces)}
    ids = [index[" "]]
    for character in text:
        if character in index:
            ids.append(index[character])
        else:
            ids += [byte + 3 for byte in character.encode()]
    while True:
        best: tuple[float, int, int] | None = None
        for i in range(len(ids) - 1):
            joined = index.get(pieces[ids[i]][0] + pieces[ids[i + 1]][0])
            if joined is not None and (best is None or pieces[joined][1] > best[0]):
                best = (pieces[joined][1], i, joined)
        if best is None:
            return [1, *ids]
        ids[best[1] : best[1] + 2] = [best[2]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"short", "too short"), (b"\x01" * 4000, "not a llama2.c checkpoint"), (None, "truncated")],
)
def test_a_bad_llama2c_file_gets_a_sentence(
    content: bytes | None, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.bin"
    if content is None:
        write_llama2c(path, 4)
        content = path.read_bytes()[:3000]
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        convert_llama2c(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
