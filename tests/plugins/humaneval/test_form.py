"""Forms for judges: only the key names the systems; rounds, orders and pictures."""

import json

import pytest
from kit.browsers import CHROMIUM, browse
from kit.humaneval import RECIPE, command, make_sheet, write
from mmgen_humaneval.form import make
from mmgen_humaneval.systems import Material, gather

from mmgen.data.seeds import resolve
from mmgen.examples import Example
from mmgen.parts import Dataset
from mmgen.recipe.load import load
from mmgen.registry import installed

pytestmark = pytest.mark.slow


def test_only_the_key_names_the_systems(run, sheet):
    data, key = sheet
    page = json.dumps(data)
    for secret in ("zebrastep", "quaggastep", "human", "toy", "bert", "test-0000"):
        assert secret not in page.lower(), secret
    assert data.keys() == {"sheet", "format", "rounds", "words", "items"}
    assert all(item.keys() == {"questions", "caption", "answer", "shot"} for item in data["items"])
    assert key["systems"] == ["zebrastep", "quaggastep", "human"] and key["sheet"] == data["sheet"]
    on_page = [question for item in data["items"] for question in item["questions"]]
    assert on_page == [{"id": question["id"], "text": question["text"]} for question in key["questions"]]


def test_every_system_has_one_question_a_picture_and_equal_ones_are_shown_once(sheet):
    data, key = sheet
    examples = list(dict.fromkeys(question["example"] for question in key["questions"]))
    assert len(examples) == 6
    for example in examples:
        questions = [question for question in key["questions"] if question["example"] == example]
        systems = sorted(system for question in questions for system in question["systems"])
        assert systems == ["human", "quaggastep", "zebrastep"]
        assert len({question["text"] for question in questions}) == len(questions)
        if int(example[-1]) % 2 == 0:  # both steps wrote the same
            assert {"zebrastep", "quaggastep"} <= set(max((question["systems"] for question in questions), key=len))
        else:  # different in more than the space before the question mark
            texts = {question["text"] for question in questions}
            assert texts >= {f"what is {letter} {example[-1]}?" for letter in "zq"}


def test_captions_and_pictures_match_their_questions(run, sheet):
    data, key = sheet
    test = {example.id: example for example in load(run / "toy.toml", installed())[0].data.build().split("test")}
    for number, item in enumerate(data["items"], 1):
        example = test[next(question["example"] for question in key["questions"] if question["id"] == f"{number}-1")]
        assert item["caption"] == resolve(example).inputs["caption"]
        assert item["shot"][0].startswith("data:image/jpeg;base64,") and item["shot"][1:] == [192, 192]
        asked = (question for question in key["questions"] if question["example"] == example.id)
        assert next(question["text"] for question in asked if "human" in question["systems"]) in example.targets


def test_the_dimensions_of_qgeval_beside_the_papers(run, tmp_path):
    """What shows the same things is rated on one page, and nothing is seen before what is judged without it."""
    material = gather([run], (), installed())
    data, _ = make_sheet(material, tmp_path, count=2, criteria="all")
    assert data["rounds"] == [
        {"criteria": ["readability"], "shows": []},
        {"criteria": ["fluency", "clarity", "conciseness"], "shows": []},
        {"criteria": ["caption_relevance"], "shows": ["caption"]},
        {"criteria": ["image_relevance"], "shows": ["picture"]},
        {"criteria": ["relevance", "consistency", "answerability"], "shows": ["picture"]},
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
    examples = [Example("0", {"caption": "a  dog"}, ("What is THIS ?",))]
    material = Material(Plain(), examples, {"one": {"0": "is it 0"}, "Two": {"0": "Is it 0"}}, {"0": "a  dog"})
    data, _ = make_sheet(material, tmp_path, count=1)
    assert {question["text"] for question in data["items"][0]["questions"]} == {"what is this?", "is it 0"}


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
    notes = make(Material(Plain(), examples, {"one": {"0": "a", "1": ""}}, {}), tmp_path / "s.html", count=2)
    assert notes == [
        "caption relevance is not judged: not every example has a caption",
        "image relevance is not judged: No pictures: this data set has no raw images; give the embedder a file of "
        "features",
    ]
    assert json.loads((tmp_path / "s.json").read_text())["rounds"] == [{"criteria": ["readability"], "shows": []}]


SEEN = """
const seen = {}, at = (id) => document.getElementById(id);
const out = () => {
  const made = document.createElement("pre");
  made.id = "seen";
  made.textContent = JSON.stringify(seen);
  document.body.append(made);
};
let trouble = false;
window.addEventListener("error", () => { trouble = true; }); // then there is no result
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
if (!trouble) out();
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
URL.createObjectURL = (blob) => {
  blob.text().then((text) => { seen.file = text; if (!trouble) out(); });
  return "blob:none";
};
at("save").click();
seen.saved = at("saved").textContent;
seen.wide = document.documentElement.scrollWidth <= innerWidth;
seen.alerted = Boolean(window.evil);
"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, which is not on this machine")
def test_a_sheet_is_filled_in_a_browser_with_keys_and_a_reload(tmp_path):
    evil = "</script><script>window.evil = 1</script><img src=x onerror='window.evil=1'>"
    recipe, _ = load(write(tmp_path / "toy.toml", RECIPE), installed())
    dataset = recipe.data.build()
    examples = dataset.split("test")[:3]
    texts = {name: {example.id: f"{name} <b>{evil}" for example in examples} for name in ("one", "two")}
    make(
        Material(dataset, examples, texts, {example.id: f"a dog {evil}" for example in examples}),
        tmp_path / "s.html",
        count=3,
    )
    page = (tmp_path / "s.html").read_text(encoding="utf-8")
    assert evil not in page and "http://" not in page and "https://" not in page
    first_visit = browse(page, SEEN + BEGIN, tmp_path)
    assert "<b></script><script>window.evil = 1</script><img src=x" in first_visit["first"] and first_visit["scale"]
    assert first_visit["marked"] == "1-3 readability"
    [(name, saved)] = first_visit["kept"].items()
    before = f"<script>localStorage.setItem({json.dumps(name)}, {json.dumps(saved)})</script></head>"
    seen = browse(page.replace("</head>", before), SEEN + GO_ON, tmp_path)
    filled = json.loads(seen["file"])
    assert seen["kept"] == "42" and seen["alone"] == "0" and not seen["alerted"]
    assert seen["caption"] == f"a dog {evil}" and seen["picture"].startswith("data:image/jpeg;base64,")
    assert seen["done"] == "All questions are rated. Thank you!" and seen["wide"]
    assert seen["unnamed"] == "Enter your name first, so that your ratings are not mixed up with another judge's."
    key = json.loads((tmp_path / "s.key.json").read_text())
    assert seen["saved"] == f"Saved as first-O-Neill-{key['sheet']}.json in your browser's download folder."
    values = {question_id: tuple(ratings.values()) for question_id, ratings in filled["ratings"].items()}
    assert (values.pop("1-1"), values.pop("1-2"), {*values.values()}) == ((4, 3, 3), (2, 3, 3), {(3, 3, 3)})
    result = command("score", (tmp_path / "s.key.json"), write(tmp_path / "ann.json", filled))
    assert result.exit_code == 0 and "first O'Neill" in result.output
