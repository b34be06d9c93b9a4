"""The language of the house: names that say what a thing is, and sentences that are read once.

Both tests have a list of exceptions: places with the number of exceptions left. The lists may only shrink: a place
with fewer exceptions than its number fails too, until the number is lowered."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.source import forget, nodes  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
CODE = [ROOT / folder for folder in ("mmgen", "plugins", "tests", "tools", "examples")]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
WRITTEN = "<!-- written by python -m tools.pages"  # what follows comes from docstrings

NAMES = frozenset(
    "anew asked asks each found given kept lends made meant misfits one other others own there told wanted".split()
    + ["whole"]
)
PHRASES = re.compile(
    r"\b(is no|are no|is none|are none|has not|is told|is said|of its own|anew|all the same|give those back)\b"
)

LITERAL = re.compile(
    r"""([rbuf]{0,2})(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')|\#[^\n]*""",
    re.IGNORECASE | re.DOTALL,
)
JOINED = re.compile(r"""(["'])\s*[rbuf]{0,2}\1""", re.IGNORECASE)  # two literals that Python joins
BANNED = re.compile(rf"\b_*(?:{'|'.join(sorted(NAMES))})_*\b")

NAMES_LEFT: dict[str, int] = {
    "mmgen": 1,
}
PHRASES_LEFT: dict[str, int] = {}


def files() -> list[Path]:
    return sorted(path for folder in CODE for path in folder.rglob("*.py") if ".venv" not in path.parts)


def place(path: Path) -> str:
    """The place of a file in the lists: a room, a plugin, or a folder of tests."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[: 3 if parts[:2] == ("tests", "plugins") else 2]) if len(parts) > 2 else parts[0]


def bound_names(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of every binding of a variable, parameter, function, class or attribute."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Strings that people may see, with their lines: all except docstrings; f-strings with placeholders."""
    skipped = set()
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            skipped.add(id(node.body[0].value))
        elif isinstance(node, ast.JoinedStr):
            skipped |= {id(value) for value in node.values}
            texts = [value.value if isinstance(value, ast.Constant) else "{}" for value in node.values]
            yield node.lineno, "".join(texts)
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def may_bind(text: str) -> bool:
    """Whether a source has one of the names outside of strings and comments; f-strings may bind names."""
    code = LITERAL.sub(lambda literal: literal[0] if "f" in (literal[1] or "").lower() else " ", text)
    return BANNED.search(code) is not None


def private_names() -> dict[str, list[str]]:
    """Place -> names that say the state of a result instead of what it is."""
    places: dict[str, list[str]] = {}
    for path in files():
        if not may_bind(path.read_text(encoding="utf-8")):
            continue
        banned = {(line, name) for line, name in bound_names(path) if name.strip("_") in NAMES}
        for line, name in sorted(banned):
            places.setdefault(place(path), []).append(f"{path.relative_to(ROOT)}:{line}: '{name}'")
    return places


def translated_phrases() -> dict[str, list[str]]:
    """Place -> strings and lines of pages with a phrase that is hard to read. Strings of tests are not checked: they
    repeat messages."""
    places: dict[str, list[str]] = {}
    for path in files():
        if path.relative_to(ROOT).parts[0] == "tests":
            continue
        if not PHRASES.search(JOINED.sub("", path.read_text(encoding="utf-8"))):
            continue  # reading the syntax of all files takes seconds
        for line, text in strings(path):
            if match := PHRASES.search(text):
                places.setdefault(place(path), []).append(f"{path.relative_to(ROOT)}:{line}: '{match[0]}'")
    for path in PAGES:
        by_hand = path.read_text(encoding="utf-8").partition(WRITTEN)[0]
        for number, line in enumerate(by_hand.splitlines(), 1):
            if match := PHRASES.search(line):
                places.setdefault(str(path.relative_to(ROOT)), []).append(f"{path.name}:{number}: '{match[0]}'")
    return places


@pytest.mark.parametrize(
    ("text", "binds"),
    [
        ("'one' # each\n", False),
        ("'''one\\''' each''' + r'\\\\' + 'found'\n", False),
        ("x = 'it' + \"'s\"; wanted = 1\n", True),
        ('f"{[each for each in ()]}"\n', True),
        ("def __told(): pass\n", True),
    ],
)
def test_files_that_bind_no_such_name_are_left_out(text, binds):
    assert may_bind(text) is binds


@pytest.mark.parametrize(
    ("find", "left"),
    [(private_names, NAMES_LEFT), (translated_phrases, PHRASES_LEFT)],
    ids=["names", "phrases"],
)
def test_the_list_of_exceptions_only_shrinks(find, left):
    places = find()
    counts = Counter({name: len(lines) for name, lines in places.items()})
    grown = [line for name in counts if counts[name] > left.get(name, 0) for line in places[name]]
    assert not grown, "write these in plain words:\n" + "\n".join(grown)
    shrunk = {name: counts[name] for name in left if counts[name] < left[name]}
    assert not shrunk, f"fewer are left than the list says; write these numbers into it: {shrunk}"
