"""Charts of a compression: what is left of each head, and how far its attention moves."""

import altair as alt

from headwise.pretrained.compressed import Compressed
from headwise.report.inspection import heat_map
from headwise.report.theme import finished


def charts(result: Compressed) -> dict[str, alt.Chart]:
    """The charts by name."""
    heads = result.heads()
    shown = {
        "qk_dim": "query–key dimensions left",
        "v_dim": "value dimensions left",
        "bound": "bound on the attention's change (total variation)",
        "measured": "largest change of an attention row seen",
    }
    return {name: heat_map(heads, name, title) for name, title in shown.items() if name in heads}


def draw(result: Compressed) -> alt.ConcatChart:
    """All of them, side by side."""
    parts = alt.concat(*charts(result).values(), columns=2).resolve_scale(color="independent")
    return finished(parts, result.title, result.sentences()[:1])
