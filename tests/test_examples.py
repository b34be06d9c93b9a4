"""The packages in examples/: installed from their folders, their tests pass and their recipes hold. The recurrent
systems fill their table and resume to the bit."""

import shutil
from pathlib import Path

import pytest
from kit.thirdparty import Environment, settings

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
def rivals(environment, folder) -> Path:
    """The folder of the recurrent systems, with a small run."""
    place = folder / RIVALS.name
    done = environment.several([(str(place), RIVAL_RUN)])
    assert done.returncode == 0, done.stderr
    return place


def test_their_own_tests_pass(environment, folder, pytestconfig):
    """From the installation: the sources beside the tests are moved away. The costly ones of suites run by night."""
    for name in PACKAGES:
        (folder / name / name).rename(folder / name / "sources")
    done = environment.pytest(
        *(folder / name for name in PACKAGES), cwd=folder, costly=pytestconfig.getoption("exhaustive")
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(done.stdout.split(" passed")[0].split()[-1]) >= 165


def test_their_recipes_hold(environment, folder):
    recipes = [path for name in PACKAGES for path in (folder / name).glob("*.toml") if path.name != "pyproject.toml"]
    done = environment.mmgen("check", *map(str, recipes), cwd=folder)
    assert done.stdout == "11 configurations in 7 recipes: no errors\n", done.stderr


def test_a_stopped_recurrent_step_ends_with_the_same_bits(rivals, environment):
    """Ordinary and Monte Carlo dropout, exemplars, and the moments of RMSProp, stopped within an epoch."""
    table = (rivals / RIVAL_PLACE / "table.md").read_text()
    assert all(f"| {row} " in table for row in ("max", "mdn_joint", "mc_sbn", "sample"))
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
