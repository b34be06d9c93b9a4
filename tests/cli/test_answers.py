"""The command `mmgen generate`: draws that can be repeated, and shards. More is in transcripts/answers.txt."""

import json
import re

import pytest
from click.testing import CliRunner
from kit import small_runs

from mmgen.cli import main

SAMPLED = ("--set", "decoding.do_sample=true", "--set", "decoding.num_beams=1", "--set", "decoding.temperature=3.0")
pytestmark = pytest.mark.slow


def texts_of(tmp_path, *arguments, out="out.jsonl"):
    """The texts by id, and what the command says."""
    command = ["generate", str(small_runs.drawn("writes")), *arguments, "--out", str(tmp_path / "out.jsonl")]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    lines = (tmp_path / out).read_text().splitlines()
    return {line["id"]: line["texts"][0]["text"] for line in map(json.loads, lines)}, done.output


@pytest.fixture
def captions(tmp_path):
    lines = [json.dumps({"id": caption, "caption": caption}) for caption in ("a red dog", "two cats", "a tent")]
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    return str(tmp_path / "all.jsonl")


def test_sampling_can_be_repeated_and_other_lines_change_nothing(tmp_path, captions):
    (tmp_path / "one.jsonl").write_text(json.dumps({"caption": "a tent"}))
    together, _ = texts_of(tmp_path, captions, *SAMPLED, "--seed", "5")
    alone, _ = texts_of(tmp_path, str(tmp_path / "one.jsonl"), *SAMPLED, "--seed", "5")
    assert alone == {"one.jsonl:1": together["a tent"]} and len({*together.values()}) == 3
    drawn, said = texts_of(tmp_path, str(tmp_path / "one.jsonl"), *SAMPLED)
    (seed,) = re.findall(r"sampled with seed (\d+);", said)
    assert texts_of(tmp_path, str(tmp_path / "one.jsonl"), *SAMPLED, "--seed", seed)[0] == drawn != alone


def test_the_files_of_all_shards_are_the_whole(tmp_path, captions):
    whole, _ = texts_of(tmp_path, captions)
    shards = [texts_of(tmp_path, captions, "--shard", f"{n}/2", out=f"out-{n}-of-2.jsonl")[0] for n in (1, 2)]
    assert [*map(len, shards)] == [1, 2] and {**shards[0], **shards[1]} == whole
    assert [*shards[0], *shards[1]] == [*whole]
