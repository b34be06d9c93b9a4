"""Programs as judges: requests, the example of an endpoint against a stand-in, ratings as a sheet, and agreement."""

import json
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from kit.humaneval import command, make_sheet, write
from mmgen_humaneval.criteria import CRITERIA, QGEVAL
from mmgen_humaneval.program import fill, write_requests
from mmgen_humaneval.sheet import Sheet, read
from mmgen_humaneval.statistics import read_answers
from mmgen_humaneval.systems import gather

from mmgen.errors import DataError
from mmgen.registry import installed

EXAMPLE = Path(__file__).parents[3] / "examples" / "judge_openai.py"


@pytest.fixture(scope="module")
def rated(run, tmp_path_factory):
    """The folder of a sheet of two pictures with the seven dimensions, and its requests."""
    folder = tmp_path_factory.mktemp("rated")
    material = gather([run], (), installed())
    answers = {example.id: "a red ball" for example in material.examples}
    make_sheet(replace(material, answers=answers), folder, count=2, criteria="qgeval")
    assert write_requests(read(folder / "s.json", Sheet), folder / "s.requests.jsonl") == 7 * 5
    return folder


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class StandIn(BaseHTTPRequestHandler):
    """An endpoint that rates by the length of the prompt, and counts calls and pictures."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text, *pictures = body["messages"][0]["content"]
        self.server.calls.append((self.path, body["model"], len(pictures)))
        assert all(picture["image_url"]["url"].startswith("data:image/jpeg;base64,") for picture in pictures)
        reply = f"Rating: {len(text['text']) % 5 + 1}."
        payload = json.dumps({"choices": [{"message": {"content": reply}}]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *arguments):
        return


@pytest.fixture
def endpoint():
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    server.calls = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_requests_name_no_system_and_show_what_people_see(rated):
    lines = lines_of(rated / "s.requests.jsonl")
    assert {line["criterion"] for line in lines if "key" in line} == {*QGEVAL}
    assert not any(word in (rated / "s.requests.jsonl").read_text() for word in ("zebrastep", "quaggastep", "human"))
    pictures = {line["picture"]: line["url"] for line in lines if "url" in line}
    assert len(pictures) == 2 and all(url.startswith("data:image/jpeg;base64,") for url in pictures.values())
    for line in (line for line in lines if "key" in line):
        shows = CRITERIA[line["criterion"]].shows
        assert (line["picture"] in pictures) == ("picture" in shows)
        assert ("Answer: a red ball" in line["prompt"]) == ("answer" in shows) and "Caption" not in line["prompt"]
        assert CRITERIA[line["criterion"]].meaning in line["prompt"]


@pytest.mark.slow
def test_the_example_judges_and_asks_nothing_twice(rated, endpoint, tmp_path):
    requests, ratings = rated / "s.requests.jsonl", tmp_path / "ratings.jsonl"
    address = f"http://127.0.0.1:{endpoint.server_port}/v1"
    call = [sys.executable, str(EXAMPLE), str(requests), str(ratings), address, "stand-in"]
    subprocess.run(call, check=True, timeout=600)
    keys = {line["key"] for line in lines_of(requests) if "key" in line}
    assert len(endpoint.calls) == len(keys) <= 35  # what is asked of two pictures alike is asked once
    assert {path for path, _, _ in endpoint.calls} == {"/v1/chat/completions"}
    assert {pictures for _, _, pictures in endpoint.calls} == {0, 1}
    subprocess.run(call, check=True, timeout=600)
    assert len(endpoint.calls) == len(keys)
    result = command("fill", rated / "s.json", ratings)
    assert result.output == f"{tmp_path / 'ratings.sheet.json'}: ratings by stand-in\n"
    assert read_answers(rated / "s.key.json", [tmp_path / "ratings.sheet.json"]).judges == ["stand-in"]
    rates = {line["key"]: line["rating"] for line in lines_of(ratings)}
    sheet = json.loads((tmp_path / "ratings.sheet.json").read_text())
    for line in (line for line in lines_of(requests) if "key" in line):
        assert sheet["ratings"][line["id"]][line["criterion"]] == rates[line["key"]] == len(line["prompt"]) % 5 + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"key": "K", "rating": 6, "model": "m"}', ":1: rating must be less than or equal to 5"),
        ('{"key": "K", "rating": 4}\n\n{"key": "K", "rating": 5}', ":3: duplicate key '"),
        ('{"key": "K", "rating": 4}', ": names 0 models; give ratings by one model, and its name with --judge"),
        ('{"key": "of another", "rating": 4, "model": "m"}', ": rates nothing of this sheet; give the ratings of its"),
    ],
)
def test_ratings_that_cannot_be_used_are_named(rated, tmp_path, text, message):
    key = next(line["key"] for line in lines_of(rated / "s.requests.jsonl") if "key" in line)
    ratings = write(tmp_path / "r.jsonl", text.replace("K", key))
    with pytest.raises(DataError) as error:
        fill(read(rated / "s.json", Sheet), ratings, "", tmp_path / "o.json")
    assert str(error.value).startswith(f"{ratings}{message}")
