"""The pages in docs/ are correct: their commands and code run, their links lead somewhere, and every hook is there."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from kit.thirdparty import Environment, settings
from PIL import Image

from mmgen.cli import main
from mmgen.recipe.load import load
from mmgen.registry import KINDS, forgotten_files, installed

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MANUAL = [path for path in DOCS.rglob("*.md") if path.parent.name != "_generated"]
PAGES = sorted([*MANUAL, *ROOT.glob("*.md"), *ROOT.glob("examples/**/*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w./]+\.(?:py|toml|jsonl))\n")
GUIDES = ("index.md", "guides/recipes.md", "guides/training.md", "guides/scoring.md", "extend/tutorial.md")
SIZES = {"train_size": 8, "val_size": 2, "test_size": 4, "image_size": 64}
# what a block needs that this machine or this test lacks; the other tests of this file still read it
ELSEWHERE = re.compile(
    # published data, and the hub
    r"data get (?!--dry)|--profile (paper|table)|photographs|facebook/|openai|another\.toml|IMAGES|push|pip |hf:"
    # files that a reader has
    r"|photos-|stream\.toml|vcr/|nlvr2|references vqa|trainval|reactions|stored\.toml|info regions"
    # other programs; mistakes on purpose; what has a test to itself, or takes long
    r"|torchrun|docker|curl|serve|ray |SLURM|\$|python|judge |typo|plugin new"
    r"|mmgen_rivals|runs/rivals|recipe\.toml|three_init|left_to_right|tasks\.toml --profile long"
)
LISTED = re.findall(r"<(?!_|self)(.*)>", (DOCS / "index.md").read_text())  # the pages in the order of the site
RUN = "runs/bertgen_vqa/sample/seed-0"  # which pages call RUN


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: str | Path, *languages: str) -> list[str]:
    return [code for kind, code in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")) if kind in languages]


def commands(page: str | Path) -> list[list[str]]:
    """The arguments of every call of mmgen in a page's blocks of the shell."""
    code = "".join(blocks(page, "sh", "console")).replace("\\\n", " ")
    return [shlex.split(call) for call in re.findall(r"^[^#\n]*?\bmmgen ([a-z][^;&|#\n]*)", code, re.MULTILINE)]


def parsed(arguments: list[str]) -> dict[str, Any]:
    """The values of a command's arguments and options. Raises for those that do not exist."""
    command, context, rest = main, click.Context(main, **main.context_settings), arguments
    while isinstance(command, click.Group):
        _, command, rest = command.resolve_command(context, rest)
        context = click.Context(command, parent=context, **command.context_settings)
    return command.make_parser(context).parse_args(list(rest))[0]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_options_and_keys_exist(page):
    """Of every command on a page; and profiles and settings, where it names a recipe of ours."""
    for arguments in commands(page):
        values = parsed(arguments)
        recipe = ROOT / str(values.get("recipe"))
        if recipe.parent.name == "recipes" and "$" not in str(values):
            load(recipe, installed(), values.get("profile"), tuple(values.get("sets", ())))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_can_be_read(page):
    for code in blocks(page, "python", "py"):
        compile(code, name_of(page), "exec")
    for code in blocks(page, "toml"):
        tomllib.loads(code)


def prose(path: Path) -> str:
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The link targets of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    """Those into docs/_generated are checked by the build of the site."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" not in target and "_generated/" not in target:
            file, _, anchor = target.partition("#")
            place = page.parent / file if file else page
            assert place.exists(), target
            assert not anchor or anchor in anchors(place), target


def test_every_hook_is_on_the_page_with_its_base_class_and_its_contract():
    page = (DOCS / "extend/contracts.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `register_")]
    assert [row.split("`")[1] for row in rows] == [hook for hook, _ in KINDS.values()]
    for row, (hook, config) in zip(sorted(rows), sorted(KINDS.values(), key=lambda value: value[0]), strict=True):
        contract = config.build.__annotations__["return"]
        assert row.startswith(f"| `{hook}` | `mmgen.{config.__name__}` | `{contract}` |")


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
    for code in blocks("extend/tutorial.md", "toml", "python"):
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


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Path:
    """A folder with the files printed on the pages, and those that a reader brings."""
    folder = tmp_path_factory.mktemp("desk")
    for page in MANUAL:
        for kind, code in BLOCK.findall(page.read_text(encoding="utf-8")):
            if kind in ("toml", "text", "python") and (place := FILE.match(code)) and "/" not in place[1]:
                code = code.removeprefix(place[0]) if place[1].endswith(".jsonl") else code
                (folder / place[1]).write_text(code.replace('weights = "pretrained"', 'weights = "random"'))
    for name in ("photo.jpg", "other.jpg", "folder_of_pictures/1.jpg", "mine/photos/1.jpg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((96, 64), 60).convert("RGB").save(folder / name)
    for split in ("train", "val", "test"):
        (folder / f"mine/{split}.jsonl").write_text("".join(blocks("index.md", "json")))
    (folder / "texts.jsonl").write_text('{"caption": "a red kite", "texts": ["why?", "where is it?"]}\n')
    (folder / "questions.jsonl").write_text('{"image": "photo.jpg", "prompt": ["answer: yes"]}\n')
    return folder


@forgotten_files()
def called(arguments: list[str]) -> click.testing.Result:
    """A command, with settings that make a run of drawn scenes a matter of seconds."""
    few = []
    if arguments[0] == "run":
        values = parsed(arguments)
        recipe, _ = load(Path(values["recipe"]), installed(), values.get("profile"), plugins=True)
        places = {"data": recipe.data} | {f"steps.{name}.data": step.data for name, step in recipe.steps.items()}
        few = [f"{place}.{key}={n}" for place, data in places.items() for key, n in SIZES.items() if hasattr(data, key)]
        few.append("training.updates=2")
    return CliRunner().invoke(main, [*(RUN if word == "RUN" else word for word in arguments), *settings(*few)])


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES)
def test_commands_print_what_a_guide_says(page, desk, monkeypatch):
    """Lines in order; `...` matches any lines. Runs are small here, so their output is not compared."""
    monkeypatch.chdir(desk)
    sessions = "".join(blocks(page, "console")).split("$ mmgen ")[1:]
    assert sessions
    for session in sessions:
        command, _, shown = session.partition("\n")
        done = called(shlex.split(command))
        printed = iter(done.output.splitlines())
        for line in shown.splitlines():
            assert line == "..." or line in printed, f"{page}: {command} does not print: {line}\n{done.output}"


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("page", dict.fromkeys(("index", "tasks", *LISTED)))
def test_every_command_of_a_page_runs(page, desk, monkeypatch):
    """In one folder, in the order of the pages, with tiny runs; but for commands that need something from elsewhere."""
    monkeypatch.chdir(desk)
    for arguments in commands(f"{page}.md"):
        if not ELSEWHERE.search(shlex.join(arguments)):
            done = called(arguments)
            assert done.exit_code == 0, f"{arguments}\n{done.output}"
