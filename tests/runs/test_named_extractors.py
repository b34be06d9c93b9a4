"""An extractor beside a file of features is compared with the file before training; a file alone is remarked on."""

import base64
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from kit import toys

from mmgen.cli import main
from mmgen.features.store import FeatureStore
from mmgen.runs import named_extractors

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
        next(Path("runs").rglob("*.h5")).parent.rename("roi.h5")
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
        f"toy.toml:{line}: inputs.image.extractor.type: this extractor did not make the features of 'roi test_resnet' "
        "in roi.h5 ("
    )
    assert run(folder, monkeypatch, features="roi.h5", extractor=extractor, allow_other_features=True)[0] == 0


def test_the_extractor_that_made_the_features_answers_about_pictures(folder, monkeypatch):
    code, said = run(folder, monkeypatch, features="roi.h5", extractor=toys.ROI)
    assert code == 0 and "have no extractor" not in said
    assert mmgen("generate", toys.PLACE, "photo.png", "--caption", "a dog")[0] == 0


@pytest.mark.parametrize("features", ["roi.h5", "imported.h5"])
def test_features_without_an_extractor_are_remarked_on_when_the_run_starts(folder, monkeypatch, features):
    code, said = run(folder, monkeypatch, features=features)
    remark = "the trained model will answer about the pictures of this file and refuse all others"
    assert code == 0 and said.index(remark) < said.index("training") and f"the features in {features} (of '" in said
    assert "add [inputs.image.extractor] with the network" in " ".join(said.split())
    code, said = mmgen("generate", toys.PLACE, "photo.png", "--caption", "a dog")
    assert code == 1 and "whose extractor is not known here" in said
    sets = ["--set", f"inputs.image.extractor={json.dumps(toys.ROI).replace(':', ' =')}"]
    allow = ["--set", "inputs.image.allow_other_features=true"]
    if features == "imported.h5":  # the advice leads to an answer
        assert " ".join(allow) in " ".join(said.split())
        code, said = mmgen("generate", toys.PLACE, "photo.png", "--caption", "a dog", *sets)
        assert code == 1 and f"which network made them; if it was this one, add {' '.join(allow)}" in said
    assert mmgen("generate", toys.PLACE, "photo.png", "--caption", "a dog", *sets, *allow)[0] == 0


def test_imported_features_with_an_extractor_that_fits_answer_about_pictures(folder, monkeypatch):
    code, said = run(folder, monkeypatch, features="imported.h5", extractor=toys.ROI)
    assert code == 0 and "have no extractor" not in said
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
        ({**toys.ROI, "pool": 1}, "width: "),
        ({**toys.ROI, "seed": 1}, "their regions correlate by "),
    ],
)
def test_imported_features_are_compared_with_those_of_a_picture(folder, monkeypatch, extractor, difference):
    code, said = run(folder, monkeypatch, features="imported.h5", extractor=extractor)
    assert code == 1 and f"'bottom_up_tsv unknown' in imported.h5 ({difference}" in said and "training" not in said


def test_without_pictures_at_the_same_boxes_only_widths_are_compared(folder, monkeypatch, caplog):
    monkeypatch.setattr(named_extractors, "SAME_BOX", 0)  # as of a detector with other boxes
    code, _ = run(folder, monkeypatch, features="imported.h5", extractor=toys.ROI)
    assert code == 0
    assert "imported.h5: only the width of its features could be compared with the extractor's" in caplog.text
