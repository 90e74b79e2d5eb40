"""Open a checkpoint safely: an original, or a compressed one in its transformers class.

Only safetensors are read: a pickle can run code. A compressed model's shape travels in its
config.json (entry "headwise"), so transformers' own `save_pretrained` carries it along.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from safetensors import SafetensorError, safe_open

from headwise.core.device import find_device
from headwise.core.errors import InputError, require
from headwise.core.files import check_is_file, is_file, is_folder
from headwise.core.memory import TO_OPEN, check_room
from headwise.core.spec import from_data
from headwise.pretrained.adapters import family_of, require_supported
from headwise.pretrained.model.apply import install
from headwise.pretrained.model.mode import widened
from headwise.pretrained.plan.plan_file import check_shape
from headwise.pretrained.plan.shapes import LayerLayout

_WHERE = ("revision", "subfolder", "cache_dir", "token", "local_files_only", "proxies")
"""Options of `from_pretrained` that say where, on the hub or in a folder, the checkpoint lies."""


class Subject(NamedTuple):
    """A model to be looked at, with its name and, if it reads text, its tokenizer."""

    name: str
    model: Any
    tokenizer: Any


def opened(model: Any, tokenizer: Any = None, device: str = "cpu") -> Subject:
    """What a hub id or a folder names, on a device; a loaded model is taken as and where it is.

    Half precision on a CPU is widened (see `mode`), of a loaded model in a copy.
    """
    if isinstance(model, str | Path):
        check_room(TO_OPEN, "opening a model")
        place = find_device(device)
        loaded = widened(load_model(model).to(place), in_place=True)
        if tokenizer is None and family_of(loaded).reads.startswith("text"):
            tokenizer = load_tokenizer(model)
        return Subject(str(model), loaded, tokenizer)
    model = getattr(model, "_orig_mod", model)  # what torch.compile wrapped
    require(
        hasattr(model, "config"),
        f"{type(model).__name__} is not a model: give a hub id, a folder or a transformers model",
    )
    require_supported(model.config)
    require(
        not any(parameter.is_meta for parameter in model.parameters()),
        "the model's weights are not all in memory (a device map put some on disk or left them "
        "out); load it whole to measure it",
    )
    name = getattr(model.config, "name_or_path", None) or type(model).__name__
    return Subject(name, widened(model), tokenizer)


def transformers() -> Any:
    """The transformers package, or a sentence on how to get it."""
    try:
        import transformers as package
    except ImportError as error:
        raise InputError(
            "pretrained models need transformers: pip install 'headwise[pretrained]'"
        ) from error
    package.utils.logging.disable_progress_bar()  # we report progress ourselves
    return package


def load_model(name: str | Path) -> Any:
    """The original model of a hub id or folder, in its own class, ready to be measured."""
    config = _config(name)
    require(
        getattr(config, "headwise", None) is None,
        f"{name} is compressed already; start from the original, or use headwise.from_pretrained",
    )
    return _load(class_named(config), config, name)


def from_pretrained(name: str | Path, **options: Any) -> Any:
    """Open a compressed checkpoint (or an ordinary one) into its transformers class.

    Options are those of transformers' `from_pretrained` (`dtype`, `device_map`, ...).
    """
    require(
        not options.get("trust_remote_code"),
        "headwise never runs code from a checkpoint: trust_remote_code is not accepted",
    )
    for taken in ("use_safetensors", "output_loading_info"):
        require(taken not in options, f"headwise.from_pretrained does not take {taken}")
    config = _config(name, **{key: options[key] for key in options if key in _WHERE})
    original = class_named(config)
    wanted = _with_layouts(original, config)
    model = _load(wanted, config, name, **options)
    if wanted is not original:
        model.__class__ = original
    return model


def without_weights(config: Any) -> Any:
    """What a checkpoint with this configuration opens as: its tensors have a shape and no place."""
    with torch.device("meta"):
        return _with_layouts(class_named(config), config)(config)


def _with_layouts(original: Any, config: Any) -> Any:
    """The class; where the configuration says that attention is reduced, one that has it so."""
    layouts = getattr(config, "headwise", None)
    if layouts is None:
        return original

    def build(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        original.__init__(self, config, *args, **kwargs)
        _install_layouts(self, layouts)

    # Under the original's name and module, so that transformers renames old weights as usual.
    members = {"__init__": build, "__module__": original.__module__}
    return type(original.__name__, (original,), members)


def _install_layouts(model: Any, data: Any) -> None:
    layouts = from_data(data)
    sites = family_of(model).sites(model)
    valid = isinstance(layouts, tuple) and all(isinstance(part, LayerLayout) for part in layouts)
    require(
        valid and len(layouts) == len(sites),
        "config.json's entry 'headwise' does not describe this model's layers",
    )
    for site, layout in zip(sites, layouts, strict=True):
        check_shape(layout.shape, site)
        install(model, site, layout)


def load_tokenizer(name: str | Path) -> Any:
    """The tokenizer of a hub id or folder."""
    try:
        return transformers().AutoTokenizer.from_pretrained(str(name), trust_remote_code=False)
    except Exception as error:
        raise InputError(f"{name} has no tokenizer that opens: {_first_line(error)}") from error


def _config(name: str | Path, **where: Any) -> Any:
    folder = Path(name) / where.get("subfolder", "")
    if is_file(folder) or is_folder(folder):
        _require_checkpoint(folder)
    try:
        kinds = transformers().AutoConfig
        config = kinds.from_pretrained(str(name), trust_remote_code=False, **where)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{name} is neither a folder with a model that transformers can open nor a model on "
            f"the hub: {_first_line(error)}"
        ) from error
    names = getattr(config, "architectures", None) or []
    listed = isinstance(names, list) and all(
        isinstance(each, str) and each.isidentifier() for each in names
    )
    require(listed, f"{name}: 'architectures' in config.json is {names!r}; it is a list of names")
    require(
        getattr(config, "quantization_config", None) is None,
        f"{name} is quantised (quantization_config in config.json); dequantise it first",
    )
    require_supported(config)
    if is_folder(folder):
        _require_layers(folder, config)
    return config


def _require_layers(folder: Path, config: Any) -> None:
    """A model of a million layers takes minutes to make before its weights are missed."""
    layers = getattr(config, "num_hidden_layers", None)
    try:
        tensors = 0
        for path in folder.glob("*.safetensors"):
            check_is_file(path)
            with safe_open(path, "pt") as file:
                tensors += len(file.keys())
    except (SafetensorError, OSError) as error:
        raise InputError(f"{folder} cannot be loaded: {_first_line(error)}") from error
    require(
        not isinstance(layers, int) or 0 <= layers <= tensors,
        f"{folder}: config.json tells of {layers} layers, and the weights are {tensors} tensors",
    )


def _require_checkpoint(folder: Path) -> None:
    require(folder.is_dir(), f"{folder} is a file; give the model's folder")
    require((folder / "config.json").is_file(), f"{folder} has no config.json: not a model folder")
    if not any(folder.glob("*.safetensors")):
        pickles = [*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")]
        require(
            not pickles,
            f"{folder} has its weights only as a pickle, which can run code when opened; convert "
            "them to safetensors first (with transformers' save_pretrained, if you trust them)",
        )
        raise InputError(f"{folder} has no weights: no *.safetensors file in it")


def class_named(config: Any) -> Any:
    """The class that a configuration names, or else the family's without a head."""
    package = transformers()
    asked = _first_name(config)
    found = getattr(package, asked, None)
    opens = isinstance(found, type) and issubclass(found, package.PreTrainedModel)
    require(
        found is None or opens or asked.startswith("AutoModel"),
        f"'architectures' in config.json names {asked}, which is no model",
    )
    return found or package.AutoModel._model_mapping[type(config)]


