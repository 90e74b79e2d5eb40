"""Put a reduced attention module into a model, and its weights into the module."""

from typing import Any

from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.model.attention import CompressedAttention
from headwise.pretrained.model.cut import CutLayer, State
from headwise.pretrained.model.projections import output_projection
from headwise.pretrained.plan.shapes import LayerLayout


def install(model: nn.Module, site: AttentionSite, layout: LayerLayout) -> CompressedAttention:
    """Replace the layer's attention by an empty reduced one."""
    original = model.get_submodule(site.path)
    module = _reduced(site, layout, original, model.config)
    model.set_submodule(site.path, module)
    if not site.output_inside:
        model.set_submodule(site.output, output_projection(site, layout))
    return module


def _reduced(
    site: AttentionSite, layout: LayerLayout, original: Any, config: Any
) -> CompressedAttention:
    """An empty one in place of `original`, an instance of its class."""
    family = type(original)
    made: CompressedAttention = type(
        f"Compressed{family.__name__}", (CompressedAttention, family), {}
    )(site, layout, original, config)
    for key, hook in original._forward_hooks.items():  # transformers may be recording already
        if getattr(hook, "__name__", "") == "output_capturing_hook":
            made._forward_hooks[key] = hook
    return made


def fill(model: nn.Module, site: AttentionSite, state: State, like: Tensor) -> None:
    """Load a cut layer's weights into its installed module, at the device and type of `like`."""
    module = model.get_submodule(site.path)
    inside = dict(state)
    if not site.output_inside:
        output = model.get_submodule(site.output)
        output.load_state_dict(
            {name: inside.pop(f"o_proj.{name}") for name in list(output.state_dict())}
        )
        output.to(like.device, like.dtype)
    # Padding columns follow from the shape; norms and tables of biases are the original's.
    module.load_state_dict(dict(module.state_dict()) | inside)
    assert not inside.keys() - module.state_dict().keys()
    module.to(like.device, like.dtype)


def replace_attention(model: Any, site: AttentionSite, cut: CutLayer) -> None:
    """Put a cut layer into the model, at the type and device of the layer it replaces."""
    like = model.get_submodule(site.output).weight.detach()
    module = install(model, site, cut.layout)
    module.train(model.training)
    fill(model, site, cut.state, like)
