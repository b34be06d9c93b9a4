"""Queries from Python values, NAME=VALUE pairs and lines."""

import contextlib
import gzip
import json
import tracemalloc

import pytest

from mmgen.errors import DataError, RunError
from mmgen.examples import Example
from mmgen.inference import query as query_module
from mmgen.inference.query import Query, named_values, queries_of, read_sources
from mmgen.progress import Progress
from mmgen.reading.text import json_lines, numbered_lines


def test_what_is_typed_is_utf_8_whatever_the_locale():
    """Python decodes bytes that are invalid in the locale as lone surrogates."""
    assert named_values(["caption=two caf\udcc3\udca9s"]) == {"caption": "two cafés"}
    with pytest.raises(DataError) as error:
        named_values(["caption=two caf\udce9s"])
    assert str(error.value) == "--input caption: the value is not UTF-8; write it in UTF-8"


def test_a_list_of_nothing_is_nothing_given():
    """An input without pictures is missing."""
    (query,) = read_sources([], {"image": [], "caption": "a dog", "choices": [""]})
    assert query.inputs == {"caption": "a dog", "choices": [""]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a " * 600_000, "q: 'caption' has 1,200,000 characters; the limit is 1,000,000"),
        (["a", "\ud800"], "q: 'caption' contains a lone surrogate ('\\ud800'); remove it"),
    ],
)
def test_texts_that_no_tokenizer_should_see_are_refused(value, message):
    with pytest.raises(DataError) as error:
        Query("q", {"caption": value}).check()
    assert str(error.value) == message


def test_a_list_is_many_queries_and_anything_else_is_one():
    example = Example("e", {})
    assert queries_of("a.jpg", {"caption": "x"}) == [Query("a.jpg", {"caption": "x"}, "a.jpg")]
    assert queries_of(None, {"caption": "x"}) == [Query("this query", {"caption": "x"})]
    assert queries_of(["a.jpg", {"caption": "y"}, Query("own", {"image": "k"}), example], {"caption": "x"}) == [
        Query("a.jpg", {"caption": "x"}, "a.jpg"),
        Query("2", {"caption": "y"}),
        Query("own", {"caption": "x", "image": "k"}),
        example,
    ]
    with pytest.raises(DataError) as error:
        queries_of(("a.jpg", "b.jpg"), {})
    assert str(error.value) == (
        "a tuple is not a query; give a list of queries, or All((a, b)) for two pictures of one query"
    )


class Watched(Progress):
    """Records its calls, and how many lines were read before each."""

    def __init__(self):
        self.read, self.said = 0, []

    @contextlib.contextmanager
    def task(self, label, total, unit="", done=0):
        self.label, self.total = label, total

        def advance(steps=1, text=""):
            self.read += steps

        yield advance

    def say(self, text):
        self.said.append((self.read, text))


@pytest.mark.parametrize("wrong", ['{"captoin": "x"}', '{"caption": ', '{"caption": "\\ud800"}'])
def test_the_first_wrong_line_of_a_long_file_is_reported_while_the_file_is_read(tmp_path, monkeypatch, wrong):
    monkeypatch.setattr(query_module, "LONG", 10)
    path, right = tmp_path / "q.jsonl", json.dumps({"caption": "a"})
    path.write_text("\n".join([*[right] * 10, wrong, *[right] * 38, wrong]))

    def check(query):
        if "captoin" in query.inputs:
            raise DataError(f"{query.where}: unknown input 'captoin'")

    progress = Watched()
    queries = read_sources([path], {}, check, progress)
    assert (len(queries), progress.label, progress.total, progress.read) == (50, "reading q.jsonl", 50, 50)
    ((lines_before, text),) = progress.said
    assert lines_before == 10 and text.startswith(f"{path}:11: ") and text.endswith("; reading the other lines")
    path.write_text("\n".join([wrong, right]))
    progress = Watched()
    assert len(read_sources([path], {}, check, progress)) == 2 and not progress.said and not progress.read


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"image": "a.jpg", "id": [1]}', '"id" must be a string, not [1]'),
        ("3", "not a JSON object"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_requests_of_odd_types(tmp_path, line, expected):
    (tmp_path / "r.jsonl").write_text('{"caption": "a"}\n' + line)
    message = read_sources([tmp_path / "r.jsonl"])[1].problem
    assert message.startswith(f"{tmp_path}/r.jsonl:2: invalid line (") and expected in message


@pytest.mark.parametrize("read", [lambda path: read_sources([path]), lambda path: list(json_lines(path))])
def test_blank_lines_take_no_memory(tmp_path, read):
    path = tmp_path / "q.jsonl"
    path.write_bytes(gzip.compress(b"\n" * (4 << 20) + b'{"caption": "x"}\n', 1))
    tracemalloc.start()
    assert len(read(path)) == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 << 20  # the text, while it is unpacked; a list of all lines takes 32 MB


@pytest.mark.parametrize("text", ["", "\n", "a", "\na \n\n \t\u2003\n b\u2028c\r\nd\x0ce\n\n", "\n \n  x", "a\nb\n \n"])
def test_lines_end_at_line_feeds_and_blank_ones_are_counted(text):
    expected = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    assert list(numbered_lines(text)) == expected


def test_too_many_queries_are_refused_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(query_module, "MOST_LINES", 2)
    path = tmp_path / "q.jsonl"
    path.write_text('\n{"caption": "x"}\n\n{"caption": "y"}\n\n')
    assert len(read_sources([path])) == 2
    path.write_text("{\n" * 3)
    monkeypatch.setattr(query_module, "_query_of_text", None)
    with pytest.raises(DataError) as error:
        read_sources([path])
    assert str(error.value) == f"{path}: has more than 2 queries; split the file into smaller files"


def test_a_file_that_does_not_fit_into_memory_is_one_line(tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError

    (tmp_path / "q.jsonl").write_text('{"caption": "x"}\n')
    monkeypatch.setattr(query_module, "_query_of_text", fail)
    with pytest.raises(RunError) as error:
        read_sources([tmp_path / "q.jsonl"])
    assert str(error.value) == f"{tmp_path}/q.jsonl: out of memory; split the file into smaller files"
