"""Queries about new pictures: their features are those of the training; queries from many threads; a signal."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner
from kit import small_runs
from mmgen_vision.cnn import Network

import mmgen
from mmgen.cli import main
from mmgen.features.store import FeatureStore
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query
from mmgen.parts import Record

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
