"""`mmgen plugin new`: the created package installs, passes its tests and runs from its recipe, for every kind."""

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kit.refusals import refusal
from kit.thirdparty import Environment, settings
from kit.thirdparty import plugin as module_of

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
    with contextlib.chdir(tmp_path_factory.mktemp("made")):
        return {kind: create(f"my-{kind}", kind, installed())[0].parent.absolute() for kind in KINDS}


@pytest.fixture(scope="module")
def environment(packages, tmp_path_factory) -> Environment:
    """All packages, installed as their README says."""
    environment = Environment(tmp_path_factory.mktemp("environment"))
    environment.install(*packages.values(), editable=True)
    return environment


@pytest.mark.slow
def test_their_tests_pass(packages, environment, pytestconfig):
    costly = pytestconfig.getoption("exhaustive")
    done = environment.pytest(*packages.values(), cwd=packages["embedder"].parent, costly=costly)
    assert done.returncode == 0, done.stdout
    assert "failed" not in done.stdout and int(done.stdout.split(" passed")[0].split()[-1]) > 50


@pytest.mark.slow
def test_their_recipes_run(packages, environment):
    """The probe looks into a finished run. The renderer shows all texts about scenes."""
    calls = []
    for kind, folder in packages.items():
        few = [setting for setting in FEW if not (kind == "dataset" and setting.startswith("data."))]
        calls.append((str(folder), ["run", "recipe.toml", *settings(*few)]))
    done = environment.several(calls, PROBING.format(run=str(packages["probe"] / "runs/my_probe/default/seed-0")))
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"^    .* \(\d+ words\) +<- test-", done.stdout, re.MULTILINE)
    for kind, folder in packages.items():
        run = folder / "runs" / f"my_{kind}" / "default" / "seed-0"
        assert (run / "steps/first/scores.json").exists(), kind
        assert kind in ("renderer", "callback") or f'"my-{kind}"' in (run / "recipe.json").read_text()
        assert kind != "callback" or (run / "epochs.txt").read_text().startswith("first: update ")
    assert done.stdout.splitlines()[-1] == "my_probe ['How sure'] ['findings.json', 'table.json', 'tables.md']"
    scores = json.loads((packages["metric"] / "runs/my_metric/default/seed-0/steps/first/scores.json").read_text())
    assert "my_metric" in json.dumps(scores)


@pytest.mark.slow
def test_they_are_clean_and_torch_waits(packages, environment):
    code = "import sys, " + ", ".join(f"mmgen_my_{kind}" for kind in packages) + "; print('torch' in sys.modules)"
    assert environment.run("-c", code, cwd=packages["embedder"]).stdout == "False\n"
    for check in (["check", "--select=E,F,I,B,UP"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *check, *packages.values()], capture_output=True, text=True
        )
        assert done.returncode == 0 or "No module named ruff" in done.stderr, done.stdout


@pytest.mark.parametrize(
    "name, kind, words",
    [
        ("../x", "metric", "'../x' is not a valid name; use small letters, digits and hyphens, such as log-mel"),
        ("reader", "embedder", "'reader' gives the class name Reader, which has another meaning; choose another name"),
        ("scenes", "metric", "a package mmgen_scenes already exists; choose another name"),
    ],
)
def test_names_that_cannot_be(name, kind, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refusal(create, name, kind, installed()) == words and not list(tmp_path.iterdir())


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


def test_a_plugin_must_not_ask_for_a_newer_contract():
    assert [part.name for part in collect([module_of(METRIC.format(api=API_VERSION))]).parts] == ["length"]
    registry = collect([module_of(METRIC.format(api="7"))])
    newer = f"requires version 7 of the plugin contract, but this mmgen has version {API_VERSION}; update the "
    assert not registry.parts and registry.broken[0].reason.startswith(newer)
    with pytest.raises(PluginError, match=r"plugin 'audio' \(mmgen-audio 0.3\) failed to load: requires version 7 of "):
        registry.get("metric", "length")
