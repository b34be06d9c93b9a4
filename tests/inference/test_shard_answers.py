"""Answers in shards: together they are the file of one process, also after a kill; what does not fit is refused."""

import json
import os

import pytest
from kit import served

from mmgen.decoding import Decoding
from mmgen.errors import DataError, RunError
from mmgen.features.shards import Shard
from mmgen.inference.query import Query
from mmgen.inference.shard_answers import ShardOf, merged, write_shard

GREEDY = Decoding()


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    return served.predictor(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def queries():
    colors = ["red", "green", "blue", "white", "yellow"]
    return [
        Query(f"{color} {number}", {"image": served.picture(color), "caption": f"{number} dogs"})
        for number in range(3)
        for color in colors
    ] + [Query("unreadable", {"image": b"no picture", "caption": "x"})]


@pytest.fixture(scope="module")
def alone(predictor, queries):
    return [answer.as_json() for answer in predictor.answers(queries, GREEDY)]


def part(queries, number, count):
    return ShardOf.of(Shard(number, count), [query.id for query in queries])


def write(predictor, queries, path, number, count=3, options=GREEDY, seed=None):
    return write_shard(predictor, queries, options, path, part(queries, number, count), lambda steps: None, seed)[0]


def same(answers, expected) -> bool:
    """Equal, scores but for rounding, since other queries share a batch."""
    for answer, line in zip(answers, expected, strict=True):
        for text, expected_text in zip(answer.get("texts", []), line.get("texts", []), strict=True):
            assert text.pop("score") == pytest.approx(expected_text["score"], abs=2e-4)
            text["score"] = expected_text["score"]
    return answers == expected


def test_shards_in_any_order_are_what_one_process_gives(predictor, queries, alone, tmp_path):
    for number in (3, 1, 2):
        write(predictor, queries, tmp_path / "a.jsonl", number)
    assert same(list(merged(tmp_path / "a.jsonl")), alone)


def test_a_stopped_shard_continues(predictor, queries, alone, tmp_path, monkeypatch):
    path, calls = tmp_path / "a.jsonl", []

    def stop(steps):
        calls.append(steps)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shard(predictor, queries, GREEDY, path, part(queries, 1, 1), stop)
    queried = []
    answers = predictor.answers
    monkeypatch.setattr(predictor, "answers", lambda some, *rest: queried.extend(some) or answers(some, *rest))
    target = write(predictor, queries, path, 1, 1)
    assert len(queried) == len(queries) - 3 and same(list(merged(path)), alone)
    queried.clear()
    assert write(predictor, queries, path, 1, 1) == target and queried == []  # a finished shard is left as it is


def test_other_settings_are_refused(predictor, queries, tmp_path):
    path = tmp_path / "a.jsonl"
    target = write(predictor, queries, path, 1)
    with pytest.raises(RunError) as error:
        write(predictor, queries, path, 1, options=Decoding(num_beams=2))
    assert str(error.value) == f"{target}: was begun with other decoding; delete it, or choose another --out"
    with pytest.raises(RunError, match="was begun with other queries and inputs; delete it"):
        write(predictor, queries[1:], path, 1)
    with pytest.raises(DataError) as error:
        write(predictor, queries, path, 2, options=Decoding(do_sample=True))
    assert str(error.value) == "--shard 2/3: all shards must sample with the same seed; give --seed"


def test_shards_that_sample_with_one_seed_are_the_answers_of_one_process(predictor, queries, tmp_path):
    path, options = tmp_path / "a.jsonl", Decoding(do_sample=True, temperature=3.0)
    for number in (1, 2, 3):
        write(predictor, queries, path, number, options=options, seed=7)
    assert [*merged(path)] == [answer.as_json() for answer in predictor.answers(queries, options, seed=7)]
    with pytest.raises(RunError, match="was begun with other seed; delete it"):
        write(predictor, queries, path, 1, options=options, seed=8)


def test_a_shard_counts_what_it_could_not_answer(predictor, queries, tmp_path):
    def counts():
        shards = [part(queries, number, 3) for number in (1, 2, 3)]
        return [write_shard(predictor, queries, GREEDY, tmp_path / "a.jsonl", s, lambda steps: None)[1] for s in shards]

    assert sum(counts()) == 1 and counts() == counts()  # also of a finished shard


def test_what_is_wrong_with_shards(predictor, queries, tmp_path):
    path = tmp_path / "a.jsonl"
    files = [write(predictor, queries, path, number) for number in (1, 2, 3)]
    texts = [file.read_text() for file in files]

    def problem(number: int, text: str) -> str:
        files[number - 1].write_text(text)
        with pytest.raises(DataError) as error:
            list(merged(path))
        files[number - 1].write_text(texts[number - 1])
        return str(error.value).replace(f"{tmp_path}/", "")

    lines = texts[1].splitlines(keepends=True)
    assert problem(2, "".join(lines[:-1])).startswith("a.jsonl: 1 of 16 queries have no answer: number ")
    assert "is answered twice; run it again" in problem(2, texts[1] + lines[-1])
    twice = json.dumps(json.loads(lines[-1]) | {"id": "\n"}) + "\n"
    assert "('\\n') is answered twice; run it again" in problem(2, texts[1] + twice)  # in one line
    assert problem(2, texts[0]) == "a-2-of-3.jsonl:1: is not the answers of shard 2/3; run again with --shard 2/3"
    header = json.loads(lines[0]) | {"weights": "0"}
    assert problem(2, json.dumps(header) + "\n") == (
        "a-2-of-3.jsonl: has other weights than a-1-of-3.jsonl; run one of them again"
    )
    assert problem(3, "[\n") == "a-3-of-3.jsonl:1: not a JSON object; delete the file and run its shard again"
    (tmp_path / "a-3-of-3.jsonl").write_bytes(b"\xff\xfe\n")
    with pytest.raises(DataError, match="a-3-of-3.jsonl:1: not a JSON object; delete the file and run its shard again"):
        list(merged(path))
    files[2].write_text(texts[2])
    assert problem(1, '{"shard": "1/3"}\n') == (
        "a-1-of-3.jsonl:1: is not the answers of shard 1/3; run again with --shard 1/3"
    )
    assert problem(2, lines[0] + '{"id": "x"}\n').startswith("a-2-of-3.jsonl:2: has no number of a query")


def captioned(caption: str, **more) -> list[Query]:
    return [Query(color, {"image": served.picture(color), "caption": caption, **more}) for color in ("red", "blue")]


def test_a_picture_that_changes_is_another_query(predictor, tmp_path):
    path, queries = tmp_path / "a.jsonl", [Query("q", {"image": "red.png", "caption": "x"}, folder=tmp_path)]
    picture = tmp_path / "red.png"
    picture.write_bytes(served.picture("red"))
    target = write(predictor, queries, path, 1, 1)
    os.utime(picture, ns=(0, 0))  # as a picture of the same size
    with pytest.raises(RunError, match=f"^{target}: was begun with other files; delete it, or choose another --out$"):
        write(predictor, queries, path, 1, 1)
    picture.write_bytes(served.picture("red") + b" ")
    with pytest.raises(RunError, match="was begun with other inputs and files; delete it, or choose another --out"):
        write(predictor, queries, path, 1, 1)


def test_another_extractor_and_other_features_are_refused(predictor, tmp_path, monkeypatch):
    path, queries = tmp_path / "a.jsonl", captioned("x")
    target = write(predictor, queries, path, 1, 1)
    config = predictor.names.inputs["image"]
    extractor = config.extractor.model_copy(update={"image_size": 65})
    with monkeypatch.context() as patch:
        patch.setitem(predictor.names.inputs, "image", config.model_copy(update={"extractor": extractor}))
        with pytest.raises(RunError, match=f"^{target}: was begun with other extractors; delete it, or choose another"):
            write(predictor, queries, path, 1, 1)
    (tmp_path / "f.h5").write_bytes(b"features")
    monkeypatch.setattr(predictor.features.embedders["image"].reader, "path", tmp_path / "f.h5")
    with pytest.raises(RunError, match="was begun with other files and features; delete it, or choose another --out"):
        write(predictor, queries, path, 1, 1)
