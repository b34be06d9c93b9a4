"""What a user types and sees: every file of transcripts/, where `...` stands for what varies. `python
tests/cli/test_transcripts.py NAME` writes what is seen now."""

import contextlib
import doctest
import json
import logging
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path[:0] = [] if "kit" in sys.modules else [str(Path(__file__).parents[1])]
from kit import plugin_files, small_runs, toys  # noqa: E402
from PIL import Image  # noqa: E402

from mmgen import __version__ as VERSION  # noqa: E402

HERE = Path(__file__).absolute().with_name("transcripts")
ROOT = HERE.parents[2]


def world(folder: Path) -> None:
    """What commands find: two finished runs, their recipes, pictures, and the files of transcripts/files."""
    shutil.copytree(HERE / "files", folder, dirs_exist_ok=True)
    for name in ("writes", "predicts"):
        shutil.copytree(small_runs.drawn(name), folder / name)
        shutil.copy(small_runs.recipe_of(name), folder)
    (folder / "toy.toml").write_text(f'plugins = ["my_words.py"]\n{toys.recipe(metrics={"length": {"type": "words"}})}')
    (folder / "bad.toml").write_text(toys.recipe(training={"epoch": 3}) + "[profiles.long.training]\nepochs = 0\n")
    (folder / "pictures").mkdir()
    for color in ("red", "green"):
        Image.new("RGB", (64, 64), color).save(folder / "pictures" / f"{color}.png")
    (folder / "pictures/broken.png").write_bytes(b"\x89PNG")
    for name, text in {"references": "what is it {}", "good": "what is {}", "same": "why ?"}.items():
        lines = [json.dumps({"id": n, "text": text.format(n)}) for n in range(6)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))


def play(transcript: str, folder: Path) -> str:
    """The transcript of the same commands now, each as in a new process: standard output, then standard error, then the
    exit code."""
    seen = ""
    for line in transcript.splitlines():
        if line.startswith("$ mmgen "):
            with plugin_files.forgotten():
                done = toys.mmgen_here(folder, *shlex.split(line)[2:])
            seen += f"{line}\n{done.stdout}{done.stderr}" + f"[{done.returncode}]\n" * bool(done.returncode)
    for text, name in {str(folder): "HERE", str(ROOT): "MMGEN", VERSION: "VERSION"}.items():
        seen = seen.replace(text, name)
    return re.sub(r"(?m)^(\w[\w: ]*\w) +\d+/\d+ .*$", r"\1 ...", seen)  # lines of progress


@pytest.mark.slow
@pytest.mark.parametrize("path", HERE.glob("*.txt"), ids=lambda path: path.stem)
def test_transcript(path, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    world(tmp_path)
    expected, seen = path.read_text(encoding="utf-8"), play(path.read_text(encoding="utf-8"), tmp_path)
    for was, now in zip(expected.split("$ mmgen "), seen.split("$ mmgen "), strict=True):
        assert doctest.OutputChecker().check_output(was, now, doctest.ELLIPSIS), f"{was}\nnow:\n{now}"


if __name__ == "__main__":
    logging.getLogger().addHandler(logging.NullHandler())  # as in pytest, notes of the log are not shown
    for place in [HERE / f"{name}.txt" for name in sys.argv[1:]] or HERE.glob("*.txt"):
        with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):
            world(Path(temporary))
            place.write_text(play(place.read_text(encoding="utf-8"), Path(temporary)), encoding="utf-8")
