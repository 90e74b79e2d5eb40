"""Models: checkpoints of the hub's format and of llama2.c, and networks of headwise's own."""

import json
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from byte_model import write_byte_model
from malformed.arrays import saved_tensors
from malformed.case import HERE, OUT, Case, InputClass, on_file
from malformed.draw import changed_json, damaged
from malformed.texts import TASK


def model_classes(model: dict[str, bytes]) -> list[InputClass]:
    """`model` is a sound checkpoint: file → content."""
    compress = f"compress {HERE}/model --keep 0.5 --tokens 200"
    return [
        InputClass(
            "file: checkpoint folder",
            st.builds(
                lambda name, content, command: Case(
                    command.split(), {**model, f"model/{name}": content}
                ),
                st.just("config.json"),
                changed_json(json.loads(model["model/config.json"])),
                st.just(compress),
            )
            | st.builds(
                lambda name, content: Case(compress.split(), {**model, f"model/{name}": content}),
                st.sampled_from(["model.safetensors", "tokenizer.json", "config.json"]),
                damaged(model["model/model.safetensors"]),
            ),
        ),
        InputClass(
            "file: llama2.c",
            on_file(
                "a.bin",
                damaged(np.array([8, 8, 1, 2, 2, 9, 8], np.int32).tobytes() + bytes(4000)),
                f"convert llama2c {HERE}/a.bin {HERE}/new",
            ),
        ),
        InputClass(
            "file: network folder",
            st.builds(
                lambda config, weights: Case(
                    f"build witness --net {HERE}/n {OUT}".split(),
                    {"n/config.json": config, "n/model.safetensors": weights},
                ),
                changed_json(TASK),
                damaged(saved_tensors()),
            ),
        ),
    ]


def small_model(folder: Path) -> dict[str, bytes]:
    """A sound checkpoint with its tokenizer: file → content."""
    write_byte_model(folder / "model", width=16, heads=2, length=32)
    return {f"model/{path.name}": path.read_bytes() for path in (folder / "model").iterdir()}
