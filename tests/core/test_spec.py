"""Specifications: one JSON form, one hash, no surprises."""

import hashlib
import json

import pytest

from headwise.core.errors import InputError
from headwise.core.spec import canonical_json, from_data, spec, spec_hash, to_data


@spec
class Inner:
    rate: float


@spec
class Outer:
    name: str
    inner: Inner
    sizes: tuple[int, ...] = (1, 2)


def test_round_trip_through_json_gives_an_equal_specification() -> None:
    outer = Outer(name="a", inner=Inner(rate=0.1))
    assert from_data(json.loads(canonical_json(outer))) == outer


def test_the_hash_depends_on_values_and_not_on_how_a_number_is_written() -> None:
    assert spec_hash(Inner(rate=1)) == spec_hash(Inner(rate=1.0))
    assert spec_hash(Inner(rate=1.0)) != spec_hash(Inner(rate=1.5))


def test_the_hash_is_stable_across_versions() -> None:
    text = '{"inner":{"rate":0.1,"type":"Inner"},"name":"a","sizes":[1,2],"type":"Outer"}'
    outer = Outer(name="a", inner=Inner(rate=0.1))
    assert canonical_json(outer) == text
    assert spec_hash(outer) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("rate", [float("nan"), float("inf")])
def test_numbers_that_json_cannot_hold_are_refused(rate: float) -> None:
    with pytest.raises(InputError, match="cannot hold"):
        canonical_json(Inner(rate=rate))


def test_a_function_must_be_named_by_its_path() -> None:
    with pytest.raises(InputError, match="module:function"):
        to_data(Outer(name=len, inner=Inner(rate=1)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"type": "Nothing"}, "unknown specification type"),
        ({"type": "Inner", "rate": 1, "colour": 2}, "has no field colour"),
        ({"type": "Inner"}, "rate"),
    ],
)
def test_foreign_data_gets_a_sentence(data: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        from_data(data)
