"""The house does not grow back: sizes stay under the ceilings of pyproject.toml, which follow what was reached.

Tokens are those of Python's tokenizer without comments and docstrings, so that no formatting changes them."""

import ast
import io
import tokenize
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CEILINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mmgen"]["ceilings"]
LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
UNCOUNTED = {"LOG", "SECURITY"}  # dated notes, which nobody needs to use mmgen
NOT_OURS = {"build", "__pycache__", "_generated", ".venv", "site"}


def files(folder: str, pattern: str) -> list[Path]:
    """Files below a folder of the root, without what building and running leave behind."""
    paths = (ROOT / folder).rglob(pattern) if folder else ROOT.glob(pattern)
    names = [(path, path.relative_to(ROOT)) for path in paths]
    return [
        path
        for path, name in names
        if not NOT_OURS & set(name.parts) and ("runs" not in name.parts or name.parts[0] in ("mmgen", "tests"))
    ]


def lines_and_tokens(path: Path) -> tuple[int, int]:
    text = path.read_text(encoding="utf-8")
    docstrings = {
        (statement.lineno, statement.col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return text.count("\n"), sum(token.type not in LAYOUT and token.start not in docstrings for token in tokens)


@pytest.mark.parametrize("folder", ["mmgen", "plugins", "tests", "tools", "examples"])
def test_python_stays_under_its_ceiling(folder):
    sizes = [lines_and_tokens(path) for path in files(folder, "*.py")]
    lines, tokens = (sum(column) for column in zip(*sizes, strict=True))
    most_lines, most_tokens = CEILINGS[folder]
    assert lines <= most_lines and tokens <= most_tokens, f"{folder}: {lines:,} lines, {tokens:,} tokens"


def test_docs_packages_and_recipes_stay_under_their_ceilings():
    pages = [*files("", "*.md"), *files("docs", "*.md")]
    counts = {
        "words": sum(len(page.read_text(encoding="utf-8").split()) for page in pages if page.stem not in UNCOUNTED),
        "packages": len(list((ROOT / "plugins").glob("*/__init__.py"))),
        "recipes": len(list((ROOT / "recipes").glob("*.toml"))),
    }
    assert {name: count for name, count in counts.items() if count > CEILINGS[name]} == {}


def test_training_reaches_few_modules():
    """Modules that `mmgen.training.train` imports, directly or not, inside functions and for types too; what the front
    door offers lazily is not followed."""
    modules = {}
    for root in (ROOT, ROOT / "plugins"):
        for path in [path for top in root.glob("mmgen*") for path in top.rglob("*.py")]:
            parts = path.relative_to(root).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    reached, waiting = set(), ["mmgen.training.train"]
    while waiting:
        name = waiting.pop()
        if name in modules and name not in reached and name != "mmgen":
            reached.add(name)
            waiting += imports(name, modules[name])
    lines = sum(modules[name].read_text(encoding="utf-8").count("\n") for name in reached)
    most_modules, most_lines = CEILINGS["training_reaches"]
    assert len(reached) <= most_modules and lines <= most_lines, f"{len(reached)} modules, {lines:,} lines"


def imports(name: str, path: Path) -> list[str]:
    """Names that a module imports; those from a package may be modules or not."""
    package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            names += [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return names
