"""The pages in docs/ are correct: their commands and code run, their links lead somewhere, and every hook is there."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from kit.thirdparty import Environment, settings
from PIL import Image

from mmgen.cli import main
from mmgen.errors import MmgenError
from mmgen.recipe.load import load
from mmgen.registry import KINDS, installed

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MANUAL = [path for path in DOCS.rglob("*.md") if path.parent.name != "_generated"]
PAGES = sorted([*MANUAL, *ROOT.glob("*.md"), *ROOT.glob("examples/**/*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w./]+\.(?:py|toml|jsonl))\n")
GUIDES = ("index.md", "guides/recipes.md", "guides/training.md", "guides/scoring.md", "extend/tutorial.md")
SIZES = {"train_size": 8, "val_size": 2, "test_size": 4, "image_size": 64}
# what a block needs that this machine or this test lacks; the other tests of this file read it all the same
ELSEWHERE = re.compile(
    # published data, and the hub
    r"data get (?!--dry)|--profile (paper|table)|photographs|facebook/|openai|another\.toml|IMAGES|push|pip |hf:"
    # files that a reader has
    r"|photos-|stream\.toml|vcr/|nlvr2|references vqa|trainval|reactions|stored\.toml|info regions"
    # other programs; mistakes on purpose; what has a test to itself, or takes long
    r"|torchrun|docker|curl|serve|ray |SLURM|\$|python|judge (score|fill)|typo|plugin new"
    r"|mmgen_rivals|runs/rivals|recipe\.toml|three_init|left_to_right|tasks\.toml --profile long"
)
RUN = "runs/bertgen_vqa/sample/seed-0"  # which pages call RUN


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: str | Path, *languages: str) -> list[str]:
    return [code for kind, code in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")) if kind in languages]


def commands(code: str) -> Iterator[list[str]]:
    """The arguments of every call of mmgen in a block of the shell."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        part: list[str] = []
        for word in [*words, ";"]:
            if word not in (";", "&&", "|"):
                part.append(word)
            elif "mmgen" in part:
                yield part[part.index("mmgen") + 1 :]
                part = []
            else:
                part = []


def option(arguments: list[str], name: str) -> list[str]:
    return [value for word, value in zip(arguments, arguments[1:], strict=False) if word == name]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_options_and_keys_exist(page):
    """Of every command on a page; and profiles and settings, where it names a recipe of ours."""
    for arguments in [call for code in blocks(page, "sh", "console") for call in commands(code)]:
        command, context, rest = main, click.Context(main), arguments
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            _, command, rest = command.resolve_command(context, rest)
            assert command is not None, arguments
            context = click.Context(command, parent=context, **command.context_settings)
        command.make_parser(context).parse_args(list(rest))
        if (
            len(arguments) > 1
            and (recipe := ROOT / arguments[1]).parent.name == "recipes"
            and "$" not in str(arguments)
        ):
            load(
                recipe, installed(), next(iter(option(arguments, "--profile")), None), tuple(option(arguments, "--set"))
            )


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
                (folder / place[1]).write_text(code.removeprefix(place[0]) if place[1].endswith(".jsonl") else code)
    for name in ("photo.jpg", "other.jpg", "folder_of_pictures/1.jpg", "photos/1.jpg", "mine/photos/1.jpg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((96, 64), 60).convert("RGB").save(folder / name)
    for split in ("train", "val", "test"):
        (folder / f"mine/{split}.jsonl").write_text("".join(blocks("index.md", "json")))
    (folder / "texts.jsonl").write_text('{"caption": "a red kite", "texts": ["why?", "where is it?"]}\n')
    (folder / "questions.jsonl").write_text('{"image": "photo.jpg", "prompt": ["answer: yes"]}\n')
    return folder


def small(arguments: list[str]) -> list[str]:
    """Settings that make `mmgen run` of a drawn recipe a matter of seconds."""
    try:
        path = next(Path(word) for word in arguments if word.endswith(".toml"))
        recipe, _ = load(path, installed(), next(iter(option(arguments, "--profile")), None), plugins=True)
    except MmgenError as error:
        raise AssertionError(arguments) from error
    places = {"data": recipe.data} | {f"steps.{name}.data": step.data for name, step in recipe.steps.items()}
    sizes = [f"{place}.{key}={n}" for place, data in places.items() for key, n in SIZES.items() if hasattr(data, key)]
    steps = [f"steps.{name}.training.updates=2" for name, step in recipe.steps.items() if step.train]
    networks = [f"inputs.{name}.extractor" for name, part in recipe.inputs.items() if getattr(part, "extractor", None)]
    keys = [f"{place}.{setting}" for place in networks for setting in ("model=test_resnet", "weights=random")]
    metrics = [f"metrics.{name}.meteor=false" for name, part in recipe.metrics.items() if part.type == "captioneval"]
    return settings(*sizes, *steps, *keys, *metrics, "training.epochs=1")


def called(arguments: list[str]) -> click.testing.Result:
    few = small(arguments) if arguments[0] == "run" or "mine.toml" in arguments else []
    return CliRunner().invoke(main, [*(RUN if word == "RUN" else word for word in arguments), *few])


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
def test_the_run_of_the_guide_is_loaded_from_python(desk, monkeypatch, capsys):
    monkeypatch.chdir(desk)
    for block in blocks("index.md", "python"):
        exec(compile(block, "docs/index.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 4


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("page", ["index", "tasks", *re.findall(r"<(?!_|self)(.*)>", (DOCS / "index.md").read_text())])
def test_every_command_of_a_page_runs(page, desk, monkeypatch):
    """In one folder, in the order of the pages, with tiny runs; but for commands that need something from elsewhere."""
    monkeypatch.chdir(desk)
    lines = [call for code in blocks(f"{page}.md", "sh", "console") for call in commands(code)]
    for call in lines:
        if not ELSEWHERE.search(shlex.join(call)):
            done = called(call)
            assert done.exit_code == 0, f"{shlex.join(call)}\n{done.output}"
