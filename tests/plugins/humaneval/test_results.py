"""Human evaluation: blind sheets, the files that a browser saves from them, and their numbers checked by hand."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from kit import toys
from mmgen_humaneval.answers import read
from mmgen_humaneval.form import FILLED, KEY, make
from mmgen_humaneval.results import evaluate, format_result
from mmgen_humaneval.systems import Material, gather

from mmgen import DataError, RunError
from mmgen.cli import main
from mmgen.data.seeds import resolve
from mmgen.parts import Dataset
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.tensors import Example

pytestmark = pytest.mark.slow

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
RECIPE = toys.recipe(
    steps={
        "zebrastep": {"inputs": ["caption"], "train": ["backbone"]},
        "quaggastep": {"inputs": ["caption"], "train": ["backbone"], "start": "zebrastep"},
    },
    data={"train_size": 4, "val_size": 2, "test_size": 8},
    metrics=None,
)


def write_run(folder: Path, texts=None, test_size: int = 8) -> Path:
    """Write the files of a run folder that judging reads. For even pictures, steps repeat people's first question."""
    folder.mkdir(parents=True)
    (folder / "toy.toml").write_text(RECIPE.replace("test_size = 8", f"test_size = {test_size}"))
    recipe, _ = load(folder / "toy.toml", installed())
    (folder / "recipe.json").write_text(json.dumps(recipe.identity()))
    for step in recipe.steps:
        lines = []
        for place, example in enumerate(recipe.data.build().split("test")):
            text = (texts or f"what is {step[0]} {place} ?") if place % 2 else example.targets[0]
            lines.append(json.dumps([{"id": example.id, "text": text, "tokens": [], "score": 0.0}]))
        (folder / "steps" / step).mkdir(parents=True)
        (folder / "steps" / step / "generations.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return write_run(tmp_path_factory.mktemp("judging") / "run")


@pytest.fixture(scope="module")
def sheet(run, tmp_path_factory):
    """(page, key) of six pictures."""
    return make_sheet(gather([run], (), installed()), tmp_path_factory.mktemp("sheet"), count=6)


def make_sheet(material, folder, **options) -> tuple[str, dict]:
    form = make(material, folder / "s.html", **options)
    return form.page.read_text(encoding="utf-8"), json.loads(form.key.read_text())


def inside(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def command(*arguments):
    return CliRunner().invoke(main, ["judge", *map(str, arguments)])


# --- the sheet


def test_only_the_key_names_the_systems(run, sheet):
    page, key = sheet
    data = inside(page)
    for secret in ("zebrastep", "quaggastep", "human", "toy", "bert", "test-0000"):
        assert secret not in page.lower(), secret
    assert data.keys() == {"sheet", "format", "rounds", "items"}
    assert all(item.keys() == {"questions", "caption", "shot"} for item in data["items"])
    assert key["systems"] == ["zebrastep", "quaggastep", "human"] and key["sheet"] == data["sheet"]
    on_page = [question for item in data["items"] for question in item["questions"]]
    assert on_page == [{"id": question["id"], "text": question["text"]} for question in key["questions"]]


def test_every_system_has_one_question_a_picture_and_equal_ones_are_shown_once(sheet):
    page, key = sheet
    examples = list(dict.fromkeys(question["example"] for question in key["questions"]))
    assert len(examples) == 6
    for example in examples:
        questions = [question for question in key["questions"] if question["example"] == example]
        assert sorted(system for question in questions for system in question["systems"]) == [
            "human",
            "quaggastep",
            "zebrastep",
        ]
        assert len({question["text"] for question in questions}) == len(questions)
        if int(example[-1]) % 2 == 0:  # both steps wrote the same
            assert {"zebrastep", "quaggastep"} <= set(max((question["systems"] for question in questions), key=len))
        else:  # different in more than the space before the question mark
            assert {question["text"] for question in questions} >= {
                f"what is {letter} {example[-1]}?" for letter in "zq"
            }


def test_captions_and_pictures_match_their_questions(run, sheet):
    page, key = sheet
    test = {example.id: example for example in load(run / "toy.toml", installed())[0].data.build().split("test")}
    for number, item in enumerate(inside(page)["items"], 1):
        example = test[next(question["example"] for question in key["questions"] if question["id"] == f"{number}-1")]
        assert item["caption"] == resolve(example).inputs["caption"]
        assert item["shot"][0].startswith("data:image/jpeg;base64,") and item["shot"][1:] == [192, 192]
        human = next(
            question
            for question in key["questions"]
            if question["example"] == example.id and "human" in question["systems"]
        )
        assert human["text"] in example.targets


def test_photographs_are_large_enough_to_see_small_things():
    from mmgen_humaneval.form import SIDE
    from PIL import Image

    from mmgen.parts import Picture
    from mmgen.report.pictures import thumbnail

    assert thumbnail(Picture("x", lambda: Image.new("RGB", (1000, 500))), SIDE)[1:] == (640, 320)


def test_each_criterion_has_a_round_as_in_the_paper(run, sheet, tmp_path):
    assert inside(sheet[0])["rounds"] == [
        {"criteria": ["readability"], "shows": []},
        {"criteria": ["caption_relevance"], "shows": ["caption"]},
        {"criteria": ["image_relevance"], "shows": ["picture"]},
    ]
    page, _ = make_sheet(gather([run], (), installed()), tmp_path, count=2, together=True)
    assert inside(page)["rounds"] == [
        {"criteria": ["readability", "caption_relevance", "image_relevance"], "shows": ["caption", "picture"]}
    ]


def test_orders_differ_between_pictures_and_repeat_with_the_seed(run, tmp_path):
    material = gather([run], (), installed())
    pages = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / name).mkdir()
        pages.append(make_sheet(material, tmp_path / name, count=8, seed=seed))
    assert pages[0] == pages[1] and pages[0][1]["sheet"] != pages[2][1]["sheet"]
    odd = [question for question in pages[0][1]["questions"] if question["systems"] == ["zebrastep"]]
    assert len({question["id"][-1] for question in odd}) > 1


def test_capitals_do_not_reveal_the_system(tmp_path):
    examples = [Example(str(n), {"caption": f"a  dog {n}"}, (f"What is THIS {n} ?",)) for n in range(3)]
    texts = {"one": {str(n): f"is it {n}" for n in range(3)}, "Two": {str(n): f"Is it {n}" for n in range(3)}}
    captions = {example.id: example.inputs["caption"] for example in examples}
    page, _ = make_sheet(Material(Plain(), examples, texts, captions), tmp_path, count=3)
    shown = {question["text"] for item in inside(page)["items"] for question in item["questions"]}
    assert shown == {f"{start} {n}{end}" for n in range(3) for start, end in (("what is this", "?"), ("is it", ""))}


class Plain(Dataset):
    """Without pictures."""

    def splits(self):
        return ("test",)

    def split(self, name):
        return []

    def describe(self):
        return {}


def test_criteria_that_cannot_be_judged_are_left_out_and_reported(tmp_path):
    examples = [Example(str(n), {}, ("what?",)) for n in range(2)]
    form = make(Material(Plain(), examples, {"one": {"0": "a", "1": ""}}, {}), tmp_path / "s.html", count=2)
    assert form.notes == (
        "caption relevance is not judged: not every example has a caption",
        "image relevance is not judged: No pictures: this data set has no raw images; give the embedder a file of "
        "features",
    )
    assert inside(form.page.read_text())["rounds"] == [{"criteria": ["readability"], "shows": []}]


def test_runs_on_one_sheet_have_different_names(run, tmp_path):
    small, large = write_run(tmp_path / "small/seed-0"), write_run(tmp_path / "large/seed-0", texts="why?")
    assert list(gather([small, large], ("quaggastep",), installed()).texts) == [
        "small/quaggastep",
        "large/quaggastep",
    ]
    with pytest.raises(RunError) as error:
        gather([small, small], (), installed())
    assert str(error.value) == f"{small}: named twice; name each run once"
    smaller_test = write_run(tmp_path / "other", test_size=7)
    with pytest.raises(RunError) as error:
        gather([small, smaller_test], (), installed())
    assert (
        str(error.value)
        == f"{smaller_test}: its test examples differ from those of {small}; all systems of a sheet must share a test "
        "set"
    )


def test_options_that_cannot_make_a_sheet_are_reported(run, tmp_path):
    out = tmp_path / "s.html"
    for arguments, message in (
        ((run, "--n", 9), "--n 9: only 8 test examples have a question by people"),
        ((run, "--step", "none"), "--step: no step 'none' has generated texts; choose from: zebrastep, quaggastep"),
        ((run, "--out", "s.txt"), "--out s.txt: file name must end in .html"),
        ((run, "--out", ".html"), "--out .html: file name must end in .html"),
        ((run, "--out", tmp_path), f"--out {tmp_path}: file name must end in .html"),
        ((tmp_path,), f"{tmp_path}: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)"),
    ):
        result = command("make", "--out", out, *arguments, *(() if "--n" in arguments else ("--n", 2)))
        assert (result.exit_code, result.output) == (1, f"error: {message}\n")
    assert command("make", run, "--n", 2, "--out", out).exit_code == 0
    result = command("make", run, "--n", 2, "--out", out)
    assert (
        result.output
        == f"error: {out}: already exists, and judges may be filling it; choose another name for --out, or delete it\n"
    )
    (tmp_path / "o.key.json").write_text("{}")
    key = tmp_path / "o.key.json"
    assert command("make", run, "--n", 2, "--out", tmp_path / "o.html").output.endswith(
        f"error: {key}: already exists for a different sheet; choose another name for --out, or delete it\n"
    )
    empty = write_run(tmp_path / "empty")
    shutil.rmtree(empty / "steps")
    result = command("make", empty, "--out", tmp_path / "other.html")
    assert result.output == f"error: {empty}: no step has generated texts yet; continue the run with `mmgen run`\n"


def write(path: Path, value) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


# --- filled sheets


SYSTEMS = ["model", "human"]


@pytest.fixture
def key(tmp_path) -> Path:
    """Four pictures, one criterion; of the last both systems wrote one question."""
    questions = [
        {"id": f"{n}-{place}", "example": str(n), "text": f"{n}?", "systems": [system]}
        for n in (1, 2, 3)
        for place, system in enumerate(SYSTEMS, 1)
    ]
    questions.append({"id": "4-1", "example": "4", "text": "4?", "systems": SYSTEMS})
    return write(
        tmp_path / "s.key.json",
        {
            "format": KEY,
            "sheet": "abc",
            "criteria": ["readability"],
            "systems": SYSTEMS,
            "human": "human",
            "questions": questions,
        },
    )


IDS = ("1-1", "1-2", "2-1", "2-2", "3-1", "3-2", "4-1")


def answer(judge: str, values, sheet: str = "abc") -> dict:
    ratings = {
        question_id: {"readability": value} for question_id, value in zip(IDS, values, strict=True) if value is not None
    }
    return {"format": FILLED, "sheet": sheet, "judge": judge, "ratings": ratings}


def test_means_spread_and_t_tests_by_hand(key, tmp_path):
    """Model 1 2 3 5, human 4 4 5 5 by one judge; 3 2 3 3 and 4 4 5 3 by the other: means 2 2 3 4 and 4 4 5 4."""
    sheets = [
        write(tmp_path / "a.json", answer("first", [1, 4, 2, 4, 3, 5, 5])),
        write(tmp_path / "b.json", answer("second", [3, 4, 2, 4, 3, 5, 3])),
    ]
    result = evaluate(read(key, sheets))
    model, human = result.systems["model"]["readability"], result.systems["human"]["readability"]
    assert (model.mean, human.mean, model.pictures) == (2.75, 4.25, 4)
    assert model.deviation == pytest.approx(np.sqrt((0.75**2 * 2 + 0.25**2 + 1.25**2) / 3))
    assert model.difference == -1.5 and human.p is None
    # differences -2 -2 -2 0: mean -1.5, deviation 1, t = -3 with 3 degrees of freedom
    assert model.p == pytest.approx(0.0577, abs=5e-5)
    low, high = model.interval
    assert (low, high) == pytest.approx((-1.5 - 3.1824 * 0.5, -1.5 + 3.1824 * 0.5), abs=1e-3)
    # Welch: variances 11/12 and 1/4, t = -1.5 / sqrt(7/24) = -2.7775 with 4.52 degrees of freedom
    assert model.p_unpaired == pytest.approx(0.0435, abs=5e-4)
    assert result.judges == {"first": {"readability": 24 / 7}, "second": {"readability": 24 / 7}}


def test_the_same_command_continues_after_a_full_disk(run, tmp_path, monkeypatch):
    material = gather([run], (), installed())
    with monkeypatch.context() as full:
        full.setattr("mmgen_humaneval.form.write_text", lambda path, text: (_ for _ in ()).throw(RunError("full")))
        with pytest.raises(RunError, match="full"):
            make(material, tmp_path / "s.html", count=2)
    assert [path.name for path in tmp_path.iterdir()] == ["s.key.json"]
    with pytest.raises(RunError, match="for a different sheet"):
        make(material, tmp_path / "s.html", count=3)
    assert make(material, tmp_path / "s.html", count=2).page.exists()


def test_input_files_are_not_overwritten(key, tmp_path):
    sheet, before = write(tmp_path / "first.json", answer("first", [1, 4, 2, 5, 1, 5, 3])), key.read_bytes()
    for path in (key, sheet):
        result = command("score", key, sheet, "--json", path)
        message = f"error: --json {path}: is also an input file and would be overwritten; choose another name\n"
        assert (result.output, result.exit_code) == (message, 1)
    assert key.read_bytes() == before


def test_json_nested_without_end_is_a_line(key, tmp_path):
    (tmp_path / "n.json").write_text("[" * 1_000_000)
    result = command("score", key, tmp_path / "n.json")
    assert result.exit_code == 1 and result.output.startswith(f"error: {tmp_path}/n.json: not JSON; give the key")


def test_the_command_prints_the_papers_table(key, tmp_path):
    sheets = [
        write(tmp_path / f"{name}.json", answer(name, values))
        for name, values in (
            ("first", [1, 4, 2, 5, 1, 5, 3]),
            ("second", [2, 5, 2, 5, 2, 4, 3]),
            ("third", [1, 5, 1, 5, 1, 5, 4]),
        )
    ]
    result = command("score", key, *sheets, "--json", tmp_path / "o.json")
    assert result.exit_code == 0, result.output
    saved = json.loads((tmp_path / "o.json").read_text())
    cell = saved["systems"]["model"]["readability"]
    lines = result.output.splitlines()
    assert lines[0].split("|")[1:4] == [" system ", "  readability ", "     p "]
    assert lines[2].split() == [
        "|",
        "model",
        "|",
        f"{cell['mean']:.2f}",
        "±",
        f"{cell['deviation']:.2f}",
        "|",
        f"{cell['p']:.3f}",
        "|",
    ]
    assert lines[3].split()[1] == "human" and lines[3].split()[-2] == "-"
    assert (
        lines[5]
        == "3 judges, 4 pictures, 7 different questions, ratings 1 to 5; mean ± standard deviation over pictures, of "
        "the judges' mean"
    )
    assert lines[7] == f"agreement, Krippendorff's alpha (ordinal): readability {saved['agreement']['readability']:.2f}"
    assert lines[8] == "first gave 3.00 on average" and saved["missing"] == 0


def test_a_star_marks_significance_and_one_judge_has_no_agreement(key, tmp_path):
    result = evaluate(read(key, [write(tmp_path / "a.json", answer("first", [1, 5, 1, 5, 1, 5, 5]))]))
    assert result.systems["model"]["readability"].p == pytest.approx(0.0577, abs=5e-5)
    far = evaluate(read(key, [write(tmp_path / "a.json", answer("first", [1, 5, 1, 5, 1, 4, None]))], partial=True))
    lines = list(format_result(far))
    assert "1.00 ± 0.00*" in lines[2] and " ± " in lines[3] and "*" not in lines[3]
    assert "agreement, Krippendorff's alpha (ordinal): readability -; needs two judges" in lines
    assert lines[-1] == "missing ratings: 1; a difference counts only judges who rated both questions"


def test_with_missing_ratings_a_difference_is_of_judges_who_gave_both(key, tmp_path):
    sheets = [
        write(tmp_path / "a.json", answer("first", [1, 3, 1, 3, 1, 4, 2])),
        write(tmp_path / "b.json", answer("second", [5, None, 1, 3, 1, 4, 2])),
    ]
    cell = evaluate(read(key, sheets, partial=True)).systems["model"]["readability"]
    assert cell.difference == pytest.approx((-2 - 2 - 3 + 0) / 4) and cell.mean == pytest.approx((3 + 1 + 1 + 2) / 4)


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
        ({"format": KEY}, "the key is damaged; create it again with the same runs, --n and --seed"),
    ):
        path = write(tmp_path / "k.json", value)
        assert command("score", path, good).output == f"error: {path}: {message}\n"


