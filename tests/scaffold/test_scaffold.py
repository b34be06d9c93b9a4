"""`mmgen plugin new`: the created package installs, passes its tests and runs from its recipe, for every kind."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kit.thirdparty import Environment, settings
from kit.thirdparty import plugin as module_of
from kit.toys import mmgen_here

from mmgen import API_VERSION
from mmgen.errors import PluginError
from mmgen.registry import collect, installed
from mmgen.scaffold import KINDS, create

FEW = ("data.train_size=16", "data.val_size=2", "data.test_size=3", "training.epochs=1", "backbone.num_hidden_layers=1")
PROBING = """
from pathlib import Path
from mmgen.runs.probe import probe
for name, findings in probe({run!r}).items():
    print(name, list(findings.tables), sorted(path.name for path in Path({run!r}, "probes", name).iterdir()))
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> dict[str, Path]:
    """A package of every kind, each with a name of two words."""
    folder, packages = tmp_path_factory.mktemp("made"), {}
    for kind in KINDS:
        paths = create(f"my-{kind}", kind, folder, installed())
        packages[kind] = next(path.parent for path in paths if path.name == "pyproject.toml")
    return packages


@pytest.fixture(scope="module")
def environment(packages, tmp_path_factory) -> Environment:
    """All packages, installed as their README says."""
    environment = Environment(tmp_path_factory.mktemp("environment"))
    environment.install(*packages.values(), editable=True)
    return environment


def test_every_kind_can_be_made():
    from mmgen.registry import KINDS as HOOKS

    assert set(KINDS) == HOOKS.keys()


@pytest.mark.slow
def test_their_tests_pass(packages, environment):
    done = environment.pytest(*packages.values(), cwd=packages["embedder"].parent)
    assert done.returncode == 0, done.stdout
    assert "failed" not in done.stdout and int(done.stdout.split(" passed")[0].split()[-1]) > 60


@pytest.mark.slow
def test_they_are_listed_with_their_place(packages, environment):
    done = environment.mmgen("plugins", "--strict-plugins", "--paths", cwd=packages["metric"])
    assert done.returncode == 0, done.stderr
    for kind, folder in packages.items():
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"  my-{kind} ")]
        assert line.endswith(f"(mmgen-my-{kind} 0.1.0)")
        assert str(folder / f"mmgen_my_{kind}" / "__init__.py") in done.stdout


@pytest.mark.slow
def test_their_recipes_run(packages, environment):
    """The probe looks into a finished run, and so does the command. The renderer shows all texts about scenes."""
    calls, recipes = [], {kind: folder for kind, folder in packages.items() if kind != "command"}
    for kind, folder in recipes.items():
        few = [setting for setting in FEW if not (kind == "dataset" and setting.startswith("data."))]
        calls.append((str(folder), ["run", "recipe.toml", *settings(*few)]))
    calls.append((str(packages["probe"]), ["my-command", "runs/my_probe/default/seed-0"]))
    done = environment.several(calls, PROBING.format(run=str(packages["probe"] / "runs/my_probe/default/seed-0")))
    assert done.returncode == 0, done.stderr[-2000:]
    assert "| first |     3 |" in done.stdout
    assert re.search(r"^    .* \(\d+ words\) +<- test-", done.stdout, re.MULTILINE)
    for kind, folder in recipes.items():
        run = folder / "runs" / f"my_{kind}" / "default" / "seed-0"
        assert (run / "steps/first/scores.json").exists(), kind
        assert kind in ("renderer", "callback") or f'"my-{kind}"' in (run / "recipe.json").read_text()
        assert kind != "callback" or (run / "epochs.txt").read_text().startswith("first: update ")
    assert done.stdout.splitlines()[-1] == "my_probe ['How sure'] ['findings.json', 'table.json', 'tables.md']"
    scores = json.loads((packages["metric"] / "runs/my_metric/default/seed-0/steps/first/scores.json").read_text())
    assert "my_metric" in json.dumps(scores)


def test_the_readme_says_what_is_there(packages):
    """No link to a package index that does not have mmgen; how the part is used."""
    for kind, folder in packages.items():
        readme = (folder / "README.md").read_text()
        assert "http" not in readme and "mmgen-framework" in readme
        assert (f"    mmgen my-{kind} RUN " if kind == "command" else "    mmgen run recipe.toml ") in readme
        assert (folder / "recipe.toml").exists() == (kind != "command")


def test_nothing_is_left_to_fill_in(packages):
    for folder in packages.values():
        for path in folder.rglob("*"):
            if path.suffix in (".py", ".toml", ".md"):
                assert "$" not in path.read_text(), path
                assert path.suffix != ".py" or max(map(len, path.read_text().splitlines())) <= 120, path


