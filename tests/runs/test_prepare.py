"""An extractor beside a file of features is compared with the file before training."""

import base64
from pathlib import Path

import pytest
from click.testing import CliRunner
from kit import toys

from mmgen.cli import main
from mmgen.features.store import FeatureStore

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
    """A store that a run has extracted, a picture, and the same features as a published file, imported."""
    folder = tmp_path_factory.mktemp("features")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("toy.toml").write_text(recipe(extractor=toys.ROI))
        assert mmgen("run", "toy.toml")[0] == 0
        next(Path("runs").rglob("features/*")).rename("roi.h5")
        store = FeatureStore(Path("roi.h5"))
        rows = []
        for key in store:
            record = store.read(key)
            columns = (base64.b64encode(values.astype("<f4").tobytes()) for values in (record.boxes, record.features))
            rows.append("\t".join([key, "1", "1", str(len(record.features)), *(text.decode() for text in columns)]))
        Path("published.tsv").write_text("\n".join(rows) + "\n")
        assert mmgen("features", "import", "published.tsv", "imported.h5", "--type", "bottom_up_tsv")[0] == 0
        from PIL import Image

        Image.effect_noise((64, 64), 90).convert("RGB").save("photo.png")
    return folder


def run(folder: Path, monkeypatch, **image) -> tuple[int, str]:
    monkeypatch.chdir(folder)
    Path("toy.toml").write_text(recipe(**image))
    return mmgen("run", "toy.toml", "--fresh")


@pytest.mark.parametrize(
    ("extractor", "difference"),
    [
        ({**toys.ROI, "seed": 1}, "digest: "),
        ({**toys.ROI, "pool": 1}, "pool: 3 in the file, 1 of this extractor"),
        (CELLS, "extractor: roi in the file, timm_grid of this extractor"),
    ],
)
def test_another_extractor_stops_a_run_before_it_trains(folder, monkeypatch, extractor, difference):
    code, said = run(folder, monkeypatch, features="roi.h5", extractor=extractor)
    assert code == 1 and "training" not in said and difference in said
    error = said.partition("error: ")[2]
    line = recipe(features="roi.h5", extractor=extractor).partition("[inputs.image.extractor]")[0].count("\n") + 2
    assert error.startswith(
        f"toy.toml:{line}: inputs.image.extractor.type: this extractor did not make the features of roi test_resnet "
        "in roi.h5 ("
    )
    assert run(folder, monkeypatch, features="roi.h5", extractor=extractor, allow_other_features=True)[0] == 0


def test_imported_features_with_an_extractor_that_fits_answer_about_pictures(folder, monkeypatch):
    code, said = run(folder, monkeypatch, features="imported.h5", extractor=toys.ROI)
    assert code == 0, said
    assert mmgen("generate", toys.PLACE, "photo.png", "--caption", "a dog")[0] == 0
    code, said = mmgen(
        *("generate", toys.PLACE, "photo.png", "--caption", "a dog", "--set", "inputs.image.extractor.seed=1")
    )
    assert code == 1 and "differ from the training features" in said  # not the one that was compared
    assert mmgen("export", toys.PLACE, "exported")[0] == 0
    assert mmgen("generate", "exported", "photo.png", "--caption", "a dog")[0] == 0


@pytest.mark.parametrize(
    ("extractor", "difference"),
    [
        ({**toys.ROI, "pool": 1}, "width "),
        ({**toys.ROI, "seed": 1}, "the regions of picture 'train-00000' correlate by "),
    ],
)
def test_imported_features_are_compared_with_those_of_a_picture(folder, monkeypatch, extractor, difference):
    code, said = run(folder, monkeypatch, features="imported.h5", extractor=extractor)
    assert code == 1 and f"bottom_up_tsv unknown in imported.h5 ({difference}" in said and "training" not in said
