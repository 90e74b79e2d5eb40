"""How results show themselves: as text in a notebook too, and as a table for pandas."""

import html
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


class Printed:
    """A result whose text says it all: a notebook shows what `print` does."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Tabled:
    """A result that is a table: rows with the same keys."""

    def records(self) -> list[dict[str, Any]]:
        """The rows."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The rows as JSON; numbers that JSON cannot hold, NaN and ±∞, are null."""
        rows = [{key: _held(value) for key, value in row.items()} for row in self.records()]
        return json.dumps(rows, ensure_ascii=False, allow_nan=False)

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a data frame."""
        import pandas as pd  # takes a third of a second, which the theory should not cost

        return pd.DataFrame(self.records())


def _held(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
