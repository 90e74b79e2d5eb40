"""A finished run, as stores hold it."""

from typing import Any

from headwise.lab.work import Record


def finished(key: str, specification: str, seed: int, result: dict[str, Any]) -> Record:
    return Record(
        key=key,
        specification=specification,
        seed=seed,
        status="done",
        result=result,
        versions={"headwise": "0"},
        wall_seconds=1.5,
        cpu_seconds=1.25,
        cpu="some processor",
        finished="2026-01-01T00:00:00+00:00",
    )
