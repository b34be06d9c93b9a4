"""Trackers: what each service gets of a run, with stand-ins of their packages."""

import importlib.util
import json
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest
from click.testing import CliRunner
from kit import toys
from mmgen_trackers import MLflow, TensorBoard, Trackio, WandB

from mmgen.cli.recipes import check
from mmgen.parts import RunInfo
from mmgen.testing import CallbackSuite

CONFIGS = {"tensorboard": TensorBoard, "wandb": WandB, "trackio": Trackio, "mlflow": MLflow}


class Calls(list):
    """The calls of a stand-in: (name, arguments, options)."""

    def __getattr__(self, name):
        return lambda *arguments, **options: self.append((name, arguments, options))

    def named(self, name):
        return [(arguments, options) for called, arguments, options in self if called == name]


@pytest.fixture
def services(monkeypatch):
    """Stand-ins of all four packages: their calls, by package."""
    calls = {name: Calls() for name in CONFIGS}

    def install(name, **members):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None, origin="a stand-in")
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)

    class SummaryWriter:
        def __init__(self, *arguments, **options):
            calls["tensorboard"].append(("open", arguments, options))

        def __getattr__(self, name):
            return getattr(calls["tensorboard"], name)

    def init(name):
        def start(**options):
            calls[name].append(("init", (), options))
            return SimpleNamespace(id="id-7", log=calls[name].log, finish=calls[name].finish)

        return start

    def start_run(**options):
        calls["mlflow"].append(("start_run", (), options))
        return SimpleNamespace(info=SimpleNamespace(run_id=options["run_id"] or "id-7"))

    install("tensorboard")
    install("torch.utils.tensorboard", SummaryWriter=SummaryWriter)
    monkeypatch.setattr("torch.utils.tensorboard", sys.modules["torch.utils.tensorboard"], raising=False)
    install("wandb", init=init("wandb"), config=SimpleNamespace(update=calls["wandb"].config))
    install("trackio", init=init("trackio"), config=SimpleNamespace(update=calls["trackio"].config))
    limits = SimpleNamespace(validation=SimpleNamespace(MAX_PARAM_VAL_LENGTH=500, MAX_PARAMS_TAGS_PER_BATCH=100))
    names = ("create_experiment", "log_params", "log_metrics", "end_run")
    recorded = {name: getattr(calls["mlflow"], name) for name in names}
    install("mlflow", search_experiments=lambda **_: [], start_run=start_run, utils=limits, **recorded)
    return calls


@pytest.mark.usefixtures("services")
class TestTensorBoard(CallbackSuite):
    def config(self):
        return TensorBoard()


@pytest.mark.usefixtures("services")
class TestMLflow(CallbackSuite):
    def config(self):
        return MLflow()


@pytest.mark.usefixtures("services")
class TestWandB(CallbackSuite):
    def config(self):
        return WandB()


@pytest.mark.usefixtures("services")
class TestTrackio(CallbackSuite):
    def config(self):
        return Trackio()


def play(config, folder, done=0):
    """The events of one step, from update `done` on."""
    callback = config.build()
    recipe = {"name": "toy", "training": {"batch_size": 16, "betas": [0.9, 0.999]}, "long": "x" * 900}
    callback.on_run_begin(RunInfo("toy", "default", 0, folder, recipe, ("first",)))
    callback.on_step_begin("first", done, 2)
    record = {"update": 1, "loss": 2.5, "losses": {"words.loss": 2.0}, "learning_rates": {"*.bias": 0.1}}
    for number in range(done, 2):
        callback.on_update("first", {**record, "update": number})
    callback.on_validation("first", {"update": 1, "validation_loss": 2.0})
    callback.on_epoch_end("first", {**record, "validation_loss": 2.0})
    callback.on_step_end("first", {"cider": 0.5, "none": None})
    callback.on_run_end(["| table |"])
    callback.close()


def test_tensorboard_gets_every_number_by_name(services, tmp_path):
    play(TensorBoard(), tmp_path)
    calls = services["tensorboard"]
    numbers = [(name, value, options["global_step"]) for (name, value), options in calls.named("add_scalar")]
    assert ("loss", 2.5, 0) in numbers and ("losses/words.loss", 2.0, 1) in numbers
    assert ("learning_rates/_.bias", 0.1, 1) in numbers
    assert ("validation_loss", 2.0, 1) in numbers and ("score/cider", 0.5, 1) in numbers
    assert not any("none" in name or name == "update" for name, *_ in numbers)
    ((settings,), _) = calls.named("add_hparams")[0]
    assert settings["training.betas"] == "[0.9, 0.999]" and len(settings["long"]) == 500
    folder = str(tmp_path / "tensorboard" / "toy-default-seed0-first")
    assert calls.named("open")[0] == ((folder,), {})


def test_a_resumed_step_goes_on_in_the_same_tracker_run(services, tmp_path):
    for name, config in CONFIGS.items():
        play(config(), tmp_path)
        services[name].clear()
        play(config(), tmp_path, done=1)
    assert services["tensorboard"].named("open")[0][1] == {"purge_step": 1}
    assert services["wandb"].named("init")[0][1]["id"] == "id-7"
    assert services["trackio"].named("init")[0][1]["resume"] == "allow"
    assert services["mlflow"].named("start_run")[0][1]["run_id"] == "id-7"
    steps = [options["step"] for _, options in services["wandb"].named("log")]
    assert steps == sorted(steps)  # W&B ignores what goes back
    for calls, settings in zip(services.values(), ("add_hparams", "config", "config", "log_params"), strict=True):
        assert not calls.named(settings)  # of a new run only
    assert json.loads((tmp_path / "trackers" / "wandb.json").read_text()) == {"first": "id-7"}


def test_check_names_a_missing_package_with_its_place(monkeypatch, tmp_path):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "wandb" else find_spec(name))
    recipe = tmp_path / "toy.toml"
    recipe.write_text(toys.recipe() + "\n[callbacks.mine]\ntype = 'wandb'\n")
    line = len(recipe.read_text().splitlines()) - 1
    result = CliRunner().invoke(check, [str(recipe)])
    expected = (
        f"{recipe}:{line}: callbacks.mine: the package 'wandb' is not installed; in a checkout of mmgen, run: pip "
        'install ".[wandb]"; a run goes on without this callback\n'
    )
    assert result.exit_code == 0 and result.stderr == expected and "no errors" in result.stdout
