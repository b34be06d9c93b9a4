"""The packages in examples/: installed from their folders, their tests pass and their recipes run, with three inputs
in one prefix for both generators. The recurrent systems resume to the bit, and their exports write as their runs do."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from kit.thirdparty import Environment, settings
from PIL import Image

pytestmark = pytest.mark.slow  # every test starts commands or processes

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PACKAGES = sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml"))
FEW = (
    "data.train_size=12",
    "data.val_size=2",
    "data.test_size=3",
    "data.image_size=64",
    "training.epochs=1",
    "backbone.num_hidden_layers=1",
    "backbone.hidden_size=40",
    'metrics.overlap.type="diversity"',
)
SMALL = settings(*FEW)
AUDIO = EXAMPLES / "mmgen_audio"
RECIPES = ("recipe.toml", "rivals.toml")
SET_UPS = {  # name -> recipe, and what its run is called with
    "masked": ("recipe.toml", []),
    "causal": ("rivals.toml", []),
    "rival": ("rivals.toml", ["--profile", "masked"]),
    "no sounds": ("recipe.toml", ["--step", "sound", "--set", 'inputs.sound.folder="nowhere"']),
}
RIVALS = EXAMPLES / "mmgen_rivals"
RIVAL_RUN = [  # with exemplars, both kinds of dropout and the papers' optimiser for MC-SBN
    *("run", "rivals.toml", *SMALL),
    *settings(
        "training.epochs=3",
        "training.batch_size=8",
        "training.betas=[0.0, 0.8]",
        "backbone.dropout=0.5",
        "backbone.fusion_dropout=0.5",
        'steps.mc_sbn.objectives=["generator", "exemplars"]',
        *(f'inputs.{name}.extractor.model="test_resnet"' for name in ("image", "place")),
        *(f"inputs.{name}.extractor.image_size=64" for name in ("image", "place")),
    ),
]
RIVAL_STEPS = ("max", "mdn_joint", "mc_sbn")
RIVAL_PLACE = Path("runs/rivals/sample/seed-0")
STOPPED = """
import sys
from kit.training import sigterm_before
from mmgen.cli import main
with sigterm_before(int(sys.argv.pop(1))):
    main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A copy, since building leaves files behind."""
    copy = tmp_path_factory.mktemp("third") / "examples"
    shutil.copytree(
        EXAMPLES, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "runs", "sounds", "__pycache__", ".*")
    )
    return copy


@pytest.fixture(scope="module")
def environment(folder, tmp_path_factory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("environment"))
    environment.install(*(folder / name for name in PACKAGES))
    return environment


@pytest.fixture(scope="module")
def ran(environment, folder) -> subprocess.CompletedProcess:
    """Small runs of the recipes, with sounds created before."""
    place = folder / AUDIO.name
    done = environment.run("-m", "mmgen_audio", "recipe.toml", *SMALL, cwd=place)
    assert done.stdout.startswith("sounds: 17 sounds of "), done.stderr
    calls = [
        (str(place), ["run", recipe, *SMALL, "--set", f'output="runs/{name}"', *more])
        for name, (recipe, more) in SET_UPS.items()
    ]
    return environment.several(calls)


@pytest.fixture(scope="module")
def rivals(environment, folder) -> Path:
    """The folder of the recurrent systems, with a small run and an export of each step."""
    place = folder / RIVALS.name
    more = [
        ["report", str(RIVAL_PLACE)],
        *(["export", str(RIVAL_PLACE), f"exported-{step}", "--step", step] for step in RIVAL_STEPS),
    ]
    done = environment.several([(str(place), arguments) for arguments in (RIVAL_RUN, *more)])
    assert done.returncode == 0, done.stderr
    return place


def steps(folder: Path, set_up: str) -> dict[str, list]:
    """Step -> its texts, for steps that are scored."""
    (place,) = (folder / AUDIO.name / "runs" / set_up).glob("*/*/seed-0")
    finished = [step for step in (place / "steps").iterdir() if (step / "scores.json").exists()]
    return {
        step.name: [json.loads(line) for line in (step / "generations.jsonl").read_text().splitlines()]
        for step in finished
    }


def test_the_examples_are_those_that_the_docs_name():
    assert PACKAGES == ["mmgen_audio", "mmgen_contrast", "mmgen_lora", "mmgen_rivals"]
    assert [path.name for path in sorted(AUDIO.glob("*.toml"))] == ["pyproject.toml", *RECIPES]


def test_their_own_tests_pass(environment, folder):
    """From the installation: the sources beside the tests are moved away."""
    for name in PACKAGES:
        (folder / name / name).rename(folder / name / "sources")
    done = environment.pytest(*(folder / name for name in PACKAGES), cwd=folder)
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(done.stdout.split(" passed")[0].split()[-1]) >= 180


def test_their_recipes_hold(environment, folder):
    recipes = [path for name in PACKAGES for path in (folder / name).glob("*.toml") if path.name != "pyproject.toml"]
    done = environment.mmgen("check", *map(str, recipes), cwd=folder)
    assert done.stdout == "10 configurations in 6 recipes: no errors\n", done.stderr


def test_the_systems_of_the_table_write_for_a_photo_and_so_do_their_exports(rivals, environment):
    table = (rivals / RIVAL_PLACE / "table.md").read_text()
    assert all(f"| {row} " in table for row in (*RIVAL_STEPS, "sample"))
    assert (rivals / RIVAL_PLACE / "report.html").exists()
    Image.new("RGB", (80, 60), "red").save(rivals / "photo.jpg")
    queries = {
        step: ["photo.jpg", *([] if step == "max" else ["--input", "caption=a red house"])] for step in RIVAL_STEPS
    }
    calls = [["generate", str(RIVAL_PLACE), "--step", step, *query] for step, query in queries.items()]
    calls += [["generate", f"exported-{step}", *query] for step, query in queries.items()]
    done = environment.several([(str(rivals), arguments) for arguments in calls])
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) >= len(calls), done.stderr
    assert all(lines) and lines[: len(lines) // 2] == lines[len(lines) // 2 :]


def test_a_stopped_recurrent_step_ends_with_the_same_bits(rivals, environment):
    """Ordinary and Monte Carlo dropout, exemplars, and the moments of RMSProp, stopped within an epoch."""
    command = [*RIVAL_RUN, "--step", "mc_sbn", *settings('output="stopped"')]
    stopped = environment.forked(STOPPED, "4", *command, cwd=rivals)
    assert stopped.returncode == 1 and "error: stopped; run the same command again" in stopped.stderr
    done = environment.several([(str(rivals), command)])
    assert done.returncode == 0, done.stderr
    for name in ("weights.safetensors", "log.jsonl", "generations.jsonl"):
        resumed, whole = (
            (rivals / output / "rivals/sample/seed-0/steps/mc_sbn" / name).read_bytes()
            for output in ("stopped", "runs")
        )
        assert resumed == whole, name
