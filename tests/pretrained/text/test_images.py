"""Vision models are calibrated on a folder of images."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from small_models import small_model
from transformers import AutoImageProcessor
from typer.testing import CliRunner

import headwise
from headwise.cli import app
from headwise.core.errors import InputError
from headwise.pretrained import image_material


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """48 images of several sizes and modes."""
    folder, rng = tmp_path / "pictures", np.random.default_rng(0)
    folder.mkdir()
    for index in range(48):
        shape = (12 + index, 20, 3) if index % 2 else (20, 12 + index)
        image = Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8))
        image.save(folder / f"{index}.{'jpg' if index % 3 else 'png'}")
    return folder


@pytest.fixture
def vision_model(tmp_path: Path) -> Path:
    small_model("vit").save_pretrained(tmp_path / "vit")
    return tmp_path / "vit"


def test_a_folder_of_images_calibrates_a_vision_model(
    pictures: Path, vision_model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "small"
    command = ["compress", str(vision_model), "--keep", "0.7", "--text", str(pictures)]
    result = CliRunner().invoke(app, [*command, "--out", str(out)])
    assert result.exit_code == 0, result.output
    compressed, original = headwise.from_pretrained(out), small_model("vit")
    assert compressed.num_parameters() < original.num_parameters()


def test_what_is_no_image_gets_a_sentence(pictures: Path, vision_model: Path) -> None:
    (pictures / "0.png").write_text("not an image")
    command = ["compress", str(vision_model), "--keep", "0.7", "--out", str(pictures / "out")]
    for text, sentence in (
        (pictures, "is not an image that can be read"),
        (pictures / "1.jpg", "is not a folder of images"),
        (vision_model, "has no image"),
    ):
        result = CliRunner().invoke(app, [*command, "--text", str(text)])
        assert isinstance(result.exception, InputError)
        assert sentence in str(result.exception)
        assert not (pictures / "out").exists()


def test_images_to_judge_by_have_no_folder_of_their_own(pictures: Path, vision_model: Path) -> None:
    with pytest.raises(InputError, match="of images a fifth is held out"):
        headwise.compress(vision_model, keep=0.7, text=pictures, eval_text=pictures)


def test_images_are_in_the_precision_of_the_model(pictures: Path) -> None:
    model = small_model("vit").bfloat16()
    result = headwise.compress(model, keep=0.7, text=pictures, cache=False, time_it=False)
    assert {parameter.dtype for parameter in result.model.parameters()} == {model.dtype}
    assert result.evaluation.verdicts[0].counted == "pixels"


@pytest.fixture
def prepared_model(tmp_path: Path) -> Path:
    """A model that was trained on a cut from the middle of images, each channel normalised."""
    folder = tmp_path / "prepared"
    small_model("vit-classifier").save_pretrained(folder)
    said = {"image_processor_type": "BitImageProcessor", "do_convert_rgb": True}
    said |= {"size": {"shortest_edge": 20}, "crop_size": {"height": 16, "width": 16}}
    said |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    (folder / "preprocessor_config.json").write_text(json.dumps(said))
    return folder


def test_images_are_prepared_as_the_checkpoint_says(
    pictures: Path, prepared_model: Path, tmp_path: Path
) -> None:
    model = headwise.from_pretrained(prepared_model)
    pixels = torch.cat([b["pixel_values"] for b in image_material(model, pictures).calibration])
    processor = AutoImageProcessor.from_pretrained(prepared_model)
    with Image.open(pictures / "0.png") as image:
        mine = processor(images=[image.convert("RGB")], return_tensors="pt")["pixel_values"][0]
    assert torch.equal(pixels[0], mine)
    assert pixels.max() > 2
    result = headwise.compress(prepared_model, keep=0.7, text=pictures, cache=False, time_it=False)
    assert not any("how ViT" in warning for warning in result.warnings)
    result.save(tmp_path / "small")  # from where a user prepares images in the same way
    assert type(AutoImageProcessor.from_pretrained(tmp_path / "small")) is type(processor)


def test_a_preparation_that_is_not_known_is_said(
    pictures: Path, vision_model: Path, prepared_model: Path
) -> None:
    result = headwise.compress(vision_model, keep=0.7, text=pictures, cache=False, time_it=False)
    assert any("has no preprocessor_config.json" in warning for warning in result.warnings)
    (prepared_model / "preprocessor_config.json").write_text("{")
    with pytest.raises(InputError, match="does not say how to prepare images"):
        headwise.compress(prepared_model, keep=0.7, text=pictures)


@pytest.mark.parametrize(("size", "channels"), [([16, 24], 3), (16, 1)])
def test_images_of_any_shape_and_channels(pictures: Path, size: Any, channels: int) -> None:
    model = small_model("vit", image_size=size, num_channels=channels)
    height, width = np.broadcast_to(size, 2)
    for folder in (pictures, None):
        read = image_material(model, folder).calibration[0]["pixel_values"]
        assert read.shape[1:] == (channels, height, width)


def test_images_of_sixteen_bits_are_not_all_white(tmp_path: Path) -> None:
    rng, model = np.random.default_rng(0), small_model("vit")
    for index in range(40):
        deep = rng.integers(0, 2**16, (16, 16), dtype=np.uint16)
        Image.fromarray(deep).save(tmp_path / f"{index:02}.png")
    read = image_material(model, tmp_path).calibration[0]["pixel_values"]
    assert read.std() > 0.4
