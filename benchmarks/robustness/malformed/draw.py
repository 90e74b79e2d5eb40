"""What malformed input is drawn from: words, JSON, and files that are damaged."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from malformed.case import HERE

WORDS = st.sampled_from(
    [
        "",
        "0",
        "-1",
        "1",
        "2.5",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "9" * 400,
        "abc",
        "[x]",
        "é",
        " ",
        ",",
        "1,2,x",
        "no/such",
        "/proc/no",
        HERE,
        "<script>",
        "%s%n",
        "os:system",
        "true",
        "1e-320",
        "٣",
        "²",
        "1_000",
        "0x10",
        " 7 ",
        "-0",
        "1" + "0" * 30,
        "-" + "9" * 19,
        "a\nb",
        "a\0b",
        "-",
        "--",
        "~",
        "..",
        "CON",
        "\u202e\x1b[2J",
        "é" * 200,
        "file:///etc/passwd",
        "http://127.0.0.1:9/x",
    ]
) | st.text(max_size=8).filter(lambda text: "\0" not in text and not text.startswith("-"))
JSON_VALUES = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        2.5,
        1e308,
        "",
        "x",
        [],
        ["x"],
        {},
        {"type": ["x"]},
        {"type": "Run"},
        [[[]]],
        {"type": "Function", "function": "os:system", "count": 1},
        10**30,
        "é" * 200,
    ]
)
HOSTILE_JSON = st.sampled_from(
    [
        b"[" * 50000,
        b'{"a":' * 50000,
        b"1" * 100000,
        b"NaN",
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'{"type": ["x"]}',
        b'{"type": {}}',
        b'"text"',
        b'{"type": "AllocationPlan"}',
        b'{"type": "Run", "type": "AllocationPlan"}',
        b"1e999",
    ]
)


def changed_json(value: Any) -> SearchStrategy[bytes]:
    """The JSON with one value somewhere replaced, removed or nested."""
    places = list(_places(value))

    def change(place: tuple[Any, ...], new: Any, remove: bool) -> bytes:
        copy = json.loads(json.dumps(value))
        if not place:
            return json.dumps(new).encode()
        parent = copy
        for step in place[:-1]:
            parent = parent[step]
        if remove and isinstance(parent, dict):
            del parent[place[-1]]
        else:
            parent[place[-1]] = new
        return json.dumps(copy).encode()

    return st.builds(change, st.sampled_from(places), JSON_VALUES, st.booleans()) | HOSTILE_JSON


def _places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield here
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from _places(item, (*here, key))


def damaged(content: bytes) -> SearchStrategy[bytes]:
    """The file cut short, with bytes changed, doubled, or something else altogether."""
    size = len(content)

    def flip(places: list[int], values: bytes) -> bytes:
        copy = bytearray(content)
        for place, new in zip(places, values * len(places), strict=False):
            copy[place] = new
        return bytes(copy)

    return st.one_of(
        st.integers(0, size - 1).map(lambda cut: content[:cut]),
        st.builds(
            flip,
            st.lists(st.integers(0, size - 1), min_size=1, max_size=30),
            st.binary(min_size=1, max_size=9),
        ),
        st.builds(
            flip,
            st.lists(st.integers(0, min(99, size - 1)), min_size=1, max_size=4),
            st.binary(min_size=1, max_size=4),
        ),
        st.binary(max_size=60),
        st.just(content * 2),
        st.just(b""),
    )


ANY_TEXT = st.binary(max_size=400) | st.just(b"") | st.just(b"a" * 50)
