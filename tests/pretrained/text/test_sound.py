"""Models of sound are calibrated on a folder of recordings."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import wavfile
from small_models import small_model
from typer.testing import CliRunner

import headwise
from headwise.cli import app
from headwise.core.errors import InputError
from headwise.pretrained import sound_material


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """Noise of several rates, widths and numbers of channels; some longer than a piece."""
    folder, rng = tmp_path / "recordings", np.random.default_rng(0)
    folder.mkdir()
    for index, rate in enumerate([16_000, 22_050, 8_000, 44_100] * 3):
        noise = 0.1 * rng.standard_normal((int(rate * 0.05 * (index + 3)), 1 + index % 2))
        form = (np.int16, np.uint8, np.float32)[index % 3]
        wide = {np.int16: 32767 * noise, np.uint8: 128 + 127 * noise, np.float32: noise}[form]
        wavfile.write(folder / f"{index:02}.wav", rate, wide.clip(-32767, 32767).astype(form))
    return folder


@pytest.fixture
def whisper(tmp_path: Path) -> Path:
    small_model("whisper").save_pretrained(tmp_path / "whisper")
    return tmp_path / "whisper"


def test_a_folder_of_recordings_calibrates_whisper(
    recordings: Path, whisper: Path, tmp_path: Path
) -> None:
    out = tmp_path / "small"
    command = ["compress", str(whisper), "--keep", "0.7", "--text", str(recordings), "--json"]
    result = CliRunner().invoke(app, [*command, "--no-cache", "--out", str(out)])
    assert result.exit_code == 0, result.output
    compressed, original = headwise.from_pretrained(out), small_model("whisper")
    assert compressed.num_parameters() < original.num_parameters()
    verdict = json.loads(result.stdout)["evaluation"]["verdicts"][0]
    assert verdict["documents"] == 2  # of 12 recordings, every fifth
    material = sound_material(original, recordings)
    written = sum(batch["decoder_input_ids"].numel() for batch in material.held_out)
    assert verdict["tokens"] == written


def test_whisper_hears_pieces_and_writes_to_its_end(recordings: Path) -> None:
    model = small_model("whisper")
    material = sound_material(model, recordings)
    for batch in material.calibration:
        assert batch["input_features"].shape == (1, 8, 32)  # what its 16 positions are made of
        ids = batch["decoder_input_ids"]
        assert 2 <= ids.shape[1] <= 64
        with torch.no_grad():  # teacher-forced, it would write the same
            again = model(**batch).logits.argmax(-1)
        assert torch.equal(again[:, :-1], ids[:, 1:])
    assert len(material.calibration) > 10  # long recordings are several pieces
    of_their_own = sound_material(model, recordings, eval_folder=recordings)
    assert len(of_their_own.held_out) > len(material.held_out)


def test_a_recording_is_the_same_at_another_rate(tmp_path: Path) -> None:
    """The same tone, stored in three ways, gives about the same features."""
    model = small_model("whisper")
    features = []
    for rate, form in ((16_000, np.float32), (44_100, np.int16), (22_050, np.uint8)):
        folder = tmp_path / str(rate)
        folder.mkdir()
        tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(int(0.32 * rate)) / rate)
        wide = {np.int16: 32767 * tone, np.uint8: 128 + 127 * tone, np.float32: tone}[form]
        for index in range(5):
            wavfile.write(folder / f"{index}.wav", rate, wide.astype(form))
        features.append(sound_material(model, folder).held_out[0]["input_features"])
    loud = features[0] > features[0].max() - 0.5  # rounding to 8 bits is heard in silence only
    for other in features[1:]:
        assert float((other - features[0])[loud].abs().max()) < 0.1


def test_other_models_of_sound_need_to_say_how_they_hear(recordings: Path, tmp_path: Path) -> None:
    from transformers import Wav2Vec2FeatureExtractor

    small_model("wav2vec2").save_pretrained(tmp_path / "wav2vec2")
    with pytest.raises(InputError, match=r"no preprocessor_config\.json"):
        headwise.inspect(str(tmp_path / "wav2vec2"), text=recordings, cache=False)
    Wav2Vec2FeatureExtractor().save_pretrained(tmp_path / "wav2vec2")
    inspection = headwise.inspect(str(tmp_path / "wav2vec2"), text=recordings, cache=False)
    assert "numbers" in inspection.calibration


def test_what_cannot_be_heard_gets_a_sentence(recordings: Path, whisper: Path) -> None:
    command = ["compress", str(whisper), "--keep", "0.7", "--out", str(recordings / "out")]
    (recordings / "few").mkdir()
    (recordings / "broken").mkdir()
    for index in range(4):
        (recordings / "few" / f"{index}.wav").write_bytes((recordings / "00.wav").read_bytes())
        (recordings / "broken" / f"{index}.wav").write_text("not a recording")
    (recordings / "broken" / "5.wav").write_text("not a recording")
    (recordings / "silent").mkdir()
    for index in range(5):
        wavfile.write(recordings / "silent" / f"{index}.wav", 16_000, np.zeros(0, np.int16))
    for more, sentence in (
        ([], "hears sound: give a folder of recordings"),
        (["--text", str(recordings / "00.wav")], "is not a folder of recordings"),
        (["--text", str(whisper)], "has no recording"),
        (["--text", str(recordings / "few")], "at least 5 are needed"),
        (["--text", str(recordings / "broken")], "is not a WAV file that can be read"),
        (["--text", str(recordings / "silent")], "has no sound in it"),
        (["--text", str(recordings), "--length", "16"], "length is for text"),
    ):
        result = CliRunner().invoke(app, [*command, *more])
        assert isinstance(result.exception, InputError), (more, result.output)
        assert sentence in str(result.exception)
        assert not (recordings / "out").exists()
