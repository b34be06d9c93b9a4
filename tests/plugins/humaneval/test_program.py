"""Programs as judges: requests, the example of an endpoint against a stand-in, ratings as a sheet, and agreement."""

import json
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from kit.humaneval import answer, command, make_sheet, write
from mmgen_humaneval.answers import read
from mmgen_humaneval.criteria import CRITERIA, QGEVAL
from mmgen_humaneval.form import make
from mmgen_humaneval.program import fill, write_requests
from mmgen_humaneval.statistics import evaluate, format_result
from mmgen_humaneval.systems import gather, with_answers

from mmgen.errors import DataError, RunError
from mmgen.registry import installed

EXAMPLE = Path(__file__).parents[3] / "examples" / "judge_openai.py"


@pytest.fixture(scope="module")
def rated(run, tmp_path_factory):
    """The folder of a sheet of two pictures with the seven dimensions, and its requests."""
    material = gather([run], (), installed())
    examples = [replace(example, facts={**example.facts, "aim": "a red ball"}) for example in material.examples]
    folder = tmp_path_factory.mktemp("rated")
    material = with_answers(replace(material, examples=examples), "aim")
    make_sheet(material, folder, count=2, criteria="qgeval")
    assert write_requests(folder / "s.html", folder / "s.jsonl") == 7 * 5
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
    header, *lines = lines_of(rated / "s.jsonl")
    assert header["format"] == "mmgen judge requests 1" and sorted(header["criteria"]) == sorted(QGEVAL)
    assert not any(word in (rated / "s.jsonl").read_text() for word in ("zebrastep", "quaggastep", "human"))
    pictures = {line["picture"]: line["url"] for line in lines if "url" in line}
    assert len(pictures) == 2 and all(url.startswith("data:image/jpeg;base64,") for url in pictures.values())
    for line in (line for line in lines if "key" in line):
        shows = CRITERIA[line["criterion"]].shows
        assert (line["picture"] in pictures) == ("picture" in shows)
        assert ("Answer: a red ball" in line["prompt"]) == ("answer" in shows) and "Caption" not in line["prompt"]
        assert CRITERIA[line["criterion"]].meaning in line["prompt"]


@pytest.mark.slow
def test_the_example_judges_and_asks_nothing_twice(rated, endpoint, tmp_path):
    requests, ratings = rated / "s.jsonl", tmp_path / "ratings.jsonl"
    address = f"http://127.0.0.1:{endpoint.server_port}/v1"
    call = [sys.executable, str(EXAMPLE), str(requests), str(ratings), address, "stand-in"]
    subprocess.run(call, check=True, timeout=600)
    keys = {line["key"] for line in lines_of(requests) if "key" in line}
    assert len(endpoint.calls) == len(keys) <= 35  # what is asked of two pictures alike is asked once
    assert {path for path, _, _ in endpoint.calls} == {"/v1/chat/completions"}
    assert {pictures for _, _, pictures in endpoint.calls} == {0, 1}
    subprocess.run(call, check=True, timeout=600)
    assert len(endpoint.calls) == len(keys)
    result = command("fill", requests, ratings)
    assert result.output == f"{tmp_path / 'ratings.sheet.json'}: 35 ratings by stand-in\n"
    answers = read(rated / "s.key.json", [tmp_path / "ratings.sheet.json"])
    assert answers.programs == {"stand-in"} and not any(ratings.size == 0 for ratings in answers.ratings.values())
    rates = {line["key"]: line["rating"] for line in lines_of(ratings)}
    sheet = json.loads((tmp_path / "ratings.sheet.json").read_text())
    for line in (line for line in lines_of(requests) if "key" in line):
        assert sheet["ratings"][line["id"]][line["criterion"]] == rates[line["key"]] == len(line["prompt"]) % 5 + 1


def test_the_key_depends_on_the_prompt_and_the_picture(rated):
    lines = [line for line in lines_of(rated / "s.jsonl") if "key" in line]
    assert len({line["key"] for line in lines}) == len({(line["prompt"], line["picture"]) for line in lines})


