"""Runs with pictures: features extracted by the run, a frozen backbone, and queries about new pictures."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from kit import forked, toys
from kit.toys import mmgen_here as mmgen
from mmgen_scenes import Scenes
from mmgen_vision.cnn import Network
from safetensors.torch import load_file

from mmgen.cli import main
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter
from mmgen.inference.load import load as load_model
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query
from mmgen.parts import Record

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]


RECIPE = toys.recipe(
    name="seeing",
    inputs={
        "image": {"type": "regions", "extractor": toys.ROI},
        "caption": {"type": "text"},
    },
    generator={"max_tokens": 8},
    steps={
        "caption": {"inputs": ["caption"], "train": ["backbone"]},
        "image_frozen": {"inputs": ["image"], "train": ["image"], "start": "caption"},
        "both": {"inputs": ["image", "caption"], "train": ["image", "backbone"], "start": "image_frozen"},
    },
    data={"train_size": 12, "val_size": 2, "test_size": 4},
    metrics=None,
)


PLACE = Path("runs/seeing/default/seed-0")


@pytest.fixture(scope="module")
def seeing(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("seeing")
    (folder / "seeing.toml").write_text(RECIPE)
    done = forked.run(forked.MMGEN, "run", "seeing.toml", folder=folder)
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout + done.stderr)

    (folder / "pictures").mkdir()
    for number, picture in enumerate(
        list(Scenes(train_size=1, val_size=1, test_size=3, seed=5).build().pictures())[:3]
    ):
        picture.load().save(folder / "pictures" / f"{number}.png")
    return folder


def weights(folder: Path, step: str) -> dict:
    return load_file(folder / PLACE / "steps" / step / "weights.safetensors")


def test_a_frozen_backbone_is_bit_identical_and_only_w_was_trained(seeing):
    before, after = weights(seeing, "caption"), weights(seeing, "image_frozen")
    changed = {name for name in after if not after[name].equal(before[name])}
    assert changed == {"embedders.image.projection.weight", "embedders.image.projection.bias"}


def test_a_folder_of_pictures_becomes_jsonl_and_broken_ones_are_reported(seeing, tmp_path):
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "good.png").write_bytes((seeing / "pictures/1.png").read_bytes())
    (folder / "bad.png").write_bytes(b"not an image")
    (folder / "more").mkdir()
    (folder / "more/good.png").write_bytes((seeing / "pictures/1.png").read_bytes())  # asking needs no keys
    done = mmgen(seeing, "generate", str(PLACE), str(folder), "--out", str(tmp_path / "out.jsonl"))
    assert done.returncode == 0, done.stderr
    lines = {line["id"]: line for line in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())}
    assert lines.keys() == {str(folder / name) for name in ("good.png", "bad.png", "more/good.png")}
    good, bad = lines[str(folder / "good.png")], lines[str(folder / "bad.png")]
    assert good["texts"] == lines[str(folder / "more/good.png")]["texts"] and "not a readable image" in bad["error"]


def test_pictures_that_are_answered_together_get_what_each_gets_alone(seeing, monkeypatch):
    monkeypatch.chdir(seeing)

    run, pictures = load_model(PLACE, "image_frozen"), [f"pictures/{number}.png" for number in range(3)]
    alone, together = (run.ask_all(pictures, n=2, batch_size=size) for size in (1, 2))
    texts = [[text.text for text in answer.texts] for answer in alone]
    assert texts == [[text.text for text in answer.texts] for answer in together]
    assert [answer.id for answer in together] == pictures and all(len(pair) == 2 for pair in texts)
    assert texts == [[text.text for text in run.ask(picture, n=2).texts] for picture in pictures]


def stopped(monkeypatch, out: Path, how: Callable[[], None]):
    """The output of the command when it is stopped after two of three pictures."""

    answers = Predictor.answers

    def stops(*args, **named):
        for number, answer in enumerate(answers(*args, **named)):
            if number == 2:
                how()
            yield answer

    monkeypatch.setattr(Predictor, "answers", stops)
    return CliRunner().invoke(main, ["generate", str(PLACE), "pictures", "--out", str(out)])


@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_what_has_been_asked_is_kept_when_a_signal_stops_it(seeing, tmp_path, monkeypatch, number):
    monkeypatch.chdir(seeing)
    handler = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    out, partial = tmp_path / "out.jsonl", tmp_path / ".out.jsonl.partial"
    done = stopped(monkeypatch, out, lambda: os.kill(os.getpid(), number))
    assert signal.signal(signal.SIGTERM, handler) is signal.SIG_DFL
    kept = "error: stopped; answers in --out are kept; run the same command again to continue"
    assert done.exit_code == 1 and done.stderr.splitlines()[-1] == kept
    assert [json.loads(line)["id"] for line in partial.read_text().splitlines()] == ["pictures/0.png", "pictures/1.png"]
    monkeypatch.undo()
    monkeypatch.chdir(seeing)
    assert stopped(monkeypatch, out, lambda: None).exit_code == 0
    assert len(out.read_text().splitlines()) == 3 and [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_the_size_that_fits_is_remembered_from_batch_to_batch(seeing, monkeypatch, caplog):
    monkeypatch.chdir(seeing)

    run = load_model(PLACE, "image_frozen")
    generate, tried = run.model.generator.generate, []

    def cramped(model, batch, options):
        tried.append(len(batch.ids))
        if len(batch.ids) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return generate(model, batch, options)

    monkeypatch.setattr(run.model.generator, "generate", cramped)
    assert len(run.ask_all([f"pictures/{number % 3}.png" for number in range(6)], batch_size=3)) == 6
    assert tried == [3, 1, 1, 1, 1, 1, 1]
    assert [text for text in caplog.messages if "trained on" not in text] == [
        "writing: out of memory; from here on 1 example at a time"
    ]


def test_the_same_picture_gives_what_its_stored_features_give(seeing, monkeypatch):
    """Queries with pixels equal queries from the store: extraction is the same, up to the store's 16 bits."""
    monkeypatch.chdir(seeing)

    run = load_model(PLACE, "image_frozen")
    picture = next(iter(run.recipe.data.build().pictures()))
    (prepared,) = run.prepare([Query("x", {"picture": picture})])
    record = prepared.read[0].example.inputs["image"]
    (path,) = PLACE.parent.glob("features/*")

    stored = FeatureStore(path).read(picture.key)
    assert isinstance(record, Record)
    assert abs(record.features - stored.features).max() < 2e-3 * abs(record.features).max()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["absent.png"],
            "absent.png: no such file; give an image, a folder of images, or a JSONL file",
        ),
        (
            ["--caption", "x", "--step", "both"],
            "caption: 'image' is missing: step 'both' reads image and caption; add --input image=VALUE, the field "
            "'image' of a JSONL file, or in Python the key 'image'",
        ),
        (["--input", "caption"], "--input caption: write NAME=VALUE, such as --input caption='a dog on a beach'"),
        (["--caption", "x", "--input", "caption=y"], "'caption' must be a string, not ['y', 'x']"),
        (
            ["pictures/0.png", "--set", "inputs.image.extractor.image_size=96"],
            f"{PLACE}: features of this extractor of 'image' differ from the training features "
            "(settings.image_size: 64 -> 96); use the same extractor and settings, or, if the "
            "features are the same, add --set inputs.image.allow_other_features=true",
        ),
        (
            ["pictures/0.png", "--out", "pictures/0.png"],
            "--out pictures/0.png: is also an input file and would be overwritten; choose another name",
        ),
    ],
)
def test_what_cannot_be_asked_is_reported_in_one_line(seeing, monkeypatch, arguments, expected):
    monkeypatch.chdir(seeing)
    done = CliRunner().invoke(main, ["generate", str(PLACE), *arguments])
    assert (done.exit_code, done.stderr.strip()) == (1, f"error: {expected}")


