"""Decoders: causal attention and feed-forward network in turn, every layer with its own heads.

Plain and pre-norm: stream + attention(norm(stream)), stream + network(norm(stream)), a norm at the
end. The norms are RMS norms and there is no bias anywhere, as in the decoders whose shapes are
compared here (Llama, OpenELM): so the attention parameters of a layer are exactly
width·heads·(2·qk_dim + 2·v_dim). Tokens of a vocabulary enter by a table which is also the last
layer (a tied head: with few layers it would otherwise be a large part of the network); tokens of
real numbers enter and leave by linear maps.
"""

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.nets.attention import fits_compiled, head_norms, project, read_heads
from headwise.nets.base import LayeredShape, Net
from headwise.nets.compiled import Compiled, compiled_for, gelu, rms_norm
from headwise.nets.layers import ParameterShapes, Params, Stream, linear, look_up, merge_heads
from headwise.nets.positions import rotate, rotation
from headwise.nets.shape import AttentionShape
from headwise.nets.variants import Variant, find_variant
from headwise.nets.variants.mixing import mix_heads, sight
from headwise.nets.variants.named import settled
from headwise.nets.variants.plain import PlainHeads

Positions = Literal["learned", "rope", "none"]

_ATTENTION_MAPS = ".qkv.weight", ".out.weight"


