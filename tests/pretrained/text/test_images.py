"""Vision models are calibrated on a folder of images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_models import small_model
from typer.testing import CliRunner

import headwise
from headwise.cli import app
from headwise.core.errors import InputError


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