# --- in a browser


SEEN = """
const seen = {}, at = (id) => document.getElementById(id);
const out = (id, text) => {
  const made = document.createElement("pre");
  made.id = id;
  made.textContent = text;
  document.body.append(made);
};
window.addEventListener("error", (event) => out("trouble-seen", event.message));
const press = (key) =>
  (document.activeElement || document).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
"""
BEGIN = """
seen.scale = at("start").textContent.includes("5 is the best, 1 is the worst");
at("judge").focus();
press("Enter"); // which turns pages
seen.first = at("questions").textContent;
press("7"); press("4"); press("2");
seen.marked = document.activeElement.name;
seen.kept = { ...localStorage };
out("seen", JSON.stringify(seen));
"""
GO_ON = """
seen.kept = [...document.querySelectorAll("#rate :checked")].map((each) => each.value).join("");
seen.alone = at("thing").textContent + at("thing").children.length;
for (let turn = 0; turn < 100 && at("end").hidden; turn++) {
  if (at("thing").querySelector(".caption")) seen.caption ||= at("thing").textContent;
  if (at("thing").querySelector("img")) seen.picture ||= at("thing").textContent + at("thing").querySelector("img").src;
  for (const scale of document.querySelectorAll(".scale")) if (!scale.querySelector(":checked")) press("3");
  press("Enter");
  if (document.activeElement.id === "next") document.activeElement.click();
}
seen.done = at("done").textContent;
at("save").click();
seen.unnamed = at("saved").textContent;
at("judge-end").value = "first O'Neill"; at("judge-end").dispatchEvent(new Event("input", { bubbles: true }));
HTMLAnchorElement.prototype.click = function () { seen.named = this.download; }; // a download would outlive the test
URL.createObjectURL = (blob) => { blob.text().then((text) => out("file", text)); return "blob:none"; };
at("save").click();
seen.saved = at("saved").textContent;
seen.wide = document.documentElement.scrollWidth <= innerWidth;
seen.alerted = Boolean(window.evil);
out("seen", JSON.stringify(seen));
"""


