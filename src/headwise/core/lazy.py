"""Names that are imported when they are first used.

Rooms import only from rooms on their left, at the top of their modules. Three things must reach to
the right, and do it here, by name: the front door (`import headwise` must not load torch), a
result's `figure()` (what draws is the report's, whatever room the result is from), and jobs that
may run elsewhere (whoever does them is the lab's, whatever room the work is from).
"""

from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar


def named(place: str) -> Any:
    """What 'module:name' names; 'module' alone is the module itself."""
    module, _, name = place.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found


class Drawn:
    """A result that the report knows how to draw."""

    drawn_by: ClassVar[str]
    """'module:function' in `headwise.report`: the result in, an Altair chart out."""

    def figure(self, path: str | Path | None = None) -> Any:
        """The result as an Altair chart; written to a .png, .svg, .pdf or .html file if asked."""
        chart = named(self.drawn_by)(self)
        if path is not None:
            named("headwise.report.files:save_chart")(chart, path)
        return chart

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """Notebooks show the figure."""
        return self.figure()._repr_mimebundle_(include, exclude)
