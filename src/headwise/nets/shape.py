"""The shape of a class-token network, as data."""

import itertools
from typing import Literal

from headwise.core.errors import require
from headwise.core.spec import spec


@spec
class AttentionShape:
    """One attention layer: `heads` heads, each with its query–key rank and value dimension."""

    heads: int
    qk_dim: int
    v_dim: int

    def __post_init__(self) -> None:
        for name in ("heads", "qk_dim", "v_dim"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; the least is 1")


@spec
class MLPShape:
    """Hidden widths, input side first, and the activation between layers."""

    widths: tuple[int, ...]
    activation: Literal["relu", "gelu"]

    def __post_init__(self) -> None:
        require(
            all(width >= 1 for width in self.widths), "the width of a hidden layer is at least 1"
        )
        require(self.activation in ("relu", "gelu"), "an activation is 'relu' or 'gelu'")


@spec
class ClassTokenShape:
    """The network of the head-count paper.

    Tokens are embedded by an MLP, a trainable class token is appended, attention layers follow,
    and a second MLP reads the class token. `positions` is 0, or the length up to which a learned
    table of positions reaches: "add" adds it to the embedded tokens, "concat" appends a one-hot
    position to the token before the embedding. `scaled` divides scores by √qk_dim.
    """

    token_dim: int
    embed_dim: int
    layers: tuple[AttentionShape, ...]
    embed: MLPShape
    readout: MLPShape
    outputs: int = 1
    positions: int = 0
    position_kind: Literal["add", "concat"] = "add"
    class_token_is_key: bool = True
    scaled: bool = True
    residual: bool = False
    norm: bool = False

    def __post_init__(self) -> None:
        for name in ("token_dim", "embed_dim", "outputs"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; the least is 1")
        require(len(self.layers) >= 1, "a class-token network has at least one attention layer")
        require(self.positions >= 0, "positions is 0 (none) or a number of positions")
        require(self.position_kind in ("add", "concat"), "position_kind is 'add' or 'concat'")

    @classmethod
    def standard(
        cls,
        *,
        token_dim: int,
        heads: int,
        head_dim: int = 8,
        width: int = 32,
        layers: int = 1,
        residual: bool = False,
        norm: bool = False,
        outputs: int = 1,
    ) -> "ClassTokenShape":
        """The paper's network: E = heads·head_dim, ReLU embedding and GELU readout of one width."""
        require(heads >= 1, f"heads is {heads}; the least is 1")
        require(head_dim >= 1, f"head_dim is {head_dim}; the least is 1")
        require(layers >= 1, f"layers is {layers}; the least is 1")
        shape = AttentionShape(heads=heads, qk_dim=head_dim, v_dim=head_dim)
        return cls(
            token_dim=token_dim,
            embed_dim=heads * head_dim,
            layers=(shape,) * layers,
            embed=MLPShape(widths=(width,), activation="relu"),
            readout=MLPShape(widths=(width,), activation="gelu"),
            residual=residual,
            norm=norm,
            outputs=outputs,
        )

    @classmethod
    def fixed_width(
        cls, *, token_dim: int, heads: int, total: int = 32, width: int = 32, layers: int = 1
    ) -> "ClassTokenShape":
        """The paper's fixed-total-width variant: ⌈total/heads⌉ dimensions a head."""
        require(heads >= 1, f"heads is {heads}; the least is 1")
        return cls.standard(
            token_dim=token_dim,
            heads=heads,
            head_dim=-(-total // heads),
            width=width,
            layers=layers,
        )

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every parameter, in the order in which they are initialised."""
        dim, shapes = self.embed_dim, dict[str, tuple[int, ...]]()

        def linear(name: str, out: int, into: int) -> None:
            shapes[f"{name}.weight"] = (out, into)
            shapes[f"{name}.bias"] = (out,)

        def mlp(name: str, sizes: list[int]) -> None:
            for index, (into, out) in enumerate(itertools.pairwise(sizes)):
                linear(f"{name}.{index}", out, into)

        mlp("embed", [self.token_dim, *self.embed.widths, dim])
        if self.positions:
            added = self.position_kind == "add" or not self.embed.widths
            shapes["positions"] = (self.positions, dim if added else self.embed.widths[0])
        shapes["class_token"] = (dim,)
        for index, layer in enumerate(self.layers):
            linear(f"layers.{index}.query", layer.heads * layer.qk_dim, dim)
            linear(f"layers.{index}.key", layer.heads * layer.qk_dim, dim)
            linear(f"layers.{index}.value", layer.heads * layer.v_dim, dim)
            linear(f"layers.{index}.out", dim, layer.heads * layer.v_dim)
            if self.norm:
                shapes[f"layers.{index}.norm.weight"] = (dim,)
                shapes[f"layers.{index}.norm.bias"] = (dim,)
        mlp("readout", [dim, *self.readout.widths, self.outputs])
        return shapes

    def params(self) -> dict[str, int]:
        """Parameters by part; "mlp" is what the paper's M counts (embedding and readout)."""
        counts = {"embedding": 0, "attention": 0, "readout": 0}
        for name, shape in self.parameter_shapes().items():
            size = shape[0] * (shape[1] if len(shape) == 2 else 1)
            first = name.split(".")[0]
            part = {"embed": "embedding", "positions": "embedding", "readout": "readout"}
            counts[part.get(first, "attention")] += size
        counts["mlp"] = counts["embedding"] + counts["readout"]
        counts["total"] = counts["mlp"] + counts["attention"]
        return counts
