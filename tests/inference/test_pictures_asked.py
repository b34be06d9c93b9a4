"""Queries about new pictures: their features are those of the training, alone and together, from many threads; models
that read pixels."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from click.testing import CliRunner
from kit import small_runs, toys
from kit.pixels import PIXELS
from mmgen_vision.cnn import Network
from PIL import Image

import mmgen
from mmgen.cli import main
from mmgen.examples import All
from mmgen.features.store import FeatureStore
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query
from mmgen.parts import Record
from mmgen.runs.run import run as run_recipe

pytestmark = pytest.mark.slow
CAPTION = "a red dog"


@pytest.fixture(scope="module")
def run():
    return mmgen.load(small_runs.drawn("writes"), "both")


@pytest.fixture(scope="module")
def pictures(run):
    return list(run.recipe.data.build().pictures())


def test_the_same_picture_gives_what_its_stored_features_give(run, pictures):
    """Extraction is the same, up to the store's 16 bits; features that are given are taken as they are."""
    (prepared,) = run.prepare([Query("x", {"picture": pictures[0], "caption": CAPTION})])
    record = prepared.read[0].example.inputs["image"]
    stored = FeatureStore(run.features.embedders["image"].reader.path).read(pictures[0].key)
    assert isinstance(record, Record)
    assert abs(record.features - stored.features).max() < 2e-3 * abs(record.features).max()
    wide, boxed = Record("wide", [[1, 2]], [[0, 0, 1, 1]]), {"picture": pictures[0], "boxes": [[0, 0, 1, 1]]}
    images = (stored, pictures[0].key, boxed, wide)
    given, key, boxes, refused = run.ask_all([{"image": image, "caption": CAPTION} for image in images])
    assert given.as_json()["texts"] == key.as_json()["texts"] and len(boxes.texts) == 1
    assert refused.error.startswith("image of 'query 4': features have width 2, but the model ")


def test_pictures_that_are_answered_together_get_what_each_gets_alone(run, pictures):
    queries = [{"picture": picture, "caption": CAPTION} for picture in pictures[:3]]
    alone, together = ([answer.value for answer in run.ask_all(queries, 2, batch_size=size)] for size in (1, 2))
    assert alone == together == [run.ask(query, 2).value for query in queries]


def test_a_run_is_asked_from_eight_threads(pictures, monkeypatch):
    """The extractor is built once, with the network of the training features, for all threads."""
    built, build = [], Network.__init__
    monkeypatch.setattr(Network, "__init__", lambda self, *a, **named: (built.append(1), build(self, *a, **named))[1])
    run = mmgen.load(small_runs.drawn("writes"), "both")

    def ask(number: int) -> str:
        picture = pictures[number % 3] if number % 2 else pictures[number % 3].key
        return run.ask({"picture": picture, "caption": f"a dog {number % 5}"}).value

    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(ask, range(32)))
    assert together == [ask(number) for number in range(32)] and len(built) == 1


def test_what_has_been_asked_is_kept_when_a_signal_stops_it(tmp_path, monkeypatch):
    (tmp_path / "ask.jsonl").write_text("".join(json.dumps({"id": name, "caption": name}) + "\n" for name in "abc"))
    out, partial, answers = tmp_path / "out.jsonl", tmp_path / ".out.jsonl.partial", Predictor.answers

    def stops(*args, **named):
        for number, answer in enumerate(answers(*args, **named)):
            if number == 2:
                os.kill(os.getpid(), signal.SIGTERM)
            yield answer

    def generate():
        run = str(small_runs.drawn("writes"))
        return CliRunner().invoke(main, ["generate", run, str(tmp_path / "ask.jsonl"), "--out", str(out)])

    handler = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with monkeypatch.context() as patch:
        patch.setattr(Predictor, "answers", stops)
        done = generate()
    assert signal.signal(signal.SIGTERM, handler) is signal.SIG_DFL
    message = "error: stopped; answers in --out are kept; run the same command again to continue"
    assert done.exit_code == 1 and done.stderr.splitlines()[-1] == message
    assert [json.loads(line)["id"] for line in partial.read_text().splitlines()] == ["a", "b"]
    assert generate().exit_code == 0 and not partial.exists()
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ["a", "b", "c"]


@pytest.fixture
def trained(site, tmp_path, no_page):
    """A run whose only step reads pixels."""
    site("mmgen-pixels", "mmgen_pixels", PIXELS)
    steps = {"first": {"inputs": ["image"], "train": ["image", "backbone"]}}
    text = toys.recipe(output=str(tmp_path / "runs"), inputs={"image": {"type": "pixels"}}, steps=steps)
    return run_recipe(toys.loaded(tmp_path, text)).path


def test_pictures_in_every_form_give_the_same_states(trained, tmp_path):
    predictor, image = mmgen.load(trained), Image.fromarray(np.full((8, 6, 3), 200, np.uint8))
    image.save(tmp_path / "photo.png")
    predictor.warm()
    forms = [
        str(tmp_path / "photo.png"),
        tmp_path / "photo.png",
        image,
        np.asarray(image),
        (tmp_path / "photo.png").read_bytes(),
    ]
    answers = [predictor.ask({"image": form}).texts[0] for form in forms]
    assert len({(answer.text, answer.score) for answer in answers}) == 1
    key = predictor.ask({"image": "train-00000"}).texts[0]
    assert key.score != answers[0].score  # a key is read as in training
    assert predictor.ask({"image": All((image, image))}).texts[0].score != answers[0].score
