"""An extractor beside a file of features is compared with the file before training."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from kit import toys

from mmgen.cli import main

pytestmark = pytest.mark.slow
CELLS = {"type": "timm_grid", "model": "test_resnet", "image_size": 64}


def mmgen(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return done.exit_code, done.output


def recipe(**image) -> str:
    return toys.recipe(
        inputs={"image": {"type": "regions", **image}, "caption": {"type": "text"}},
        steps={"both": {"inputs": ["image", "caption"], "train": ["image", "backbone"]}},
        data={"image_size": 64},
        metrics={},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """With a store that a run has extracted."""
    folder = tmp_path_factory.mktemp("features")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("toy.toml").write_text(recipe(extractor=toys.ROI))
        assert mmgen("run", "toy.toml")[0] == 0
        next(Path("runs").rglob("features/*")).rename("roi.h5")
    return folder


def run(folder: Path, monkeypatch, **image) -> tuple[int, str]:
    monkeypatch.chdir(folder)
    Path("toy.toml").write_text(recipe(**image))
    return mmgen("run", "toy.toml", "--fresh")


@pytest.mark.parametrize(
    ("extractor", "difference"),
    [
        ({**toys.ROI, "seed": 1}, "digest: "),
        ({**toys.ROI, "pool": 1}, "pool: 3 -> 1"),
        (CELLS, 'extractor: "roi" -> "timm_grid"'),
    ],
)
def test_another_extractor_stops_a_run_before_it_trains(folder, monkeypatch, extractor, difference):
    code, said = run(folder, monkeypatch, features="roi.h5", extractor=extractor)
    assert code == 1 and said.splitlines()[2].startswith("error: ") and difference in said
    error = said.partition("error: ")[2]
    line = recipe(features="roi.h5", extractor=extractor).partition("[inputs.image.extractor]")[0].count("\n") + 2
    assert error.startswith(
        f"toy.toml:{line}: inputs.image.extractor.type: this extractor did not make the features of roi test_resnet "
        "in roi.h5 ("
    )
    assert run(folder, monkeypatch, features="roi.h5", extractor=extractor, allow_other_features=True)[0] == 0