@spec
class DecoderShape(LayeredShape):
    """A decoder for up to `length` tokens, each of which sees itself and those before it.

    `vocabulary` is the number of different tokens, and outputs are their logits; 0 is for tokens
    of `token_dim` real numbers that are answered by `outputs` numbers. `positions`: a "learned"
    table that is added, "rope" (queries and keys are rotated: qk_dim is even) or "none" (the mask
    alone tells order). `qk_norm` scales queries and keys of every head to RMS one, times a learned
    gain for each coordinate of each head. `attention` is the text of a variant, such as "grouped:2"
    (`headwise.nets.variants`).
    """

    vocabulary: int
    width: int
    layers: tuple[AttentionShape, ...]
    ffn: int
    length: int
    positions: Positions = "learned"
    qk_norm: bool = False
    token_dim: int = 0
    outputs: int = 0
    attention: str = "plain"

    def __post_init__(self) -> None:
        for name in ("width", "length"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; the least is 1")
        require(len(self.layers) >= 1, "a decoder has at least one layer")
        require(self.ffn >= 0, "ffn is the width of the feed-forward network, or 0 for none")
        require(
            self.positions in ("learned", "rope", "none"),
            f"positions are 'learned', 'rope' or 'none', not {self.positions!r}",
        )
        real = self.token_dim >= 1 and self.outputs >= 1
        require(
            (self.vocabulary >= 2 and self.token_dim == self.outputs == 0)
            or (self.vocabulary == 0 and real),
            "a decoder has a vocabulary of 2 or more, or else (vocabulary 0) a token_dim and "
            "outputs of at least 1",
        )
        odd = [layer.qk_dim for layer in self.layers if layer.qk_dim % 2]
        require(
            self.positions != "rope" or not odd,
            f"RoPE turns pairs of coordinates: qk_dim must be even, and {odd[:1]} is not; choose "
            "an even qk_dim, or positions 'learned' or 'none'",
        )
        object.__setattr__(self, "attention", settled(self.attention, self.layers))

    @property
    def variant(self) -> Variant:
        """The variant of attention."""
        return find_variant(self.attention)

    def parameter_shapes(self) -> ParameterShapes:
        """Name → shape of every parameter, in the order in which they are initialised."""
        shapes = ParameterShapes()
        if self.vocabulary:
            shapes["table"] = (self.vocabulary, self.width)
        else:
            shapes["into.weight"] = (self.width, self.token_dim)
        if self.positions == "learned":
            shapes["positions"] = (self.length, self.width)
        for index, layer in enumerate(self.layers):
            name = f"layers.{index}"
            queries, keys, values = self.variant.maps(layer)
            rows = (queries + keys) * layer.qk_dim + values * layer.v_dim
            shapes[f"{name}.norm1.weight"] = (self.width,)
            shapes[f"{name}.qkv.weight"] = (rows, self.width)
            if self.qk_norm:
                shapes[f"{name}.query_norm.weight"] = (queries, layer.qk_dim)
                shapes[f"{name}.key_norm.weight"] = (keys, layer.qk_dim)
            shapes |= self._extra_shapes(index)
            shapes[f"{name}.out.weight"] = (self.width, layer.heads * layer.v_dim)
            if self.ffn:
                shapes[f"{name}.norm2.weight"] = (self.width,)
                shapes[f"{name}.up.weight"] = (self.ffn, self.width)
                shapes[f"{name}.down.weight"] = (self.width, self.ffn)
        shapes["norm.weight"] = (self.width,)
        if not self.vocabulary:
            shapes["readout.weight"] = (self.outputs, self.width)
        return shapes

    def _extra_shapes(self, index: int) -> ParameterShapes:
        """The variant's own parameters in a layer."""
        own = self.variant.extra_shapes(self.layers[index], self.width)
        return {f"layers.{index}.{name}": size for name, size in own.items()}

    def params(self) -> dict[str, int]:
        """Parameters: those of attention (maps and a variant's own, no gains of norms) and all."""
        sizes = self.parameter_shapes()
        attention = sum(prod(sizes[name]) for name in sizes if name.endswith(_ATTENTION_MAPS))
        for index in range(len(self.layers)):
            attention += sum(map(prod, self._extra_shapes(index).values()))
        return {"attention": attention, "total": sum(map(prod, sizes.values()))}

    def initial_params(self, seed: int) -> dict[str, Tensor]:
        """Fresh weights: Gaussian of variance 1/inputs, less on the way back into the stream.

        What is written into the stream is divided by √(2·layers), so that its variance does not
        grow with depth (GPT-2). Tables have variance 1/width: with GPT-2's 0.02 the tied head of
        a narrow decoder takes hundreds of steps to grow (2.80 instead of 2.20 nats a byte after
        200 steps at width 32).
        """
        rng, own = np.random.default_rng([seed, 0xDEC0]), np.random.default_rng([seed, 0x7A1D])
        extra = {name for index in range(len(self.layers)) for name in self._extra_shapes(index)}
        params = {}
        for name, size in self.parameter_shapes().items():
            if name in extra:
                values = self.variant.initial(name, size, own).astype(np.float32)
            elif "norm" in name:
                values = np.ones(size, np.float32)
            else:
                values = rng.standard_normal(size, np.float32)
                values /= sqrt(size[1])
                if name.endswith(("out.weight", "down.weight")):
                    values /= sqrt(2 * len(self.layers))
            params[name] = torch.from_numpy(values)
        return params

    def forward(
        self, params: Params, inputs: Shaped[Tensor, "#members batch length *token"]
    ) -> Float[Tensor, "members batch length outputs"]:
        """Logits (or outputs) for every token.

        `inputs`: token numbers (members or 1, batch, length), or real tokens with one axis more.
        """
        stream = self._enter(params, inputs)
        for index in range(len(self.layers)):
            stream = self._layer(params, index, stream)
        return self._leave(params, stream)

    def penalised_forward(
        self, params: Params, inputs: Shaped[Tensor, "#members batch length *token"]
    ) -> tuple[Float[Tensor, "members batch length outputs"], Tensor | float]:
        """The same, and what the variant adds to each member's loss in training."""
        stream = self._enter(params, inputs)
        penalties: list[Tensor] = []
        for index in range(len(self.layers)):
            stream = self._layer(params, index, stream, penalties)
        return self._leave(params, stream), sum(penalties, 0.0)

    def _leave(
        self, params: Params, stream: Stream
    ) -> Float[Tensor, "members batch length outputs"]:
        stream = _norm(params, "norm", stream)
        if not self.vocabulary:
            return linear(stream, params, "readout")
        return linear(stream, {"head.weight": params["table"]}, "head")

    def layer_inputs(
        self, params: Params, inputs: Shaped[Tensor, "#members batch length *token"]
    ) -> list[Stream]:
        """What every attention layer reads: the stream before it, after its norm."""
        stream, read = self._enter(params, inputs), []
        for index in range(len(self.layers)):
            read.append(_norm(params, f"layers.{index}.norm1", stream))
            stream = self._layer(params, index, stream)
        return read

    def _enter(
        self, params: Params, inputs: Shaped[Tensor, "#members batch length *token"]
    ) -> Stream:
        self._check(inputs)
        if self.vocabulary:
            stream = look_up(params["table"], inputs)
        else:
            stream = linear(inputs, params, "into")
        if self.positions == "learned":
            stream = stream + params["positions"][:, None, : stream.shape[2]]
        return stream

    def _layer(
        self, params: Params, index: int, stream: Stream, penalties: list[Tensor] | None = None
    ) -> Stream:
        name, layer, steps = f"layers.{index}", self.layers[index], compiled_for(stream)
        if steps is not None and (self.width % steps.lanes or not stream.numel()):
            steps = None
        plain = isinstance(self.variant, PlainHeads) and fits_compiled(stream.shape[2], layer)
        if steps is not None and plain:
            turns, gains = self._turns_and_gains(params, name, layer, stream)
            stream = _sub_layer(
                steps, params, name, ("norm1", "qkv", "out"), stream,
                heads=(layer.heads, layer.qk_dim, layer.v_dim), keys=stream.shape[2], causal=True,
                turns=turns, gains=None if gains is None else torch.stack(gains),
            )  # fmt: skip
        else:
            normed = _norm(params, f"{name}.norm1", stream)
            if penalties is not None:
                added = self.variant.penalty(params, name, normed)
                penalties += [] if added is None else [added]
            stream = stream + self._attend(params, name, layer, normed)
        if not self.ffn:
            return stream
        if steps is not None:
            parts = "norm2", "up", "down"
            return _sub_layer(steps, params, name, parts, stream, activation="gelu")
        hidden = linear(_norm(params, f"{name}.norm2", stream), params, f"{name}.up")
        return stream + linear(gelu(hidden), params, f"{name}.down")

    def _turns_and_gains(
        self, params: Params, name: str, layer: AttentionShape, stream: Stream
    ) -> tuple[Tensor | None, tuple[Tensor, Tensor] | None]:
        """The rotation, and the gains of the norms of queries and keys, where there are any."""
        gains = None
        if self.qk_norm:
            gains = params[f"{name}.query_norm.weight"], params[f"{name}.key_norm.weight"]
        rope = self.positions == "rope"
        return rotation(stream.shape[2], layer.qk_dim, stream.device) if rope else None, gains

    def _attend(self, params: Params, name: str, layer: AttentionShape, stream: Stream) -> Stream:
        variant, length = self.variant, stream.shape[2]
        turns, gains = self._turns_and_gains(params, name, layer, stream)
        if isinstance(variant, PlainHeads):
            rows = linear(stream, params, f"{name}.qkv")
            mixed = read_heads(rows, layer, keys=length, causal=True, turns=turns, gains=gains)
            return linear(mixed, params, f"{name}.out")
        query, key, value = project(stream, params, name, layer, variant.maps(layer))
        if gains is not None:
            query, key = head_norms(query, key, gains)
        if turns is not None:
            query, key = rotate(query, turns), rotate(key, turns)
        seen = sight(variant, query.shape[2], length, self.length, stream.device)
        query = query / sqrt(layer.qk_dim)
        mixed = mix_heads(variant, params, name, stream, query, key, value, seen)
        return linear(merge_heads(mixed), params, f"{name}.out")

    def _check(self, inputs: Tensor) -> None:
        if self.vocabulary:
            require(
                not inputs.is_floating_point(),
                "the decoder takes token numbers (integers), one for each position",
            )
        else:
            require(
                inputs.shape[-1] == self.token_dim,
                f"tokens have {inputs.shape[-1]} numbers; the decoder takes {self.token_dim}",
            )
        require(
            inputs.shape[2] <= self.length,
            f"the sequence has {inputs.shape[2]} tokens; the decoder takes up to {self.length}",
        )


def _sub_layer(
    steps: Compiled, params: Params, name: str, parts: Sequence[str], stream: Stream, **how: Any
) -> Stream:
    """Norm, two maps with heads or GELU between them and residual connection, as one step."""
    norm, into, out = (params[f"{name}.{part}.weight"] for part in parts)
    return steps.sub_layer(
        stream, (into, None), (out, None), ("rms", norm, None), norm_first=True, **how
    )


def _norm(params: Params, name: str, stream: Stream) -> Stream:
    return rms_norm(stream, params[f"{name}.weight"][:, None, None])


class DecoderNet(Net[DecoderShape]):
    """A decoder, of token numbers (batch, length) or real tokens (batch, length, token_dim)."""

    shape_type = DecoderShape
    described = "decoder"
