"""The style and the scripts of a page without what only their readers need: comments and layout.

A page holds both in full, and every result has a page of its own. These are the rules that the
files of this folder can bear, not those of the languages at large: a comment has two spaces before
it and one after its slashes, and no string or pattern spans lines or holds such a mark.
"""

import re

_ENDS_NOTHING = ";,{([=>&|?:"  # at the end of a line; after any other mark the line break may count


def squeezed(name: str, text: str) -> str:
    """The text of a .css or .js file on few lines, with the same meaning."""
    return _style(text) if name.endswith(".css") else _script(text)


def _style(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"\s*([{};,])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()


def _script(text: str) -> str:
    lines = (re.sub(r"(^|  )// .*", "", line).strip() for line in text.splitlines())
    made = ""
    for line in filter(None, lines):
        made += line if not made or made[-1] in _ENDS_NOTHING else f"\n{line}"
    return made
