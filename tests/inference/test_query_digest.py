"""Digests of queries: they change with every value, and stay the same where answers cannot differ."""

import pytest
from kit import served

from mmgen.errors import DataError
from mmgen.examples import All
from mmgen.inference.query import Query, read_sources
from mmgen.inference.query_digest import digest_features, digest_files, digest_queries


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    return served.predictor(tmp_path_factory.mktemp("served"))


VALUES = {"image": "a", "caption": "x"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Query("q", VALUES), Query("r", VALUES)),
        (Query("q", VALUES), Query("q", {**VALUES, "caption": "y"})),
        (Query("q", VALUES), Query("q", {**VALUES, "prompt": "y"})),
        (Query("q", {"caption": "1"}), Query("q", {"caption": 1})),
        (Query("q", {"image": b"a"}), Query("q", {"image": b"b"})),
        (Query("q", {"image": ["a", "b"]}), Query("q", {"image": ["b", "a"]})),
        (Query("q", {"image": All(("a", "b"))}), Query("q", {"image": All(("b", "a"))})),
        (Query("q", {"caption": "\ud800"}), Query("q", {"caption": "\ud801"})),
        (Query("q", problem="p"), Query("q", problem="o")),
    ],
)
def test_every_value_changes_the_digest(predictor, first, second):
    assert digest_queries(predictor, [first]) != digest_queries(predictor, [second])


def test_the_order_of_keys_and_the_place_of_the_file_do_not_change_the_digest(predictor, tmp_path):
    digests = set()
    for name, line in (("a", '{"image": "k", "caption": "x"}'), ("b", '{"caption": "x", "image": "k"}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "q.jsonl").write_text(line + "\n{\n")
        digests.add(digest_queries(predictor, read_sources([tmp_path / name / "q.jsonl"])))
    assert len(digests) == 1


@pytest.mark.parametrize(
    "value", ["p.png", ["k", "p.png"], All(("k", "p.png")), {"picture": "p.png", "boxes": [[0, 0, 1, 1]]}]
)
def test_files_of_pictures_change_the_digest(predictor, tmp_path, value):
    queries = [Query("q", {"image": value, "caption": "x"}, folder=tmp_path)]

    def digests():
        return digest_queries(predictor, queries), digest_files(predictor, queries)

    missing = digests()
    (tmp_path / "p.png").write_bytes(b"1")
    small = digests()
    (tmp_path / "p.png").write_bytes(b"12")
    assert all(len(set(pair)) == 3 for pair in zip(missing, small, digests(), strict=True))


def test_stores_of_the_same_name_and_size_differ_by_their_ends(predictor, tmp_path, monkeypatch):
    reader, digests = predictor.features.embedders["image"].reader, []
    for name, content in (("a", b"1" * 300_000), ("b", b"1" * 299_999 + b"2"), ("c", b"1" * 300_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.h5").write_bytes(content)
        for path in (tmp_path / name / "f.h5", tmp_path / name):
            monkeypatch.setattr(reader, "path", path)
            digests.append(digest_features(predictor))
    assert digests[:2] == digests[4:] and digests[0] != digests[2] and digests[1] != digests[3]
    monkeypatch.setattr(reader, "path", tmp_path / "missing.h5")
    assert digest_features(predictor) not in digests


def test_a_value_that_cannot_be_compared_is_refused_in_a_line(predictor):
    with pytest.raises(DataError) as error:
        digest_queries(predictor, [Query("q", {"image": object()})])
    assert str(error.value) == "q: with --shard, values must be JSON values, paths or bytes"
    nested = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(DataError) as error:
        digest_queries(predictor, [Query("q", {"caption": nested})])
    assert str(error.value) == "q: a value is nested too deeply; remove the line"
