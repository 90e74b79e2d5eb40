"""Text made fit for HTML: nothing that a name holds can become an element."""

import base64
import json
import re
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

Html = Markup
"""Text that is HTML already."""

_ARXIV = re.compile(r"\b(?:arXiv[: ])?(\d{4}\.\d{5})(?:v\d+)?\b")
_POWER = re.compile(r"(?<=\w)\^([-−+]?\d+(?:\.\d+)?|k\b)")
_CODE = re.compile(r"`([^`]+)`|(?<![\w-])(--[a-z][a-z-]*)")


def linked(text: str) -> Html:
    """The text with links at arXiv numbers, raised powers, and `code` and --options as code."""
    link = r'<a href="https://arxiv.org/abs/\1" rel="noreferrer">arXiv \1</a>'
    safe = _ARXIV.sub(link, str(raised(text)))  # Markup would escape what is put in
    return Markup(_CODE.sub(lambda found: f"<code>{_in_words(found[1] or found[2])}</code>", safe))


def raised(text: str) -> Html:
    """Numbers in words, their powers raised; no number in them is taken for a paper's."""
    return Markup(_POWER.sub(r"<sup>\1</sup>", str(escape(text))))


def command(text: str) -> Html:
    """A command whose lines break between its words: not after the hyphens of an option."""
    return Markup(_in_words(str(escape(text))))


def _in_words(safe: str) -> str:
    return " ".join(f'<span class="word">{word}</span>' for word in safe.split(" "))


def anchor(text: str) -> str:
    """A heading's address within the page."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"


def inline_json(data: Any) -> Html:
    """Data for a script element: nothing in it may open or close an element."""
    return Markup(json.dumps(data, allow_nan=False).replace("<", "\\u003c"))


def data_address(content: bytes | str, kind: str) -> str:
    """The content as an address of its own, for a link that saves it."""
    if isinstance(content, str):
        return f"data:{kind};charset=utf-8,{quote(content)}"
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
