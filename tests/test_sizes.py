"""The house does not grow back: sizes stay under the ceilings of pyproject.toml, which follow what was reached.

Tokens are those of Python's tokenizer without comments and docstrings, so that no formatting changes them."""

import importlib.util
import io
import tokenize
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
CEILINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mmgen"]["ceilings"]
LAYOUT = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
UNCOUNTED = {"LOG", "SECURITY"}  # dated notes, which nobody needs to use mmgen
NOT_OURS = {"build", "__pycache__", "_generated", ".venv", "site"}


def files(folder: str, pattern: str) -> list[Path]:
    """Files below a folder of the root, without what building and running leave behind."""
    left_behind = NOT_OURS if folder in ("mmgen", "tests") else {*NOT_OURS, "runs"}
    return [path for path in (ROOT / folder).rglob(pattern) if not left_behind & {*path.relative_to(ROOT).parts}]


def lines_and_tokens(path: Path) -> tuple[int, int]:
    text, count, begins = path.read_text(encoding="utf-8"), 0, True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            count += token.type not in LAYOUT and not (begins and token.type == tokenize.STRING)
            begins = token.type in LAYOUT
    return text.count("\n"), count


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["mmgen", "plugins", "tests", "tools", "examples"])
def test_python_stays_under_its_ceiling(folder):
    sizes = [lines_and_tokens(path) for path in files(folder, "*.py")]
    lines, tokens = (sum(column) for column in zip(*sizes, strict=True))
    most_lines, most_tokens = CEILINGS[folder]
    assert lines <= most_lines and tokens <= most_tokens, f"{folder}: {lines:,} lines, {tokens:,} tokens"


def test_docs_packages_and_recipes_stay_under_their_ceilings():
    pages = [*ROOT.glob("*.md"), *files("docs", "*.md")]
    counts = {
        "words": sum(len(page.read_text(encoding="utf-8").split()) for page in pages if page.stem not in UNCOUNTED),
        "packages": len(list((ROOT / "plugins").glob("*/__init__.py"))),
        "recipes": len(list((ROOT / "recipes").glob("*.toml"))),
    }
    assert {name: count for name, count in counts.items() if count > CEILINGS[name]} == {}


def test_training_reaches_few_modules():
    """Modules that `mmgen.training.train` imports, directly or not, inside functions and for types too; what the front
    door offers lazily is not followed."""
    graph = grimp.build_graph("mmgen", cache_dir=None)
    for module in graph.find_modules_directly_imported_by("mmgen"):
        graph.remove_import(importer="mmgen", imported=module)
    reached = {"mmgen.training.train", *graph.find_upstream_modules("mmgen.training.train")}
    lines = sum(lines_and_tokens(Path(importlib.util.find_spec(name).origin))[0] for name in reached)
    most_modules, most_lines = CEILINGS["training_reaches"]
    assert len(reached) <= most_modules and lines <= most_lines, f"{len(reached)} modules, {lines:,} lines"
