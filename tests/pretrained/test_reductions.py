"""Reductions against dense references and independent optima."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import small_material, small_model

from headwise.pretrained import (
    Budget,
    CompressionPlan,
    apply_plan,
    compress,
    make_plan,
    measure_model,
)
from headwise.pretrained.measure.certificate import certify
from headwise.pretrained.measure.memory import described, passes
from headwise.pretrained.measure.moments import collect_moments
from headwise.pretrained.plan.cutting import resized
from headwise.pretrained.plan.reductions import LayerReductions, narrowing, order_pairs
from headwise.pretrained.plan.shapes import GroupShape, LayerShape, full_shape


def random_moment(size: int, rng: np.random.Generator) -> torch.Tensor:
    factor = torch.from_numpy(rng.standard_normal((size, size)))
    return factor @ factor.T


@given(size=st.integers(2, 9), seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_narrowing_is_the_best_map_of_its_rank(size: int, seed: int) -> None:
    """Its damage equals the closed form, and no random map of the same rank does better."""
    rng = np.random.default_rng(seed)
    gradient, value = random_moment(size, rng), random_moment(size, rng)
    found = narrowing(gradient[None], value[None])
    rank = int(rng.integers(1, size))

    def damage(t: torch.Tensor) -> float:
        rest = torch.eye(size, dtype=torch.float64) - t
        return float(torch.trace(gradient @ rest @ value @ rest.T)) / 2

    best = damage(found.back[0, :, :rank] @ found.into[0, :rank])
    assert best == pytest.approx(float(found.damage[0, rank]), rel=1e-6, abs=1e-8)
    for _ in range(20):
        left = found.back[0, :, :rank] + 0.1 * torch.from_numpy(rng.standard_normal((size, rank)))
        right = found.into[0, :rank] + 0.1 * torch.from_numpy(rng.standard_normal((rank, size)))
        assert damage(left @ right) >= best - 1e-9


def test_pairs_are_dropped_at_the_least_damage_with_their_gains_refitted() -> None:
    rng = np.random.default_rng(0)
    pairs, queries = 4, 2
    fisher = random_moment(2 * pairs * queries, rng)
    order = order_pairs(fisher, queries)
    # One pair dropped: try all four, with a general-purpose least squares for the other gains.
    index = np.arange(2 * pairs * queries).reshape(2 * queries, pairs)
    root = torch.linalg.cholesky(fisher).T.numpy()
    damages = []
    for pair in range(pairs):
        dropped = np.zeros(2 * pairs * queries)
        dropped[index[0::2, pair]] = -1
        free = np.delete(index, pair, axis=1).ravel()
        solution = np.linalg.lstsq(root[:, free], -root @ dropped, rcond=None)[0]
        damages.append(0.5 * np.square(root @ dropped + root[:, free] @ solution).sum())
    assert int(order.order[-1]) == int(np.argmin(damages))
    assert float(order.damage[pairs - 1]) == pytest.approx(min(damages), rel=0.01)


def dense_reference(
    x: torch.Tensor, model: torch.nn.Module, shape: LayerShape, measurement: object
) -> torch.Tensor:
    """Layer 0's attention, one query head at a time, in the plainest way, with zeroed pairs."""
    site, layer = measurement.sites[0], measurement.reductions[0]  # type: ignore[attr-defined]
    q, k, v, o = layer.weights
    dim, length = site.head_dim, x.shape[0]
    position = torch.arange(length, dtype=torch.float64)
    theta = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    turn = torch.polar(torch.ones(length, dim // 2, dtype=torch.float64), position[:, None] * theta)
    result = torch.zeros(length, site.hidden, dtype=torch.float64)
    for head in range(site.heads):
        group = head // site.group_size
        kept = shape.groups[group]
        out = o.weight[:, head * dim : (head + 1) * dim].double()
        mean = layer.moments.context_mean[head]
        if head not in kept.heads:
            result += out @ mean
            continue

        def rows(affine: object, index: int) -> torch.Tensor:
            part = slice(index * dim, (index + 1) * dim)
            return x @ affine.weight[part].double().T + affine.bias[part].double()  # type: ignore[attr-defined]

        def turned(heads: torch.Tensor) -> torch.Tensor:
            return torch.complex(heads[:, : dim // 2], heads[:, dim // 2 :]) * turn

        queries, keys, values = turned(rows(q, head)), turned(rows(k, group)), rows(v, group)
        count = kept.qk_dim // 2
        order = layer.pairs[group]
        gain = torch.zeros(dim // 2, dtype=torch.complex128)
        pairs, member = order.order[:count], head % site.group_size
        real, imaginary = order.gains[count, 2 * member : 2 * member + 2, pairs]
        gain[pairs] = torch.complex(real, imaginary)
        scores = (queries * gain @ keys.conj().T).real * site.scaling
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        context = scores.softmax(-1) @ values
        if kept.v_dim < dim:
            into = layer.values.into[group, : kept.v_dim]
            covariance = layer.moments.context[head] - torch.outer(mean, mean)
            back = covariance @ into.T @ torch.linalg.inv(into @ covariance @ into.T)
            context = mean + (context - mean) @ (back @ into).T
        result += context @ out.T
    return result + (0 if o.bias is None else o.bias.double())


def test_grouped_queries_every_head_equals_a_dense_reference() -> None:
    """Nine query heads on three key heads: full, cut in both ways, one with a head removed."""
    model = small_model("llama-biased")
    measurement = measure_model(model, small_material(model))
    measurement.reductions = [told_nothing_of_others(layer) for layer in measurement.reductions]
    groups = (
        GroupShape(heads=(0, 1, 2), qk_dim=8, v_dim=8),
        GroupShape(heads=(3, 5), qk_dim=4, v_dim=3),
        GroupShape(heads=(6, 7, 8), qk_dim=6, v_dim=8),
    )
    shape = LayerShape(groups=groups)
    plan = CompressionPlan(model=measurement.identity, method="fisher", layers=(shape, shape))
    smaller = apply_plan(model, measurement, plan)
    x = torch.randn(1, 12, 36, generator=torch.Generator().manual_seed(0))
    rotary = smaller.model.rotary_emb(x, torch.arange(12)[None])
    with torch.no_grad():
        found, _ = smaller.model.layers[0].self_attn(
            x, position_embeddings=rotary, attention_mask=None
        )
    expected = dense_reference(x[0].double(), model, shape, measurement)
    torch.testing.assert_close(found[0].double(), expected, rtol=1e-4, atol=1e-4)


def told_nothing_of_others(layer: LayerReductions) -> LayerReductions:
    return replace(layer, moments=replace(layer.moments, all_context=None))


def test_other_heads_tell_what_was_cut_off() -> None:
    """A head with a twin can go; and the output fits the calibration text better, on all heads."""
    model = small_model("bert")
    attention = model.encoder.layer[0].attention.self
    with torch.no_grad():
        for part in (attention.query, attention.key, attention.value):
            for tensor in (part.weight, part.bias):
                first, second, *_ = torch.unflatten(tensor, 0, (attention.num_attention_heads, -1))
                second.copy_(first)
    material = small_material(model)
    measurement = measure_model(model, material)
    whole = [full_shape(site) for site in measurement.sites]
    groups = list(whole[0].groups)
    groups[1] = GroupShape(heads=(), qk_dim=0, v_dim=0)
    gone = LayerShape(groups=tuple(groups))
    cut = resized(whole[0], whole[0].groups[0].qk_dim, 5)

    def changes(shape: LayerShape) -> tuple[float, float]:
        """Of the layer's outputs on calibration text: by all heads, and each by its own."""
        plan = CompressionPlan(
            model=measurement.identity, method="fisher", layers=(shape, *whole[1:])
        )
        alone = [told_nothing_of_others(layer) for layer in measurement.reductions]
        found = []
        for layers in (measurement.reductions, alone):
            smaller = apply_plan(model, replace(measurement, reductions=layers), plan)
            with torch.no_grad():
                pairs = [
                    [
                        m(**batch, output_hidden_states=True).hidden_states[1]
                        for m in (model, smaller)
                    ]
                    for batch in material.calibration
                ]
            found.append(sum(float((a - b).square().sum()) for a, b in pairs))
        return found[0], found[1]

    together, alone = changes(gone)
    assert alone > 1
    assert together < alone / 100
    together, alone = changes(cut)
    assert together < 0.9 * alone


@pytest.mark.parametrize("name", ["llama", "bert", "gpt2"])
@pytest.mark.parametrize("counts", ["parameters", "cache"])
def test_certificates_hold_on_the_inputs_they_speak_of(name: str, counts: str) -> None:
    model = small_model(name)
    material = small_material(model)
    measurement = measure_model(model, material)
    plan = make_plan(measurement, Budget(0.7, counts))
    heads = certify(
        model, measurement.sites, measurement.reductions, plan.layers, material.calibration
    )
    assert any(head.measured > 1e-3 for head in heads)
    assert all(head.measured <= head.bound + 1e-5 for head in heads)
    assert all(head.mean_bound <= head.bound + 1e-6 for head in heads)


@pytest.mark.parametrize("name", ["bert", "bert-masked", "vit"])
def test_allocation_beats_the_baselines_even_on_small_random_models(name: str) -> None:
    model = small_model(name)
    material = small_material(model)
    measurement = measure_model(model, material)
    damage = {
        method: compress(
            model, text=material, keep=0.7, method=method, measurement=measurement, time_it=False
        ).evaluation.damage
        for method in ("fisher", "uniform-svd", "prune-heads", "random")
    }
    for method in ("uniform-svd", "prune-heads", "random"):
        assert damage["fisher"] < damage[method]


def test_measuring_is_reproducible_and_the_same_one_layer_at_a_time() -> None:
    model = small_model("llama")
    material = small_material(model)
    measurement = measure_model(model, material)
    plan = make_plan(measurement, Budget(0.6))
    assert plan == make_plan(measure_model(model, material), Budget(0.6))
    runs = passes(measurement.sites, memory=1)
    assert [len(run) for run in runs] == [1, 1]
    for run, layer in zip(runs, measurement.reductions, strict=True):
        (alone,) = collect_moments(model, run, material.calibration, measurement.objective, 0)
        torch.testing.assert_close(alone.context_gradient, layer.moments.context_gradient)
        torch.testing.assert_close(alone.query, layer.moments.query)


def test_what_a_measurement_takes_is_said_before_it_begins() -> None:
    """Two layers of 7 billion parameters' size hold nearly a gigabyte of sums each."""
    model = small_model("llama")
    material, said = small_material(model), list[str]()
    measure_model(model, material, memory=1e-9, on_progress=lambda _, doing: said.append(doing))
    assert said[0] == "measuring sensitivity, pass 1 of 2"
    (site, _) = measure_model(model, material).sites
    large = replace(site, hidden=4096, heads=32, kv_heads=32, head_dim=128)
    assert described([[large, large]], 0) == "measuring sensitivity, 1.7 GB"