def browse(page: str, script: str, folder: Path) -> dict[str, str]:
    """Run a script in the page and return its outputs by name."""
    import html

    folder.mkdir()
    (folder / "run.html").write_text(
        page.replace("</body>", f"<script type='module'>{SEEN}{script}</script></body>"), encoding="utf-8"
    )
    dumped = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder}/profile",
            "--window-size=500,900",
            "--virtual-time-budget=2000",
            "--dump-dom",
            f"file://{folder}/run.html",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert 'id="trouble-seen"' not in dumped.stdout
    return {
        name: html.unescape(text)
        for name, text in re.findall(r'<pre id="(seen|file)">(.*?)</pre>', dumped.stdout, re.DOTALL)
    }


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, which is not on this machine")
def test_a_sheet_is_filled_in_a_browser_with_keys_and_a_reload(tmp_path):
    evil = "</script><script>window.evil = 1</script><img src=x onerror='window.evil=1'>"
    recipe, _ = load(write(tmp_path / "toy.toml", RECIPE), installed())
    dataset = recipe.data.build()
    examples = dataset.split("test")[:3]
    texts = {name: {example.id: f"{name} <b>{evil}" for example in examples} for name in ("one", "two")}
    form = make(
        Material(dataset, examples, texts, {example.id: f"a dog {evil}" for example in examples}),
        tmp_path / "s.html",
        count=3,
    )
    page = form.page.read_text(encoding="utf-8")
    assert evil not in page and "http://" not in page and "https://" not in page
    first_visit = json.loads(browse(page, BEGIN, tmp_path / "begin")["seen"])
    assert (
        "<b></script><script>window.evil = 1</script><img src=x" in first_visit["first"]
        and first_visit["marked"] == "1-3 readability"
    )
    assert first_visit["scale"]
    [(name, saved)] = first_visit["kept"].items()
    before = f"<script>localStorage.setItem({json.dumps(name)}, {json.dumps(saved)})</script></head>"
    outputs = browse(page.replace("</head>", before), GO_ON, tmp_path / "go_on")
    seen, filled = json.loads(outputs["seen"]), json.loads(outputs["file"])
    assert seen["kept"] == "42" and seen["alone"] == "0" and not seen["alerted"]
    assert seen["caption"] == f"a dog {evil}" and seen["picture"].startswith("data:image/jpeg;base64,")
    assert seen["done"] == "All questions are rated. Thank you!" and seen["wide"]
    assert seen["unnamed"] == "Enter your name first, so that your ratings are not mixed up with another judge's."
    key = json.loads(form.key.read_text())
    assert (
        seen["saved"] == f"Saved as first-O-Neill-{key['sheet']}.json in your browser's download folder."
        and seen["named"] in seen["saved"]
    )
    values = {question_id: list(ratings.values()) for question_id, ratings in filled["ratings"].items()}
    assert (
        values.pop("1-1") == [4, 3, 3]
        and values.pop("1-2") == [2, 3, 3]
        and set(map(tuple, values.values())) == {(3, 3, 3)}
    )
    result = command("score", form.key, write(tmp_path / "ann.json", filled))
    assert result.exit_code == 0 and "first O'Neill gave " in result.output
