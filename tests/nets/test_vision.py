"""The vision transformer against the hub's; what the ranking encoder must not see."""

import numpy as np
import pytest
import torch
from torch import Tensor

from headwise.core.errors import InputError
from headwise.nets import (
    AttentionShape,
    RankerNet,
    RankerShape,
    VisionNet,
    VisionShape,
    stack,
)
from headwise.tasks.images.placement import patches_of


def vision(width: int = 32, heads: int = 4, head_dim: int = 8, **options: object) -> VisionShape:
    layer = AttentionShape(heads=heads, qk_dim=head_dim, v_dim=head_dim)
    return VisionShape(
        token_dim=48, patches=9, outputs=5, width=width, layers=(layer,) * 2, ffn=64, **options
    )


def ranker(packing: str) -> RankerShape:
    layer = AttentionShape(heads=2, qk_dim=8, v_dim=8)
    return RankerShape(token_dim=24, width=16, layers=(layer,) * 2, ffn=32, packing=packing)


def perturbed(params: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights in which no gain is one and no shift is zero."""
    rng = torch.Generator().manual_seed(3)
    return {k: v + 0.1 * torch.randn(v.shape, generator=rng) for k, v in params.items()}


def test_agrees_with_the_hubs_vit_at_equal_weights() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        image_size=12,
        patch_size=4,
        num_labels=5,
        hidden_dropout_prob=0.0,
    )
    torch.manual_seed(0)
    theirs = transformers.ViTForImageClassification(config).eval()
    with torch.no_grad():
        for value in theirs.parameters():
            value += 0.1 * torch.randn_like(value)
    hub = theirs.state_dict()

    def find(ending: str) -> Tensor:
        (name,) = [each for each in hub if each.endswith(ending)]
        return hub[name]

    def linear(name: str, theirs: str) -> dict[str, Tensor]:
        return {f"{name}.{kind}": find(f"{theirs}.{kind}") for kind in ("weight", "bias")}

    params = {
        "into.weight": find("patch_embeddings.projection.weight").flatten(1),
        "into.bias": find("patch_embeddings.projection.bias"),
        "class_token": find("cls_token")[0],
        "positions": find("position_embeddings")[0],
        **linear("norm", "vit.layernorm"),
        **linear("readout", "classifier"),
    }
    names = [name for name in hub if ".0." in name and name.endswith("weight")]
    old = any("attention.attention.query" in name for name in names)
    maps = (
        ("attention.attention.query", "attention.attention.key", "attention.attention.value")
        if old
        else ("q_proj", "k_proj", "v_proj")
    )
    for index in range(2):
        mine, layer = f"layers.{index}", f".{index}."
        ours = {k: v for k, v in hub.items() if layer in k}

        def inside(ending: str, ours: dict[str, Tensor] = ours) -> Tensor:
            (name,) = [each for each in ours if each.endswith(ending)]
            return ours[name]

        for kind in ("weight", "bias"):
            params[f"{mine}.qkv.{kind}"] = torch.cat([inside(f"{m}.{kind}") for m in maps])
            params[f"{mine}.norm1.{kind}"] = inside(f"layernorm_before.{kind}")
            params[f"{mine}.norm2.{kind}"] = inside(f"layernorm_after.{kind}")
            rest = {
                "out": "attention.output.dense" if old else "o_proj",
                "up": "intermediate.dense" if old else "fc1",
                "down": f"{index}.output.dense" if old else "fc2",
            }
            for name, place in rest.items():
                params[f"{mine}.{name}.{kind}"] = inside(f"{place}.{kind}")
    images = torch.randint(0, 256, (3, 12, 12, 3), dtype=torch.uint8)
    pixels = images.permute(0, 3, 1, 2).float() * 2 / 255 - 1
    with torch.no_grad():
        wanted = theirs(pixels).logits
        found = VisionNet(vision(), params)(patches_of(images, 4))
    assert (found - wanted).abs().max() < 1e-5


def test_heads_dimensions_and_width_are_free_of_each_other() -> None:
    shape = vision(width=24, heads=3, head_dim=4)
    images = torch.randn(2, 9, 48)
    assert VisionNet(shape)(images).shape == (2, 5)
    attention = 24 * (2 * 12 + 12) + 36 + 24 * 12 + 24
    assert shape.params()["attention"] == 2 * attention
    assert shape.params()["total"] == sum(v.numel() for v in shape.initial_params(0).values())


@pytest.mark.parametrize("shape", [vision(), ranker("candidates"), ranker("pairs")])
def test_members_of_a_stack_are_what_they_are_alone(shape: VisionShape | RankerShape) -> None:
    sizes = {"pairs": (3, 4, 6), "candidates": (3, 5)}
    size = sizes[shape.packing] if isinstance(shape, RankerShape) else (3, 9)
    inputs = torch.randn(2, *size, shape.token_dim)
    nets = [perturbed(shape.initial_params(seed)) for seed in (0, 1)]
    together = shape.forward(stack(nets), inputs)
    for number, net in enumerate(nets):
        alone = shape.forward(stack([net]), inputs[number : number + 1])
        assert torch.allclose(together[number], alone[0], atol=1e-5)


def test_candidates_have_no_order() -> None:
    net = RankerNet(ranker("candidates"))
    sequence = torch.randn(2, 7, 24)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    moved = torch.cat([sequence[:, :1], sequence[:, 1:][:, order]], 1)
    with torch.no_grad():
        assert torch.allclose(net(moved), net(sequence)[:, order], atol=1e-5)


def test_padding_is_not_read_and_pairs_are_scored_one_by_one() -> None:
    net = RankerNet(ranker("pairs"))
    pairs = torch.randn(2, 3, 5, 24)
    longer = torch.cat([pairs, torch.zeros(2, 3, 4, 24)], 2)
    with torch.no_grad():
        scores = net(pairs)
        assert scores.shape == (2, 3)
        assert torch.allclose(net(longer), scores, atol=1e-5)
        assert torch.allclose(net(pairs[:, 1:2]), scores[:, 1:2], atol=1e-5)


def test_wrong_inputs_get_sentences(tmp_path: object) -> None:
    with pytest.raises(InputError, match="takes 9"):
        VisionNet(vision())(torch.randn(2, 4, 48))
    with pytest.raises(InputError, match="48"):
        VisionNet(vision())(torch.randn(2, 9, 40))
    with pytest.raises(InputError, match="5 axes"):
        RankerNet(ranker("pairs"))(torch.randn(2, 4, 24))
    with pytest.raises(InputError, match="dropout"):
        vision(dropout=1.0)
    with pytest.raises(InputError, match="packing"):
        ranker("rows")


def test_a_saved_net_comes_back(tmp_path: object) -> None:
    net = VisionNet(vision(), seed=4)
    net.save_pretrained(str(tmp_path))
    again = VisionNet.from_pretrained(str(tmp_path))
    images = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 9, 48)).astype(np.float32))
    assert torch.equal(net(images), again(images))