def test_missing_ratings_are_counted(rated, tmp_path):
    key = next(line["key"] for line in lines_of(rated / "s.jsonl") if "key" in line)
    ratings = write(tmp_path / "some.jsonl", json.dumps({"key": key, "rating": 3}) + "\n")
    result = command("fill", rated / "s.jsonl", ratings, "--judge", "rules", "--out", tmp_path / "o.json")
    assert result.output == (
        f"{tmp_path / 'o.json'}: 1 ratings by rules\n34 ratings are missing; `mmgen judge score` needs --partial\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"key": "K", "rating": 6}', ':1: "rating" is 6; ratings are whole numbers from 1 to 5'),
        ('{"key": "K", "rating": "4"}', ':1: "rating" is "4"; ratings are whole numbers from 1 to 5'),
        ('{"key": "K", "rating": 4}\n\n{"key": "K", "rating": 5}', ":3: rates what line 1 rates 4; delete one of the"),
        ('{"key": "K", "rating": 4', ":1: invalid line (not valid JSON: "),
        ("[4]", ":1: invalid line; write a JSON object"),
        ('{"key": "another", "rating": 4}', ": rates nothing of "),
        (
            '{"key": "K", "rating": 4}',
            ': no "model" in the lines; give ratings by one model, and its name with --judge',
        ),
    ],
)
def test_ratings_that_cannot_be_used_are_named(rated, tmp_path, text, message):
    key = next(line["key"] for line in lines_of(rated / "s.jsonl") if "key" in line)
    ratings = write(tmp_path / "r.jsonl", text.replace("K", key))
    with pytest.raises(DataError) as error:
        fill(rated / "s.jsonl", ratings, "", tmp_path / "o.json")
    assert str(error.value).startswith(f"{ratings}{message}")


def test_two_models_and_other_files_are_named(rated, tmp_path):
    keys = [line["key"] for line in lines_of(rated / "s.jsonl") if "key" in line][:2]
    lines = [json.dumps({"key": key, "rating": 3, "model": f"m\n{number}"}) for number, key in enumerate(keys)]
    ratings = write(tmp_path / "r.jsonl", "\n".join(lines))
    with pytest.raises(
        DataError, match=r"ratings by 2 models \('m\\n0', 'm\\n1'\); give ratings by one model, and its name"
    ):
        fill(rated / "s.jsonl", ratings, "", tmp_path / "o.json")
    with pytest.raises(DataError, match="not a file of requests; give the file from `mmgen judge requests`"):
        fill(ratings, ratings, "", tmp_path / "o.json")
    with pytest.raises(DataError, match="not a sheet; give the .html file from `mmgen judge make`"):
        write_requests(ratings, tmp_path / "o.jsonl")
    with pytest.raises(DataError, match="no such file"):
        write_requests(tmp_path / "none.html", tmp_path / "o.jsonl")


PEOPLE = {"first": [1, 4, 2, 5, 1, 5, 3], "second": [2, 5, 2, 5, 2, 4, 3], "third": [1, 5, 1, 5, 1, 5, 4]}


def scored(key, folder, sheets, programs=()):
    paths = [
        write(folder / f"{name}.json", {**answer(name, values), "program": name in programs})
        for name, values in sheets.items()
    ]
    return evaluate(read(key, paths))


def test_a_program_is_compared_with_people_as_people_are(key, tmp_path):
    alone = scored(key, tmp_path, PEOPLE)
    copied = scored(key, tmp_path, {**PEOPLE, "model": PEOPLE["first"]}, {"model"})
    assert (copied.systems, copied.agreement) == (alone.systems, alone.agreement)  # a program changes no mean
    assert not alone.pairs and not alone.programs
    pairs = [
        scored(key, tmp_path, {name: PEOPLE[name] for name in names}).agreement["readability"]
        for names in (("first", "second"), ("first", "third"), ("second", "third"))
    ]
    assert copied.pairs["people"]["readability"] == pytest.approx(sum(pairs) / 3)
    assert copied.pairs["model"]["readability"] == pytest.approx((1 + pairs[0] + pairs[1]) / 3)
    assert copied.programs["model"]["human"]["readability"] == pytest.approx((4 + 5 + 5 + 3) / 4)
    lines = list(format_result(copied))
    assert any(line.startswith("3 judges (and 1 program for comparison), 4 pictures, ") for line in lines)
    assert f"alpha of two people, the mean over pairs: readability {sum(pairs) / 3:.2f}" in lines
    assert any(line.startswith("alpha of model and a person, the mean over pairs: readability ") for line in lines)
    assert "model gave human: readability 4.25" in lines


def test_programs_alone_fill_the_table(key, tmp_path):
    result = scored(key, tmp_path, {"model": PEOPLE["first"]}, {"model"})
    assert result.systems["model"]["readability"].mean == pytest.approx((1 + 2 + 1 + 3) / 4)
    assert not result.pairs and any(line.startswith("1 program, 4 pictures, ") for line in format_result(result))


def test_criteria_that_cannot_be_judged_are_named(run, tmp_path):
    material = gather([run], (), installed())
    form = make(material, tmp_path / "s.html", count=2, criteria="all")
    assert form.notes[0] == (
        "answer consistency is not judged: answers are missing; --answer names the input or fact of the examples that "
        "has them"
    )
    with pytest.raises(
        RunError, match="^--answer aim: example 'test-.*' has no text 'aim' among its inputs and facts$"
    ):
        with_answers(material, "aim")