def answer_lines(seeing, monkeypatch, *lines: dict, arguments: tuple[str, ...] = ()) -> list[dict]:
    """The command's answers to JSONL lines."""

    monkeypatch.chdir(seeing)
    Path("queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = CliRunner().invoke(main, ["generate", str(PLACE), "queries.jsonl", "--out", "answers.jsonl", *arguments])
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]


def test_a_key_of_the_runs_features_is_asked_about_like_its_picture(seeing, monkeypatch):
    lines = [{"image": image, "caption": "a dog"} for image in ("test-00001", "tset-00001")]
    key, neighbour = answer_lines(seeing, monkeypatch, *lines)
    (store,) = (seeing / PLACE.parent / "features").iterdir()
    assert key["id"] == "queries.jsonl:1" and len(key["texts"]) == 1
    assert neighbour == {
        "id": "queries.jsonl:2",
        "error": f"queries.jsonl:2: tset-00001: no such file, and not a key of {store.relative_to(seeing)}",
    }


def test_own_boxes_are_read_and_own_features_are_those_of_their_key(seeing, monkeypatch):

    (store,) = (seeing / PLACE.parent / "features").iterdir()
    boxed = {"image": {"picture": "pictures/0.png", "boxes": [[0, 0, 1, 1], [0, 0, 0.5, 0.5]]}}
    complete, boxes = answer_lines(seeing, monkeypatch, {"image": "test-00001"}, boxed)
    assert len(boxes["texts"]) == 1
    record = FeatureStore(store).read("test-00001")
    wide = Record("wide", [[1, 2]], [[0, 0, 1, 1]])
    same, refused = load_model(PLACE, "image_frozen").ask_all([record, wide])
    assert same.as_json()["texts"] == complete["texts"]
    assert refused.error.startswith("image of 'query 2': features have width 2, but the model ")


