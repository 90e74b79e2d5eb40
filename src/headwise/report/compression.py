"""Charts of a compression: what is left of each head, and how far its attention moves."""

import altair as alt

from headwise.pretrained.compressed import Compressed
from headwise.report.inspection import heat_map
from headwise.report.theme import finished


def charts(result: Compressed) -> dict[str, alt.Chart]:
    """The charts by name."""
    heads = result.heads()
    largest = float(result.plan.model.get("head_dim") or heads[["qk_dim", "v_dim"]].max().max())
    shown = {
        "qk_dim": ("query–key dimensions left", largest),
        "v_dim": ("value dimensions left", largest),
        "bound": ("bound on the change of attention", 1.0),
        "measured": ("largest change of attention seen", 1.0),
    }
    return {
        name: heat_map(heads, name, title, ends=(0.0, top))
        for name, (title, top) in shown.items()
        if name in heads
    }


def draw(result: Compressed) -> alt.ConcatChart:
    """All of them, side by side."""
    parts = alt.concat(*charts(result).values(), columns=2).resolve_scale(color="independent")
    return finished(parts, result.title, result.sentences()[:1])
