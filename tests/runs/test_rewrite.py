"""`mmgen write`: a finished run's steps write again with another decoding."""

import json
import shutil
from pathlib import Path

import pytest
from kit import toys
from kit.toys import PLACE, mmgen_here

pytestmark = pytest.mark.slow


RECIPE = toys.recipe(data={"train_size": 16, "test_size": 4})


BEAMS = ("--set", "decoding.num_beams=3")


PLACES = [PLACE / "steps" / step / "decodings/num_beams-3" for step in ("first", "second")]


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    (folder / "toy.toml").write_text(RECIPE)
    done = mmgen_here(folder, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def written(plain, tmp_path_factory) -> Path:
    folder = Path(shutil.copytree(plain, tmp_path_factory.mktemp("written") / "copy"))
    done = mmgen_here(folder, "write", PLACE, *BEAMS)
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout)
    return folder


@pytest.fixture
def run(plain, tmp_path) -> Path:
    return Path(shutil.copytree(plain, tmp_path / "copy"))


def refused(folder: Path, *arguments) -> str:
    done = mmgen_here(folder, "write", *arguments)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    return done.stderr.rstrip("\n")


def table(folder: Path) -> list[str]:
    """The names of the table's rows, and the lines below it."""
    lines = (folder / PLACE / "table.md").read_text().splitlines()
    return [line.split("|")[1].strip() if line.startswith("| ") else line for line in lines]


def test_what_is_written_again_is_what_a_run_with_that_decoding_writes(written, plain, run):
    assert mmgen_here(run, "run", "toy.toml", *BEAMS).returncode == 0
    for place in PLACES:
        for file in ("generations.jsonl", "scores.json"):
            assert (written / place / file).read_bytes() == (run / place.parents[1] / file).read_bytes()
            first = place.parents[1] / file
            assert (written / first).read_bytes() == (plain / first).read_bytes()
        assert json.loads((written / place / "decoding.json").read_text())["num_beams"] == 3
    recipe_file = PLACE / "recipe.json"
    assert (written / recipe_file).read_bytes() == (plain / recipe_file).read_bytes()


def test_the_table_says_which_decoding_a_row_is_of(written):
    lines = table(written)
    assert lines[2:9] == ["step", lines[3], "first", "first [num_beams-3]", "second", "second [num_beams-3]", "people"]
    note = "[num_beams-3]: the same weights with another decoding (num_beams: 1 -> 3)"
    assert note in lines and note in (written / "said.txt").read_text()
    assert "| second [num_beams-3] |" in (written / "said.txt").read_text()
    again = mmgen_here(written, "run", "toy.toml")
    assert "nothing to do: all steps are done" in again.stdout and "| first [num_beams-3] " in again.stdout
    assert "second [num_beams-3]" in (written / PLACE / "report.html").read_text()


def test_one_step_and_a_name(run):
    done = mmgen_here(run, "write", PLACE, *BEAMS, "--step", "second", "--name", "three")
    assert done.returncode == 0, done.stderr
    assert [path.parent.name for path in (run / PLACE).rglob("decoding.json")] == ["three"]
    assert refused(run, PLACE, "--set", "decoding.num_beams=4", "--name", "three", "--step", "second") == (
        f"error: {PLACE}/steps/second/decodings/three contains texts of a different decoding (num_beams: 3 -> 4); "
        "choose another --name, or delete the folder"
    )


def test_interrupted_it_goes_on(run, written, monkeypatch):
    from mmgen import files

    class Killed(BaseException):
        pass

    write, seen = files.write_atomically, []

    def die(path, *more):
        seen.append(path.name)
        if seen.count("generations.jsonl") == 2 or path.name == "scores.json":
            raise Killed
        return write(path, *more)

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_atomically", die)
        for _ in range(2):  # at the second step's texts, and at the first scores
            with pytest.raises(Killed):
                mmgen_here(run, "write", PLACE, *BEAMS)
    assert mmgen_here(run, "write", PLACE, *BEAMS).returncode == 0
    assert seen.count("generations.jsonl") == 3  # the first step's once
    for place in PLACES:
        for file in ("generations.jsonl", "scores.json"):
            assert (run / place / file).read_bytes() == (written / place / file).read_bytes()
    assert table(run) == table(written)


def test_changed_metrics_score_it_again(written, tmp_path):
    run = Path(shutil.copytree(written, tmp_path / "copy"))
    assert mmgen_here(run, "run", "toy.toml", "--set", "metrics.variety.type=diversity").returncode == 0
    for place in PLACES:
        values = json.loads((run / place / "scores.json").read_text())["values"]
        assert "distinct-1" in values
        assert (run / place / "generations.jsonl").read_bytes() == (written / place / "generations.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "the decoding is unchanged; add --set decoding.KEY=VALUE, such as --set decoding.num_beams=4"),
        (
            ("--set", "training.epochs=3"),
            "--set training.epochs=3: the settings of a trained run are fixed; only decoding.* can be overridden",
        ),
        (
            ("--set", "decoding.num_beams=1"),
            "--set decoding.num_beams=1: already generated with these settings; see steps/*/generations.jsonl",
        ),
        (
            ("--set", "decoding.num_beam=3"),
            "--set decoding.num_beam=3: decoding.num_beam: no such key; did you mean 'num_beams'?",
        ),
        (
            (*BEAMS, "--step", "secnd"),
            "--step secnd: the recipe has no such step; did you mean 'second'?; available: first, second",
        ),
        (
            (*BEAMS, "--name", "../up"),
            "--name ../up: a folder name must consist of letters, digits, '_', '-' and '.'",
        ),
    ],
)
def test_mistakes_are_a_line(plain, arguments, said):
    assert refused(plain, PLACE, *arguments) == f"error: {said}"


def test_no_run_and_other_data_are_a_line(plain, run):
    assert refused(plain, "nowhere", *BEAMS) == (
        "error: nowhere: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)"
    )
    data = run / PLACE / "data.json"
    data.write_text(data.read_text().replace('"fingerprint": "', '"fingerprint": "0'))
    assert refused(run, PLACE, *BEAMS) == (
        f"error: {PLACE}: the data set's examples have changed since the run; restore the original data"
    )


def test_seeds_are_averaged_where_they_have_the_decoding(run):
    assert mmgen_here(run, "run", "toy.toml", "--seed", "1").returncode == 0
    second_seed = PLACE.parent / "seed-1"
    for place in (PLACE, second_seed):
        assert mmgen_here(run, "write", place, *BEAMS, "--step", "second").returncode == 0
    lines = (run / PLACE.parent / "table.md").read_text().splitlines()
    (row,) = [line for line in lines if line.startswith("| second [num_beams-3]")]
    assert " ± " in row and "mean ± standard deviation over seeds 0, 1" in lines
