"""Recordings as calibration material: as the model hears them, with what it writes of them."""

import math
import warnings
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.io import wavfile
from torch import Tensor

from headwise.core.errors import InputError, require
from headwise.core.files import check_is_file, is_file, is_folder
from headwise.pretrained.measure.language import NextToken
from headwise.pretrained.measure.objectives import objective_for
from headwise.pretrained.model.opening import transformers
from headwise.pretrained.model.saving import PREPARATION
from headwise.pretrained.text.calibration import Material, Sample, every_fifth, spread

_SECONDS = 10  # of a piece, where a model takes any length
_SHORTEST = 0.1  # seconds: what is left of a recording is a piece from here on
_RATES = (4_000, 384_000)  # samples a second of a recording
_HELD_OUT = 4  # times as many pieces to calibrate on as to judge by
_WRITTEN = 128  # tokens of a piece at most; speech has fewer, a model that repeats itself has not


def sound_material(
    model: Any,
    folder: str | Path | None,
    *,
    eval_folder: str | Path | None = None,
    pieces: int = 64,
) -> Material:
    """WAV files of a folder, at most so many pieces of them to calibrate on.

    A piece is as long as the model listens at once (Whisper: 30 seconds). Every fifth recording is
    held out whole, unless those to judge by have a folder of their own. A model that writes what it
    hears is asked about its own transcripts, so no text is needed beside the recordings.
    """
    name = type(model).__name__
    require(
        folder is not None,
        f"{name} hears sound: give a folder of recordings (.wav) as text (--text), or, in Python, "
        "batches of its inputs as a headwise.pretrained.Material",
    )
    hearing = _hearing(model)
    paths = _recordings(Path(str(folder)))
    others = _recordings(Path(eval_folder)) if eval_folder else []
    if not others:
        paths, others = every_fifth(paths)
    require(bool(others), f"{folder} has {len(paths)} recordings; at least 5 are needed")
    held_out = _sample(model, hearing, others, max(1, pieces // _HELD_OUT))
    calibration = _sample(model, hearing, paths, pieces)
    return Material(
        calibration.batches,
        held_out.batches,
        str(folder),
        str(eval_folder) if eval_folder else "",
        held_out.documents,
    )


class _Hearing(NamedTuple):
    """What makes a model's inputs of samples, and how many samples it takes at once."""

    extractor: Any
    samples: int


def _hearing(model: Any) -> _Hearing:
    """As the checkpoint says (preprocessor_config.json); Whisper's can be told by its sizes."""
    config = model.config
    place = getattr(config, "name_or_path", "")
    own = not place or (is_folder(Path(place)) and not is_file(_preprocessor(Path(place))))
    if config.model_type == "whisper":
        writes = isinstance(objective_for(model), NextToken) and config.is_encoder_decoder
        require(
            writes or "decoder_input_ids" not in signature(model.forward).parameters,
            f"{type(model).__name__} takes more than sound: give batches of its inputs, in Python, "
            "as a headwise.pretrained.Material",
        )
    if own and config.model_type == "whisper":
        extractor = transformers().WhisperFeatureExtractor(feature_size=config.num_mel_bins)
    else:
        extractor = _opened_extractor(place, type(model).__name__)
    if config.model_type == "whisper":
        return _Hearing(extractor, 2 * config.max_source_positions * extractor.hop_length)
    return _Hearing(extractor, _SECONDS * extractor.sampling_rate)


def _preprocessor(folder: Path) -> Path:
    return folder / PREPARATION


def _opened_extractor(place: str, name: str) -> Any:
    try:
        return transformers().AutoFeatureExtractor.from_pretrained(place, trust_remote_code=False)
    except Exception as error:
        raise InputError(
            f"how {name} hears sound is not known: {place or 'it'} has no preprocessor_config.json "
            "that opens; add it, or give batches of its inputs, in Python, as a "
            "headwise.pretrained.Material"
        ) from error


def _recordings(folder: Path) -> list[Path]:
    require(is_folder(folder), f"{folder} is not a folder of recordings (.wav)")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".wav")
    require(bool(paths), f"{folder} has no recording (.wav; convert others first)")
    return paths


def _sample(model: Any, hearing: _Hearing, paths: list[Path], count: int) -> Sample:
    """At most so many pieces of these recordings, an input each, and whose they are."""
    rate, size = hearing.extractor.sampling_rate, hearing.samples
    paths = spread(paths, count)
    shortest = min(size, math.ceil(_SHORTEST * rate))
    found: list[tuple[int, np.ndarray]] = []
    for number, path in enumerate(paths):
        sound = _samples(path, rate)
        require(len(sound) >= shortest, f"{path} is shorter than {_SHORTEST} seconds")
        parts = [sound[start : start + size] for start in range(0, len(sound), size)]
        found += [(number, part) for part in parts if len(part) >= shortest]
    found = spread(found, count)
    batches = [_heard(model, hearing, part) for _, part in found]
    return Sample(batches, "", [[number] for number, _ in found])


def _samples(path: Path, rate: int) -> np.ndarray:
    """One channel at this rate, from −1 to 1."""
    check_is_file(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wavfile.WavFileWarning)  # chunks of other programs
            own_rate, sound = wavfile.read(path)
    except Exception as error:  # a damaged header raises what its parser does
        raise InputError(f"{path} is not a WAV file that can be read: {error}") from error
    low, high = _RATES
    require(low <= own_rate <= high, f"{path} has {own_rate} samples a second: {low} to {high}")
    if sound.dtype == np.uint8:
        sound = (sound.astype(np.float32) - 128) / 128
    elif np.issubdtype(sound.dtype, np.integer):
        sound = sound / float(np.iinfo(sound.dtype).max)
    require(len(sound) > 0, f"{path} has no sound in it")
    mono = np.asarray(sound, np.float32).reshape(len(sound), -1).mean(1)
    require(bool(np.isfinite(mono).all()), f"{path} has samples that are not numbers")
    if rate == own_rate or not len(mono):
        return mono
    samples = math.ceil(len(mono) * rate / own_rate)  # the same frequencies, in so many samples
    again = np.fft.irfft(np.fft.rfft(mono), samples) * (samples / len(mono))
    return again.astype(np.float32)


def _heard(model: Any, hearing: _Hearing, part: np.ndarray) -> dict[str, Tensor]:
    """The model's inputs, in its precision."""
    extractor = hearing.extractor
    options: dict[str, Any] = {"sampling_rate": extractor.sampling_rate, "return_tensors": "pt"}
    if model.config.model_type == "whisper":
        options["max_length"] = hearing.samples
    made = extractor(part, **options)
    name = model.main_input_name
    inputs = {name: made[name].to(model.dtype)}
    if isinstance(objective_for(model), NextToken):
        inputs["decoder_input_ids"] = _transcript(model, inputs[name])
    return inputs


@torch.no_grad()
def _transcript(model: Any, features: Tensor) -> Tensor:
    """What the model writes of it: its likeliest token, one after the other, to its end."""
    config, device = model.config, next(model.parameters()).device
    heard = model.get_encoder()(features.to(device))
    ids = torch.tensor([[config.decoder_start_token_id]])
    most, cache = min(_WRITTEN, config.max_target_positions), None
    while ids.shape[1] < most and (ids.shape[1] == 1 or int(ids[0, -1]) != config.eos_token_id):
        outputs = model(
            encoder_outputs=heard,
            decoder_input_ids=ids[:, -1:].to(device),
            past_key_values=cache,
            use_cache=True,
        )
        cache = outputs.past_key_values
        ids = torch.cat([ids, outputs.logits[:, -1].argmax(-1, keepdim=True).cpu()], dim=1)
    return ids