def _first_name(config: Any) -> str:
    """The class's name in a configuration; empty where there is none."""
    names = getattr(config, "architectures", None) or [""]
    return str(names[0])


def _load(cls: Any, config: Any, name: str | Path, /, **options: Any) -> Any:
    options.setdefault("dtype", "auto")
    try:
        model, info = cls.from_pretrained(
            str(name), use_safetensors=True, output_loading_info=True, **options
        )
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name} cannot be loaded: {_first_line(error)}") from error
    missing = sorted(info["missing_keys"])
    attention = [key for key in missing if "pooler" not in key]
    require(
        not attention and not info.get("mismatched_keys"),
        f"{name} is incomplete: {', '.join(attention[:3]) or 'some weights'} "
        "missing or of the wrong size",
    )
    _require_used(model, info["unexpected_keys"], _first_name(config), name)
    return cast(Any, model).eval()


def _require_used(model: Any, unexpected: list[str], asked: str, name: str | Path) -> None:
    """Refuse a checkpoint of which something would be lost without a word."""
    unused = _unused_layers(model, unexpected)
    require(
        not unused,
        f"{name} has weights of more layers than its config.json tells of: {', '.join(unused[:2])}",
    )
    require(
        not unexpected or hasattr(transformers(), asked),
        f"{name} has weights that {type(model).__name__} has no use for "
        f"({', '.join(sorted(unexpected)[:2])}), and 'architectures' in its config.json names "
        f"{f'{asked}, which transformers does not know' if asked else 'no class'}: say there which "
        "class of transformers it is",
    )


def _unused_layers(model: Any, unexpected: Iterable[str]) -> list[str]:
    """Weights that only another number of layer tells from the model's own.

    Others may be of a head that the class does not have.
    """
    own = {_numberless(key, model) for key in model.state_dict()}
    return sorted(key for key in unexpected if _numberless(key, model) in own)


def _numberless(key: str, model: Any) -> str:
    return re.sub(r"\b\d+\b", "#", key.removeprefix(f"{model.base_model_prefix}."))


def _first_line(error: Exception) -> str:
    """The first line, and the second where the first ends in a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = lines or [type(error).__name__]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1])