@pytest.mark.slow
def test_they_are_clean_and_torch_waits(packages, environment):
    code = "import sys, " + ", ".join(f"mmgen_my_{kind}" for kind in packages) + "; print('torch' in sys.modules)"
    assert environment.run("-c", code, cwd=packages["embedder"]).stdout == "False\n"
    ruff = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--select=E,F,I,B,UP", *packages.values()],
        capture_output=True,
        text=True,
    )
    assert ruff.returncode == 0 or "No module named ruff" in ruff.stderr, ruff.stdout
    form = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--check", *packages.values()], capture_output=True, text=True
    )
    assert form.returncode == 0 or "No module named ruff" in form.stderr, form.stdout


@pytest.mark.parametrize(
    "name, kind, words",
    [
        (
            "Log Mel",
            "embedder",
            "'Log Mel' is not a valid name; use small letters, digits and single hyphens, such as log-mel",
        ),
        ("../x", "metric", "'../x' is not a valid name; use small letters, digits and single hyphens, such as log-mel"),
        ("none", "embedder", "'none' gives the class name None, which has another meaning; choose another name"),
        (
            "reader",
            "embedder",
            "'reader' gives the class name Reader, which has another meaning; choose another name",
        ),
        (
            "embedder-suite",
            "embedder",
            "'embedder-suite' gives the class name EmbedderSuite, which has another meaning; choose another name",
        ),
        (
            "tester",
            "metric",
            "'tester' gives the class name Tester, which has another meaning; choose another name",
        ),
        (
            "cache",
            "backbone",
            "'cache' gives the class name Cache, which has another meaning; choose another name",
        ),
        ("scenes", "metric", "a package mmgen_scenes already exists; choose another name"),
    ],
)
def test_names_that_cannot_be(name, kind, words, tmp_path):
    with pytest.raises(PluginError) as caught:
        create(name, kind, tmp_path, installed())
    assert str(caught.value) == words and not list(tmp_path.iterdir())


def test_a_name_that_is_taken_and_a_folder_that_is_there(tmp_path):
    with pytest.raises(
        PluginError,
        match=r"the generator 'masked' already exists, from mmgen-framework .*__init__.py:\d+\); choose another name",
    ):
        create("masked", "generator", tmp_path, installed())
    create("mmgen-audio", "embedder", tmp_path, installed())
    with pytest.raises(PluginError, match="mmgen-audio: already exists; move the folder, or choose another name"):
        create("audio", "embedder", tmp_path, installed())


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(
        PluginError, match=r"README.md: cannot be written: Not a directory; choose another folder with --in"
    ):
        create("audio", "embedder", tmp_path / "file", installed())


@pytest.mark.parametrize("folder, shown", [(".", "mmgen-audio"), ("my work", "'my work/mmgen-audio'")])
def test_the_command_says_what_to_do_next(folder, shown, tmp_path):
    done = mmgen_here(tmp_path, "plugin", "new", "audio", "--kind", "embedder", "--in", folder)
    assert done.stdout.splitlines()[-1] == f"next:  cd {shown} && pip install -e . && pytest && mmgen run recipe.toml"
    assert (tmp_path / folder / "mmgen-audio/mmgen_audio/embedder.py").exists()


def test_a_command_of_mmgens_own_is_refused_and_how_one_is_tried_is_reported(tmp_path):
    done = mmgen_here(tmp_path, "plugin", "new", "run", "--kind", "command")
    assert done.returncode == 1 and not list(tmp_path.iterdir())
    assert done.stderr == "error: 'run' is a command of mmgen; choose another name\n"
    done = mmgen_here(tmp_path, "plugin", "new", "mmgen-lengths", "--kind", "command")
    assert done.stdout.splitlines()[-1] == (
        "next:  cd mmgen-lengths && pip install -e . && pytest && mmgen lengths --help"
    )


# --- the version of the contract ---

METRIC = """
    from typing import Literal
    import mmgen
    MMGEN_API = {api}
    class Length(mmgen.MetricConfig):
        "Words."
        type: Literal["length"] = "length"
        def build(self): ...
    @mmgen.hookimpl
    def register_metrics():
        return [Length]
"""


def reason(api: str) -> str:
    registry = collect([module_of(METRIC.format(api=api))])
    assert not registry.parts
    return registry.broken[0].reason


def test_a_plugin_of_this_contract_is_welcome():
    assert [part.name for part in collect([module_of(METRIC.format(api=API_VERSION))]).parts] == ["length"]


def test_a_plugin_that_asks_for_a_newer_contract_is_reported():
    newer = (
        f"requires version 7 of the plugin contract, but this mmgen has version {API_VERSION}; update the "
        "older of the two (docs/plugins.md)"
    )
    assert reason("7") == newer
    with pytest.raises(
        PluginError,
        match=r"plugin 'audio' \(mmgen-audio 0.3\) failed to load: requires version 7 of the plugin contract",
    ):
        collect([module_of(METRIC.format(api="7"))]).get("metric", "length")
