"""Tests run offline and on few threads; tests with real data and weights run where these are available (see
`kit.beside`)."""

import gc
import os
import random
import signal
import sys
import textwrap
from datetime import date
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two workers of pytest share two cores
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as every command does, before torch starts
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_VERBOSITY": "error", "TRANSFORMERS_VERBOSITY": "error"}


import pytest
from hypothesis import HealthCheck, settings
from kit import COSTLY
from kit.beside import shared

# on a busy machine, to make examples may take long
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
for profile, count in {"ci": 30, "nightly": 3_000}.items():  # --hypothesis-profile; see test_damaged.py
    # only the night looks for new examples, so that a commit's suite never fails for another reason than the commit
    settings.register_profile(profile, PATIENT, max_examples=count, derandomize=profile != "nightly")
settings.load_profile("ci")

sys.dont_write_bytecode = False  # where the environment says so, every process would compile all sources again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
gc.set_threshold(50_000, 20, 50)  # fewer collections than by default

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # started in the background; tests of Ctrl-C want it as a terminal has it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--exhaustive", action="store_true", help="run the tests marked exhaustive too")
    parser.addoption("--write", action="store_true", help="write transcripts as they are now")


def pytest_collection_modifyitems(config, items):
    """Marks costly tests of suites as slow. Deselects exhaustive tests without --exhaustive: they repeat what other
    tests show."""
    if "nightly" in (config.getoption("hypothesis_profile") or ""):
        random.Random(str(date.today())).shuffle(items)  # the hour that it has reaches others every day
    for item in items:
        if item.name in COSTLY:
            item.add_marker(pytest.mark.slow)
    left_out = [item for item in items if item.get_closest_marker("exhaustive")]
    if left_out and not config.getoption("--exhaustive"):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish():
    """What is imported lives to the end: each step of a run, which collects at its end, need not look through it."""
    gc.freeze()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Real questions, images, region features and captions."""
    return shared("data")


@pytest.fixture(scope="module")
def no_page():
    """Runs in this process draw no page, which takes more than a third of a toy run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmgen.report.try_page", lambda *_: None)
        yield


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder with fake distributions on the path of this process and of its children."""
    from mmgen.registry import installed

    def install(name: str, module: str, code: str, version: str = "0.3") -> None:
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[mmgen]\n{module.removeprefix('mmgen_')} = {module}\n")
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(code))
        installed.cache_clear()

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH")))))
    monkeypatch.syspath_prepend(tmp_path)
    yield install
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").parent == tmp_path:
            del sys.modules[name]
    installed.cache_clear()


COMPARED = ("test_result", "test_is_deterministic")  # tests of the suite that check drawings


@pytest.fixture
def drawn():
    """For tests that check drawings of probes (see `undrawn`)."""


@pytest.fixture
def undrawn(request, monkeypatch):
    """For tests of probes: drawings are empty files, because drawing takes most of a probe's time."""

    def saved(figure, path: Path) -> str:
        for kind in ("svg", "png"):
            path.with_name(f"{path.name}.{kind}").write_text('<svg viewBox="0 0 1 1"></svg>')
        return f"{path.name}.svg"

    if "drawn" not in request.fixturenames and request.node.name not in COMPARED:
        monkeypatch.setattr("mmgen.plotting.save", saved)
