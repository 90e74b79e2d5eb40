"""Schedules: what their names say, at equal attention parameters, for any budget that can be."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.allocation import SCHEDULES, attention_parameters, between, fitted, schedule
from headwise.core.errors import InputError
from headwise.nets import AttentionShape

FULL = {"layers": 6, "width": 384, "budget": 6 * 4 * 384 * 384}


@given(
    name=st.sampled_from(list(SCHEDULES)),
    layers=st.integers(1, 14),
    width=st.integers(16, 400),
    multiple=st.sampled_from([1, 2, 4, 8, 16]),
    fraction=st.floats(0, 3),
    seed=st.integers(0, 5),
)
@settings(max_examples=150, deadline=None)
def test_every_schedule_spends_the_budget_up_to_one_multiple(
    name: str, layers: int, width: int, multiple: int, fraction: float, seed: int
) -> None:
    least = layers * 4 * width * multiple
    budget = least + int(fraction * 4 * width * width * layers)
    shapes = schedule(name, layers=layers, width=width, budget=budget, multiple=multiple, seed=seed)
    assert len(shapes) == layers
    left = budget - attention_parameters(width, shapes)
    room = [s.heads for s in shapes if min(s.qk_dim, s.v_dim) + multiple <= width]
    assert 0 <= left < 2 * width * multiple * (min(room) if room else 2 * layers)
    for shape in shapes:
        assert shape.qk_dim % multiple == shape.v_dim % multiple == 0
        assert max(shape.qk_dim, shape.v_dim) <= width


def sizes(name: str, **changes: int) -> list[AttentionShape]:
    return list(schedule(name, **(FULL | changes)))


def share(shape: AttentionShape) -> int:
    return shape.heads * (shape.qk_dim + shape.v_dim)


def test_schedules_are_what_they_are_called() -> None:
    assert set(sizes("uniform")) == {AttentionShape(heads=6, qk_dim=64, v_dim=64)}
    early = sizes("early-heavy")
    assert len({shape.heads for shape in early}) == 1
    assert [shape.qk_dim for shape in early] == sorted((s.qk_dim for s in early), reverse=True)
    assert early[0].qk_dim == 3 * early[-1].qk_dim
    prism = sizes("wide-then-many")
    assert [shape.heads for shape in prism] == sorted(shape.heads for shape in prism)
    assert prism[0].qk_dim == 4 * prism[-1].qk_dim
    assert max(map(share, prism)) < 1.1 * min(map(share, prism))
    rising = sizes("rising")
    assert [shape.heads for shape in rising] == [4, 5, 6, 6, 7, 8]
    many = sizes("many-then-one")
    assert [shape.heads for shape in many] == [12, 1, 1, 1, 1, 1]


def test_a_random_schedule_is_a_function_of_its_seed() -> None:
    assert sizes("random", seed=1) == sizes("random", seed=1)
    assert sizes("random", seed=1) != sizes("random", seed=2)


def test_where_the_budget_divides_evenly_uniform_is_uniform() -> None:
    for width in (64, 96, 128, 256, 512):
        shapes = schedule("uniform", layers=5, width=width, budget=5 * 4 * width * width)
        assert len(set(shapes)) == 1
        assert attention_parameters(width, shapes) == 5 * 4 * width * width


def test_impossible_wishes_get_a_sentence() -> None:
    with pytest.raises(InputError, match="no schedule is called 'falling'"):
        sizes("falling")
    with pytest.raises(InputError, match="smallest possible one, 36,864: one head of dimension 4"):
        sizes("uniform", budget=36_863)
    assert sizes("rising", budget=36_864) == [AttentionShape(heads=1, qk_dim=4, v_dim=4)] * 6
    with pytest.raises(InputError, match="multiple must be"):
        sizes("uniform", multiple=0)


def test_the_first_layer_can_have_more_heads_than_its_share_allows() -> None:
    few = {"layers": 4, "width": 64, "budget": 4 * 4 * 64 * 16}
    assert [each.heads for each in schedule("uniform", heads=2, **few)] == [2] * 4
    more = schedule("uniform", heads=2, first_heads=6, **few)
    assert [each.heads for each in more] == [6, 2, 2, 2]
    assert attention_parameters(64, more) <= few["budget"]
    assert share(more[0]) > share(more[1])


def test_fitted_layers_keep_their_heads_and_shares() -> None:
    half = {"width": 192, "budget": FULL["budget"] // 4, "multiple": 2}
    for name in SCHEDULES:
        full = sizes(name)
        small = fitted(full, **half)
        assert [each.heads for each in small] == [each.heads for each in full]
        assert fitted(full, width=384, budget=FULL["budget"]) == tuple(full)
        assert all(
            share(a) == pytest.approx(2 * share(b), rel=0.2)
            for a, b in zip(full, small, strict=True)
        )


def test_between_two_is_between_them() -> None:
    first, second = sizes("uniform"), sizes("wide-then-many")
    middle = between(first, second, width=384, budget=FULL["budget"])
    for a, m, b in zip(first, middle, second, strict=True):
        assert min(a.heads, b.heads) <= m.heads <= max(a.heads, b.heads)
    assert between(first, first, width=384, budget=FULL["budget"]) == tuple(first)


@pytest.mark.parametrize("multiple", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("budget", [12_000, 20_011, 60_000])
def test_small_budgets_do_not_split_into_heads_of_the_smallest_multiple(
    multiple: int, budget: int
) -> None:
    for shape in schedule("uniform", layers=4, width=63, budget=budget, multiple=multiple):
        assert shape.qk_dim + shape.v_dim >= 12, shape
