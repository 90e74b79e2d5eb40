"""Results that read well wherever they are shown: terminal, notebook, pandas, figure, page."""

import html
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from headwise.core.files import check_page
from headwise.core.lazy import Drawn, named
from headwise.core.lines import fitted


class Shown(Drawn, ABC):
    """A table and a few sentences, with figures; what they are is for the subclass to say."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What a page about it is called."""

    keys: ClassVar[int] = 1
    """How many first columns of `cells` say what a row is."""

    @abstractmethod
    def to_pandas(self) -> pd.DataFrame:
        """The main numbers."""

    @abstractmethod
    def cells(self) -> pd.DataFrame:
        """The main numbers as a person reads them: rounded, with titles."""

    @abstractmethod
    def sentences(self) -> list[str]:
        """What the numbers say."""

    def report(self, path: str | Path) -> Path:
        """Write a self-contained page with the sentences, the figures and the table."""
        check_page(path, "the report")
        named("headwise.report.result_page:write_page")(self, path)
        return Path(path)

    def __str__(self) -> str:
        return "\n".join([fitted(self.cells(), self.keys), "", *self.sentences()])

    def _repr_html_(self) -> str:
        """Notebooks show the table and the sentences."""
        items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.sentences())
        return f"{self.cells().to_html(index=False, border=0)}<ul>{items}</ul>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def called(name: str) -> str:
    """What a title calls a model: a hub id as it is, a folder by its last part."""
    local = name.startswith((".", "/", "~")) or Path(name).is_absolute()
    return (Path(name).resolve().name or name) if local else name
