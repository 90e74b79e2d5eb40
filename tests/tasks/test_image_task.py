"""Images: forms that others keep them in, places in frames, and what is wrong with bad data."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from headwise.core.errors import InputError
from headwise.tasks import Images
from headwise.tasks.images.placement import corners, in_frame, patches_of
from headwise.tasks.images.sources import read_folder


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path / "cache"))


def pictures(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 32, 32, 3), np.uint8)


def class_folders(folder: Path, each: int = 10, names: tuple[str, ...] = ("cat", "dog")) -> Path:
    for number, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for index, pixels in enumerate(pictures(each, number)):
            Image.fromarray(pixels).save(folder / name / f"{index}.png")
    return folder


def sheets(folder: Path, each: int = 4) -> Path:
    folder.mkdir()
    names = [*(f"data_batch_{n}.png" for n in range(1, 6)), "test_batch.png"]
    for number, name in enumerate(names):
        Image.fromarray(pictures(each, number).reshape(each, 1024, 3)).save(folder / name)
    labels = [n % 10 for n in range(5 * each)]
    (folder / "train_lables.json").write_text(json.dumps(labels))
    (folder / "test_lables.json").write_text(json.dumps(labels[:each]))
    return folder


def batches(folder: Path, each: int = 4) -> Path:
    """CIFAR-10 as torchvision keeps it; each batch is a pickle of the original's protocol."""
    folder.mkdir()
    for number, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        rows = pictures(each, number).transpose(0, 3, 1, 2).reshape(each, 3072)
        raw = rows.tobytes()
        content = b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x08batch xxq\x03U\x06labelsq\x04]q\x05("
        content += b"".join(bytes([0x4B, n % 10]) for n in range(each)) + b"e"
        content += b"U\x04dataq\x06T" + len(raw).to_bytes(4, "little") + raw + b"q\x07"
        content += b"U\x09filenamesq\x08]q\x09u."
        (folder / name).write_bytes(content)
    return folder


def test_a_frame_is_the_picture_and_its_edge_outside() -> None:
    """Against numpy's own padding by the edge."""
    pixels = pictures(6)
    places = corners(6, 16, 0, False)
    framed = in_frame(pixels, places, 48)
    for picture, (top, left), found in zip(pixels, places, framed, strict=True):
        room = ((top, 16 - top), (left, 16 - left), (0, 0))
        assert np.array_equal(found, np.pad(picture, room, mode="edge"))
    assert len({tuple(place) for place in corners(500, 16, 0, False)}) > 200
    assert not np.array_equal(corners(6, 16, 0, False), corners(6, 16, 1, False))
    assert not np.array_equal(corners(6, 16, 0, False), corners(6, 16, 0, True))


def test_patches_hold_every_pixel_once() -> None:
    framed = torch.from_numpy(pictures(2))
    cut = patches_of(framed, 8)
    assert cut.shape == (2, 16, 192)
    assert torch.allclose(cut[1, 5, :8], framed[1, 8, 8:16, 0] * (2 / 255) - 1)  # red, first row
    assert cut.double().sum() == pytest.approx(float((framed * (2 / 255) - 1).double().sum()), 1e-4)


def test_examples_are_a_function_of_the_task_alone(tmp_path: Path) -> None:
    folder = class_folders(tmp_path / "pictures")
    task = Images.from_folder(folder, frame=48, patch=16)
    assert (task.classes, task.train, task.held_out, task.length) == (2, 16, 4, 10)
    first, labels = task.examples(np.array([3, 5, 3]))
    again, _ = task.examples(np.array([5]))
    assert torch.equal(first[1], again[0])
    assert torch.equal(first[0], first[2])
    assert labels[0] == labels[2]
    seen = {tuple(row) for row in task.examples(np.arange(16))[0].flatten(1).tolist()}
    held_out = {tuple(row) for row in task.examples(np.arange(4), True)[0].flatten(1).tolist()}
    assert len(seen) == 16
    assert not seen & held_out


def test_the_forms_of_cifar_hold_the_same_pictures(tmp_path: Path) -> None:
    ours, theirs = read_folder(sheets(tmp_path / "s"), 32), read_folder(batches(tmp_path / "b"), 32)
    assert np.array_equal(ours.train[0], theirs.train[0])
    assert np.array_equal(theirs.held_out[0], pictures(4, 5))
    assert theirs.train[1].tolist() == [n % 10 for n in range(4)] * 5
    binary = tmp_path / "cifar-10-batches-bin"
    binary.mkdir()
    for number, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        rows = pictures(4, number).transpose(0, 3, 1, 2).reshape(4, 3072)
        labels = np.arange(4, dtype=np.uint8)[:, None]
        (binary / f"{name}.bin").write_bytes(np.hstack([labels, rows]).tobytes())
    assert np.array_equal(read_folder(binary, 32).train[0], ours.train[0])


class _Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise SystemExit('it ran')",))


def test_a_pickle_is_read_and_never_run(tmp_path: Path) -> None:
    folder = batches(tmp_path / "b")
    (folder / "data_batch_2").write_bytes(pickle.dumps({"labels": _Trap()}))
    with pytest.raises(InputError, match="no CIFAR-10 batch"):
        read_folder(folder, 32)


def test_bad_images_get_a_sentence_each(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        Images.from_folder(tmp_path / "nowhere", frame=32, patch=8)
    folder = class_folders(tmp_path / "pictures")
    with pytest.raises(InputError, match="frame of side 16 is smaller than the image"):
        Images.from_folder(folder, frame=16, patch=8)
    with pytest.raises(InputError, match="do not fill"):
        Images.from_folder(folder, frame=36, patch=8)
    with pytest.raises(InputError, match="16 images to train on; 17 were asked"):
        Images.from_folder(folder, frame=32, patch=8, train=17)
    (folder / "dog" / "3.png").write_bytes((folder / "dog" / "3.png").read_bytes()[:500])
    with pytest.raises(InputError, match=r"3\.png is broken"):
        Images.from_folder(folder, frame=32, patch=8)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="folders of images, one a class"):
        Images.from_folder(tmp_path / "empty", frame=32, patch=8)


def test_bad_sheets_get_a_sentence_each(tmp_path: Path) -> None:
    folder = sheets(tmp_path / "sheets")
    labels = json.loads((folder / "train_lables.json").read_text())
    (folder / "train_lables.json").write_text(json.dumps([10, *labels[1:]]))
    with pytest.raises(InputError, match=r"out of range: labels are 0 to 9"):
        read_folder(folder, 32)
    (folder / "train_lables.json").write_text(json.dumps(labels[1:]))
    with pytest.raises(InputError, match="20 images and 19 labels"):
        read_folder(folder, 32)
    (folder / "train_lables.json").write_text('{"a": 1}')
    with pytest.raises(InputError, match="list of class numbers"):
        read_folder(folder, 32)
    (folder / "test_batch.png").unlink()
    with pytest.raises(InputError, match=r"lacks test_batch\.png"):
        read_folder(folder, 32)


def test_images_that_are_not_here_are_asked_for(tmp_path: Path) -> None:
    options = {"size": 32, "classes": 10, "train": 4, "held_out": 4, "frame": 32, "patch": 8}
    task = Images(name="CIFAR-10", sha256="0" * 64, **options)
    with pytest.raises(InputError, match="headwise study fetch images"):
        task.check()
