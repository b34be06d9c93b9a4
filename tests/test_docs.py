"""The pages in docs/ are correct: their code runs, and they list every hook, contract and method."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from kit.thirdparty import Environment, settings

from mmgen.cli import main
from mmgen.registry import KINDS

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w./]+\.(?:py|toml|jsonl))\n")
GUIDES = (
    "index.md",
    "guides/recipes.md",
    "guides/scoring.md",
    "guides/training.md",
    "extend/tutorial.md",
)  # pages whose commands follow from each other
FEW = (
    "data.train_size=8",
    "data.val_size=2",
    "data.test_size=4",
    "training.epochs=1",
    "backbone.num_hidden_layers=1",
    "data.image_size=64",
)


def blocks(page: str, language: str) -> list[str]:
    return [code for kind, code in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")) if kind == language]


@pytest.mark.slow
def test_the_python_page_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "api"}
    code = blocks("guides/python.md", "python")
    assert len(code) >= 8
    for number, block in enumerate(code, 1):
        exec(compile(block, f"python.md, block {number}", "exec"), names)
    assert names["finished"].finished("caption")


@pytest.mark.slow
def test_the_complete_example_installs_and_passes_its_tests(tmp_path):
    """The files printed on the plugin page."""
    written = []
    for code in [*blocks("extend/tutorial.md", "toml"), *blocks("extend/tutorial.md", "python")]:
        if (place := FILE.match(code)) and place[1] not in ("my_words.py", "words.toml"):  # these need no package
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
    assert "\n  numbers  " in listed.stdout and listed.returncode == 0, listed.stderr
    tested = environment.pytest(Path("package/tests"), cwd=tmp_path)
    assert tested.returncode == 0 and " passed" in tested.stdout, tested.stdout


def test_every_hook_is_on_the_page_with_its_base_class_and_its_contract():
    page = (DOCS / "extend/contracts.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `register_")]
    assert [row.split("`")[1] for row in rows] == [hook for hook, _ in KINDS.values()]
    for row, (hook, config) in zip(sorted(rows), sorted(KINDS.values(), key=lambda value: value[0]), strict=True):
        contract = config.build.__annotations__["return"]
        assert row.startswith(f"| `{hook}` | `mmgen.{config.__name__}` | `{contract}` |")


MANUAL = [path for path in DOCS.rglob("*.md") if path.parent.name != "_generated"]
PAGES = sorted([*MANUAL, *DOCS.parent.glob("*.md"), *DOCS.parent.glob("examples/**/*.md")])


def prose(path: Path) -> str:
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The link targets of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS.parent)))
def test_links_lead_somewhere(page):
    """Those into docs/_generated are checked by the build of the site."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" not in target and "_generated/" not in target:
            file, _, anchor = target.partition("#")
            place = page.parent / file if file else page
            assert place.exists(), target
            assert not anchor or anchor in anchors(place), target


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Path:
    """A folder with the files printed in the guides."""
    folder = tmp_path_factory.mktemp("desk")
    for page in GUIDES:
        for kind, code in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
            if kind in ("toml", "text", "python") and (place := FILE.match(code)) and "/" not in place[1]:
                (folder / place[1]).write_text(code.removeprefix(place[0]) if place[1].endswith(".jsonl") else code)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES)
def test_commands_print_what_a_guide_says(page, desk, monkeypatch):
    """Lines in order; `...` matches any lines. Runs are small here, so their output is not compared."""
    monkeypatch.chdir(desk)
    sessions = "".join(blocks(page, "console")).split("$ mmgen ")[1:]
    assert sessions
    for session in sessions:
        command, _, shown = session.partition("\n")
        few = settings(*FEW) if command.startswith("run ") else []
        done = CliRunner().invoke(main, [*shlex.split(command), *few])
        printed = iter(done.output.splitlines())
        for line in shown.splitlines():
            assert line == "..." or line in printed, f"{page}: {command} does not print: {line}\n{done.output}"


@pytest.mark.slow
def test_the_run_of_the_guide_is_loaded_from_python(desk, monkeypatch, capsys):
    monkeypatch.chdir(desk)
    for block in blocks("index.md", "python"):
        exec(compile(block, "docs/index.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 4
