"""Answers in shards: together they are the file of one process, also after a kill; what does not fit is refused."""

import json
import os

import pytest
from kit import served

from mmgen.decoding import Decoding
from mmgen.errors import DataError, RunError
from mmgen.features.shards import Shard, ShardOf
from mmgen.inference.query import Query
from mmgen.inference.shard_answers import header_of, merged, write_shard

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


def test_a_header_of_more_queries_than_lines(tmp_path):
    path, header = tmp_path / "a.jsonl", {"shard": "1/1", "queries": 10**12, "inputs": "0"}
    (tmp_path / "a-1-of-1.jsonl").write_text(f'{json.dumps(header)}\n{{"number": 1, "id": "b"}}\n')
    with pytest.raises(DataError) as error:
        merged(path)
    assert str(error.value) == (
        f"{path}: 999999999999 of 1000000000000 queries have no answer: number 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..."
    )
    for queries in (-5, True, 2.0):
        (tmp_path / "a-1-of-1.jsonl").write_text(json.dumps({**header, "queries": queries}) + "\n")
        with pytest.raises(DataError, match=r"a-1-of-1.jsonl:1: is not the answers of shard 1/1; run again with"):
            merged(path)


@pytest.mark.parametrize(
    ("headers", "changes"),
    [
        (({}, {"weights": "0"}), "weights"),  # the first file has lost what the second says
        (({"weights": "0"}, {}), "weights"),
        (({}, {"decoding": None}), "decoding"),
        (({}, {"inputs": "1", "\n": 1}), r"inputs and '\n'"),
    ],
)
def test_shards_whose_headers_differ_are_refused_in_a_line(tmp_path, headers, changes):
    paths = [tmp_path / f"a-{number}-of-2.jsonl" for number in (1, 2)]
    for number, (path, more) in enumerate(zip(paths, headers, strict=True)):
        rows = [
            {"shard": f"{number + 1}/2", "queries": 2, "inputs": "0", "files": number, **more},
            {"number": number, "id": "q"},
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError) as error:
        merged(tmp_path / "a.jsonl")
    assert str(error.value) == f"{paths[1]}: has other {changes} than {paths[0]}; run one of them again"


def captioned(caption: str, **more) -> list[Query]:
    return [Query(color, {"image": served.picture(color), "caption": caption, **more}) for color in ("red", "blue")]


def test_a_pipe_instead_of_a_shard_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a-1-of-1.jsonl")
    with pytest.raises(DataError) as error:
        list(merged(tmp_path / "a.jsonl"))
    reason = "not a regular file, but a pipe, socket or device"
    assert str(error.value) == f"{tmp_path / 'a-1-of-1.jsonl'}: cannot be read: {reason}"


def test_a_shard_of_other_values_is_refused(predictor, tmp_path):
    path = tmp_path / "a.jsonl"
    target = write(predictor, captioned("a red ball"), path, 1, 2)
    written = target.read_bytes()
    with pytest.raises(RunError) as error:
        write(predictor, captioned("two dogs"), path, 1, 2)
    assert str(error.value) == f"{target}: was begun with other inputs; delete it, or choose another --out"
    assert target.read_bytes() == written
    second = write(predictor, captioned("two dogs"), path, 2, 2)
    with pytest.raises(DataError) as error:
        merged(path)
    assert str(error.value) == f"{second}: has other inputs than {target}; run one of them again"


def test_a_stopped_shard_of_other_values_is_refused_under_the_name_of_its_file(predictor, tmp_path):
    def stop(steps):
        if steps:
            raise KeyboardInterrupt

    path, partial = tmp_path / "a.jsonl", tmp_path / ".a-1-of-1.jsonl.partial"
    with pytest.raises(KeyboardInterrupt):
        write_shard(predictor, captioned("a red ball"), GREEDY, path, part(captioned(""), 1, 1), stop)
    written = partial.read_bytes()
    with pytest.raises(RunError) as error:
        write(predictor, captioned("two dogs"), path, 1, 1)
    assert str(error.value) == f"{partial}: was begun with other inputs; delete it, or choose another --out"
    assert not hasattr(error.value, "__notes__")  # the same command does not continue
    assert partial.read_bytes() == written


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


def test_partial_answers_of_another_command_are_refused(predictor, tmp_path):
    partial = tmp_path / ".a-1-of-1.jsonl.partial"
    partial.write_text('{"id": "red", "texts": []}\n{"id": ')
    with pytest.raises(RunError) as error:
        write(predictor, captioned("x"), tmp_path / "a.jsonl", 1, 1)
    assert str(error.value) == (
        f"{partial}:1: is not the answers of shard 1/1; delete this file, or choose another --out"
    )
    assert not hasattr(error.value, "__notes__") and partial.read_text().endswith('{"id": ')


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"number": [0], "id": "red"}, "answers no query of shard 1/1"),
        ({"number": True, "id": "blue"}, "answers no query of shard 1/1"),
        ({"number": 2, "id": "red"}, "answers no query of shard 1/1"),
        ({"number": 1, "id": "red"}, "answers no query of shard 1/1"),
        ({"id": "red"}, "answers no query of shard 1/1"),
        ({"number": 0, "id": "red"}, "query 0 is answered twice, also in line 2"),
    ],
)
def test_damaged_lines_of_a_stopped_shard_are_refused(predictor, tmp_path, line, problem):
    queries, partial = captioned("x"), tmp_path / ".a-1-of-1.jsonl.partial"
    rows = [header_of(predictor, queries, GREEDY, part(queries, 1, 1)), {"number": 0, "id": "red"}, line]
    partial.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError) as error:
        write(predictor, queries, tmp_path / "a.jsonl", 1, 1)
    assert str(error.value) == f"{partial}:3: {problem}; delete this file and run the shard again"
    assert not hasattr(error.value, "__notes__")


def test_a_stopped_shard_continues_before_a_line_that_is_nested_too_deeply(predictor, tmp_path):
    queries, path, partial = captioned("x"), tmp_path / "a.jsonl", tmp_path / ".a-1-of-1.jsonl.partial"
    header = json.dumps(header_of(predictor, queries, GREEDY, part(queries, 1, 1)))
    partial.write_text(f'{header}\n{{"number": 0, "id": "red", "texts": []}}\n' + "[" * 100_000 + "\n")
    write(predictor, queries, path, 1, 1)
    assert [(answer["id"], bool(answer["texts"])) for answer in merged(path)] == [("red", False), ("blue", True)]
