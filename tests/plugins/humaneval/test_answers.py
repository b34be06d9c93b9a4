"""Filled sheets of judges that cannot be used are named."""

import json

import pytest
from kit.humaneval import answer, command, write
from mmgen_humaneval.answers import read
from mmgen_humaneval.form import KEY

from mmgen import DataError

pytestmark = pytest.mark.slow


def test_json_nested_without_end_is_a_line(key, tmp_path):
    (tmp_path / "n.json").write_text("[" * 1_000_000)
    result = command("score", key, tmp_path / "n.json")
    assert result.exit_code == 1 and result.output.startswith(f"error: {tmp_path}/n.json: not JSON; give the key")


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        (
            answer("first", [1, 4, 2, 4, 3, None, None]),
            "2 of 7 ratings are missing (first: readability of 3-2); complete the sheet, or use --partial",
        ),
        (answer("first", [1, 4, 2, 4, 3, 6, 1]), "readability of 3-2 is 6; ratings are whole numbers from 1 to 5"),
        (answer("first", [1, 4, 2, 0, 3, 6, 1]), "readability of 2-2 is 0; ratings are whole numbers from 1 to 5"),
        (
            answer("first", [1, 4, 2, 4, 3, True, 1]),
            "readability of 3-2 is true; ratings are whole numbers from 1 to 5",
        ),
        (answer("first", [1, 4, 2, 4, 3, "5", 1]), 'readability of 3-2 is "5"; ratings are whole numbers from 1 to 5'),
        (answer("first", [1, 4, 2, 4, 3, 4.5, 1]), "readability of 3-2 is 4.5; ratings are whole numbers from 1 to 5"),
        (
            answer("first", [1] * 7, sheet="xyz"),
            "belongs to sheet xyz, but KEY is the key of sheet abc; use matching files",
        ),
        (answer("  ", [1] * 7), 'the judge\'s name is missing; add it as "judge"'),
        (
            {**answer("first", [1] * 7), "ratings": {"9-1": {"readability": 1}}},
            "ratings of 9-1 do not match the sheet; use the file as the page saved it",
        ),
        (
            {**answer("first", [1] * 7), "ratings": {"1-1": {"beauty": 1}}},
            "ratings of 1-1 do not match the sheet; use the file as the page saved it",
        ),
        ({**answer("first", [1] * 7), "ratings": []}, "not a filled sheet; give the file that the page saves"),
        ([1], "not a filled sheet; give the file that the page saves"),
        ("{", "not JSON; give the key first, then the files that judges saved from the page"),
    ],
)
def test_a_sheet_that_cannot_be_used_is_one_line(key, tmp_path, sheet, message):
    path = write(tmp_path / "a.json", sheet)
    result = command("score", key, path)
    assert (result.exit_code, result.output) == (1, f"error: {path}: {message.replace('KEY', str(key))}\n")


def test_all_errors_are_reported_together_with_duplicates(key, tmp_path):
    good = write(tmp_path / "a.json", answer("first", [1] * 7))
    again = write(tmp_path / "b.json", answer("FIRST ", [2] * 7))
    with pytest.raises(DataError) as error:
        read(key, [good, again, tmp_path / "none.json"])
    assert str(error.value) == (
        f"{again}: by the same judge as {good} (FIRST); give one sheet per judge\n{tmp_path}/none.json: no such file"
    )


def test_a_bad_key_is_reported(key, tmp_path):
    good = write(tmp_path / "a.json", answer("first", [1] * 7))
    for value, message in (
        (answer("first", [1] * 7), "not a key; give the .key.json from `mmgen judge make` before the sheets"),
        (
            {**json.loads(key.read_text()), "systems": ["x"]},
            "the key is damaged; create it again with the same runs, --n and --seed",
        ),
        (
            {**json.loads(key.read_text()), "questions": json.loads(key.read_text())["questions"][1:]},
            "the key is damaged; create it again with the same runs, --n and --seed",
        ),
        (
            {**json.loads(key.read_text()), "criteria": [["relevance"]]},
            "the key is damaged; create it again with the same runs, --n and --seed",
        ),
        ({"format": KEY}, "the key is damaged; create it again with the same runs, --n and --seed"),
    ):
        path = write(tmp_path / "k.json", value)
        assert command("score", path, good).output == f"error: {path}: {message}\n"
