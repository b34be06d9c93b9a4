"""The pages in docs/ tell the truth: their code runs, and every hook, contract and method is on them."""

import inspect
import re
from pathlib import Path

import pytest
from thirdparty import Environment

from mmgen import errors, hookspecs, parts, testing
from mmgen.registry import KINDS

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w./]+\.(?:py|toml))\n")


def blocks(page: str, language: str) -> list[str]:
    return [code for kind, code in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")) if kind == language]


def test_the_python_page_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "api"}
    code = blocks("api.md", "python")
    assert len(code) >= 10
    for number, block in enumerate(code, 1):
        exec(compile(block, f"docs/api.md, block {number}", "exec"), names)
    assert names["finished"].finished("caption")


def test_the_complete_example_installs_and_passes_its_tests(tmp_path):
    """The files of the plugin page, as they are printed there."""
    written = []
    for code in [*blocks("plugins.md", "toml"), *blocks("plugins.md", "python")]:
        if place := FILE.match(code):
            path = tmp_path / "package" / place.group(1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
            written.append(place.group(1))
    assert written == [
        "pyproject.toml",
        "mmgen_numbers/__init__.py",
        "mmgen_numbers/embedder.py",
        "tests/test_numbers.py",
    ]
    environment = Environment(tmp_path / "environment")
    environment.install(tmp_path / "package")
    listed = environment.mmgen("plugins", "--strict-plugins", cwd=tmp_path)
    assert "embedder   numbers" in listed.stdout and listed.returncode == 0, listed.stderr
    tested = environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "package/tests", cwd=tmp_path)
    assert tested.returncode == 0 and " passed" in tested.stdout, tested.stdout


def test_every_hook_is_on_the_page_with_its_base_class():
    rows = [line for line in (DOCS / "plugins.md").read_text().splitlines() if line.startswith("| `register_")]
    assert [row.split("`")[1] for row in rows] == [name for name in vars(hookspecs) if name.startswith("register_")]
    for row, (hook, config) in zip(sorted(rows), sorted(KINDS.values(), key=lambda value: value[0]), strict=True):
        assert row.startswith(f"| `{hook}` | `mmgen.{config.__name__}` |")


@pytest.mark.parametrize(
    "part",
    [
        parts.Reader,
        parts.Embedder,
        parts.Backbone,
        parts.Objective,
        parts.Generator,
        parts.Extractor,
        parts.Dataset,
        parts.Metric,
        parts.Probe,
    ],
)
def test_every_method_of_a_contract_is_on_the_page(part):
    text = (DOCS / "plugins.md").read_text()
    for name, value in vars(part).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            arguments = [argument for argument in inspect.signature(value).parameters if argument != "self"]
            shown = "**" + arguments[0] if name == "forward" and part is parts.Embedder else ", ".join(arguments)
            assert re.search(rf"`(\w+\.)?{name}\({re.escape(shown)}\)`", text), f"{part.__name__}.{name}({shown})"
    for name in vars(part).get("__annotations__", {}):
        assert re.search(rf"`{name}`", text) or name == "reader", f"{part.__name__}.{name}"


def test_every_error_suite_and_fake_is_on_the_page():
    text = (DOCS / "plugins.md").read_text()
    for name, value in vars(errors).items():
        assert not inspect.isclass(value) or name == "MmgenError" or f"`{name}`" in text, name
    for name in testing.__all__:
        assert not (name.endswith("Suite") and name != "Suite") or f"`{name}`" in text, name
    for name in ("Tiny", "Words", "Greedy", "Toy"):
        assert f"`{name}`" in text and name in testing.__all__


def test_the_legend_of_shapes_is_the_one_of_the_code():
    from mmgen import tensors

    legend = [line.strip() for line in tensors.__doc__.splitlines() if re.match(r"    [A-Z]  ", line)]
    text = (DOCS / "plugins.md").read_text()
    assert len(legend) >= 5 and all(line in text for line in legend)


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", (DOCS / page).read_text()):
        assert (DOCS / target).exists(), target