def test_a_line_that_cannot_be_answered_is_skipped_with_its_reason(seeing, monkeypatch):
    answers = answer_lines(
        seeing,
        monkeypatch,
        {"caption": "a dog"},
        {"id": "b", "caption": 7},
        {"caption": "a dog", "colour": "red"},
        {"id": "e", "caption": "a dog", "image": "test-00001"},
        arguments=("--step", "caption"),
    )
    reads = "'caption' reads caption; 'image_frozen' reads image; 'both' reads image and caption"
    assert len(answers[0]["texts"]) == 1
    assert [(line["id"], line["error"]) for line in answers[1:]] == [
        ("b", "queries.jsonl:2: 'caption' must be a string, not 7"),
        ("queries.jsonl:3", "queries.jsonl:3: unknown input 'colour'; available: image, caption, prompt, avoid"),
        (
            "e",
            "queries.jsonl:4: step 'caption' does not read 'image'; leave it out, or choose another step: " + reads,
        ),
    ]


def test_a_run_is_asked_from_eight_threads(seeing, monkeypatch):
    """The extractor is built once, with the network of the training features, for all threads."""
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.chdir(seeing)
    built, build = [], Network.__init__
    monkeypatch.setattr(Network, "__init__", lambda self, *a, **named: (built.append(1), build(self, *a, **named))[1])
    run = load_model(PLACE, "both")

    def ask(number: int) -> str:
        picture = f"pictures/{number % 3}.png" if number % 2 else f"test-0000{number % 3}"
        return run.ask({"picture": picture, "caption": f"a dog {number % 5}"}).value

    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(ask, range(32)))
    assert together == [ask(number) for number in range(32)] and len(built) == 1


def test_features_that_changed_under_a_run_are_refused(seeing, tmp_path):
    """Same width, different extractor: W was not trained on such features."""

    (store,) = (seeing / PLACE.parent / "features").iterdir()
    shutil.copytree(seeing, tmp_path / "seeing")
    with StoreWriter(tmp_path / "other.h5", {"extractor": "another"}) as writer:
        known = FeatureStore(store)
        for key in known:
            writer.add(known.read(key))
    shutil.rmtree(tmp_path / "seeing" / store.relative_to(seeing))
    shutil.move(tmp_path / "other.h5", tmp_path / "seeing" / store.relative_to(seeing))
    shutil.rmtree(tmp_path / "seeing" / PLACE / "steps/both")
    refused = mmgen(tmp_path / "seeing", "run", "seeing.toml")
    assert (
        refused.returncode == 1
        and "the features of 'image' differ from those the steps were trained on (fingerprint" in refused.stderr
    )
