"""The report page: it is complete, loads nothing from outside and runs no code of captions; also in a real browser if
one is installed."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from kit import toys
from kit.browsers import CHROMIUM, browse
from kit.training import RecordedProgress

from mmgen import DataError, report
from mmgen import __version__ as VERSION
from mmgen.data.datasets import Datasets
from mmgen.parts import Dataset
from mmgen.progress import Progress
from mmgen.registry import installed
from mmgen.runs.run import run
from mmgen.storage.run_folder import RunFolder

pytestmark = pytest.mark.slow


ABOUT = "Toys and questions about them"


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> RunFolder:
    folder = tmp_path_factory.mktemp("report")
    recipe = toys.recipe_with_pictures(folder / "runs", epochs=6, rate=4e-3, train=24, val=4, test=6)
    return run(toys.loaded(folder, f'description = "{ABOUT}"\n{recipe}'))


@pytest.fixture(scope="module")
def page(done) -> str:
    return (done.path / "report.html").read_text(encoding="utf-8")


def inside(page: str) -> dict:
    """The JSON data of the page's script."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_is_complete(page):
    table = re.search(r"<table>.*?</table>", page, re.DOTALL)[0]
    assert re.findall(r"<th scope=\"row\">(?:<i[^>]*></i>)?(\w+)", table) == ["words", "both", "people", "chance"]
    assert page.count('<article class="card"') == 6 and page.count("data:image/jpeg;base64,") == 9
    assert re.findall(r'<a href="#x-(.*?)"><img', page) == ["test-00000", "test-00002", "test-00004"]  # at a glance
    assert page.count("loss of every step by epoch") == 2
    for text in (
        ABOUT,
        f"mmgen-framework {VERSION}",
        "test-00003",
        "reads image and caption",
        "[steps.both]",
        "chance: questions about other scenes",
        "min",
    ):
        assert text in page, text


def test_attention_on_the_page_fits_words_regions_and_captions(done, page):
    data = inside(page)
    written = [json.loads(line)[0] for line in (done.path / "steps/both/generations.jsonl").read_text().splitlines()]
    assert data["inputs"] == {"words": ["caption"], "both": ["image", "caption"]}
    for text in written:
        looks = data["looks"][text["id"]]
        assert len(looks["boxes"]["image"]) == len(looks["units"]["image"]) >= 6
        assert "".join(looks["units"]["caption"]).startswith(
            ("a", "the", "there", "we", "an", "two", "three", "one", "you", "in")
        )
        for step, inputs in data["inputs"].items():
            width = sum(len(looks["units"][name]) for name in inputs) + 2
            for row in [*looks["weights"]["last"][step], *looks["weights"]["all"][step]]:
                assert len(row) == width and sum(row) == pytest.approx(10_000, abs=width)
    assert "test-00000" in data["scores"]["both"]["relevance"]


def test_the_page_loads_nothing_from_outside(page):
    assert (
        not re.findall(r"""(?:src|href)=["'](?!data:|#)[^"']*""", page)
        and "@import" not in page
        and not re.search(r"url\((?!#)", page)
    )
    assert "default-src 'none'" in page


def test_texts_are_never_executed_and_published_rows_are_shown(done, tmp_path, monkeypatch):
    """Of a data set without pictures, whose texts are scripts, and without attention."""
    recipe, folder = done.recipe(installed()), RunFolder(Path(shutil.copytree(done.path, tmp_path / "run")))
    kind = type(recipe.data.build())
    evil, split, describe = "</script><script>alert(1)</script>", kind.split, kind.describe
    published = {"both": {"relevance": 12.345}, "A <b>model": {"relevance": 1.0}}

    def odd(self, name):
        return [
            replace(example, targets=(evil, *example.targets), inputs={**example.inputs, "caption": (evil,)})
            for example in split(self, name)
        ]

    def fail(step):
        raise DataError("features are <gone>")

    monkeypatch.setattr(kind, "split", odd)
    monkeypatch.setattr(kind, "pictures", Dataset.pictures)
    monkeypatch.setattr(kind, "describe", lambda self: {**describe(self), "published": published})
    datasets = Datasets(recipe)
    tables = report.gather_tables(recipe, folder, datasets)
    page = report.write_page(recipe, folder, datasets, tables, fail, Progress()).read_text(encoding="utf-8")
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
    assert "No pictures: this data set has no raw images" in page
    assert "No attention for &#39;words&#39;: features are &lt;gone&gt;" in page
    rows = re.findall(r'<tr class="([\w ]+)"><th scope="row">(?:<i[^>]*></i>)?([^<]*)', page)
    assert rows == [
        ("step", "words"),
        ("step", "both"),
        ("published under", "published"),
        ("reference", "people"),
        ("reference", "chance"),
        ("published", "A &lt;b&gt;model "),
    ]


def test_a_report_that_fails_does_not_lose_the_run(done, monkeypatch):
    progress, recipe = RecordedProgress(), done.recipe(installed())
    monkeypatch.setattr(report.page, "write_page", lambda *_: 1 / 0)
    report.try_page(recipe, done, Datasets(recipe), (), None, progress)
    advice = f"the run itself is complete; try again with `mmgen report {done.path}`"
    assert progress.lines == [f"report.html was not written: division by zero; {advice}"]


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, which is not on this machine")
def test_in_a_browser_keys_highlight_words_and_the_gallery_is_searched(page, tmp_path):
    script = """
    const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    const seen = {};
    window.addEventListener("error", (event) => { seen.error = event.message; });
    setTimeout(() => {
      const card = [...document.querySelectorAll(".card")].find((card) =>
        ["words", "both"].every((step) => card.querySelector(`[data-step=${step}] .word`)));
      seen.id = card.dataset.id;
      card.querySelector(".word").focus();
      seen.first = card.querySelector(".attention").textContent;
      card.querySelectorAll("[data-step=both] .word")[0].focus();
      seen.step = document.activeElement.closest("li").dataset.step;
      seen.boxes = card.querySelectorAll(".frame rect").length;
      seen.shades = [...card.querySelectorAll(".unit")].map((unit) => unit.style.background.match(/[\\d.]+(?=\\))/)[0]);
      seen.word = [...document.activeElement.parentNode.children].indexOf(document.activeElement);
      seen.last = card.querySelector(".attention").textContent;
      const layers = document.getElementById("layers");
      layers.value = "all"; layers.dispatchEvent(new Event("change"));
      seen.all = card.querySelector(".attention").textContent;
      press("Escape");
      seen.after = card.querySelectorAll(".frame rect").length + card.querySelector(".attention").textContent;
      layers.value = "last"; layers.dispatchEvent(new Event("change"));
      const find = document.getElementById("find");
      find.value = "TEST-00004"; find.dispatchEvent(new Event("input"));
      seen.found = [...document.querySelectorAll(".card:not([hidden])")].map((card) => card.dataset.id);
      seen.count = document.getElementById("count").textContent;
      seen.scores = document.querySelector(".score").textContent;
      seen.wide = document.documentElement.scrollWidth <= innerWidth;
      const out = document.createElement("pre");
      out.id = "seen";
      out.textContent = JSON.stringify(seen);
      document.body.append(out);
    }, 200);
    """
    seen = browse(page, script, tmp_path)
    assert "error" not in seen and seen["all"].split()[0] == seen["last"].split()[0]
    assert re.match(r"\S+ attends to caption \d+", seen["first"])
    assert seen["step"] == "both" and seen["after"] == "0"
    data = inside(page)["looks"][seen["id"]]
    weights, regions = data["weights"]["last"]["both"][seen["word"]], len(data["units"]["image"])
    assert seen["boxes"] == sum(weight >= 50 for weight in weights[:regions])  # half a percent can be seen
    for shade, weight in zip(seen["shades"], weights[regions:-2], strict=True):  # one scale: the root of the share
        assert float(shade) == pytest.approx(0.6 * (weight / 10_000) ** 0.5 if weight >= 50 else 0, abs=0.006)
    assert seen["found"] == ["test-00004"] and seen["count"] == "1 of 6"
    assert re.fullmatch(r"relevance [✓✗]|\d+\.\d", seen["scores"]) and seen["wide"]


ANSWERS_AS_TEXTS = toys.recipe(
    inputs={"image": {"type": "regions", "extractor": toys.ROI}, "question": {"type": "text"}},
    steps={"first": {"inputs": ["image", "question"], "train": ["image", "backbone"]}},
    data={"type": "scene_answers", "train_size": 4, "val_size": 1, "test_size": 2, "questions": 3, "image_size": 64},
    metrics={"diversity": {"type": "diversity"}, "accuracy": {"type": "vqa_accuracy"}},
)


@pytest.fixture(scope="module")
def answers_page(tmp_path_factory) -> str:
    """The page of a step that writes answers to three questions about each of two pictures."""
    folder = tmp_path_factory.mktemp("answers")
    (folder / "toy.toml").write_text(ANSWERS_AS_TEXTS)
    toys.ran(folder)
    return (folder / toys.PLACE / "report.html").read_text(encoding="utf-8")


def test_the_examples_of_one_picture_share_a_card(answers_page):
    articles = answers_page.split("<article ")[1:]
    assert [len(re.findall(r'<div class="say"[^>]* data-id="', article)) for article in articles] == [3, 3]
    assert [article.count("<img ") for article in articles] == [1, 1]
    ids = re.findall(r' id="x-(.*?)"', answers_page)
    assert len(ids) == len(set(ids)) == 6 and "6 of 6 test examples, with the answers of each step." in answers_page


def test_a_score_of_all_texts_is_no_score_of_one_text_and_lower_is_better(answers_page):
    assert '<th scope="col">self-BLEU <span title="lower is better">↓</span></th>' in answers_page
    scores = inside(answers_page)["scores"]["first"]
    assert "self-BLEU" not in scores and len(scores["accuracy"]) == 6


@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
def test_the_words_of_every_example_point_at_the_shared_picture(answers_page, tmp_path):
    script = """
        const card = document.querySelector(".card"), seen = { id: "seen" };
        const result = [...card.querySelectorAll(".say")].map((part) => {
            part.querySelector(".word").dispatchEvent(new Event("pointerover", { bubbles: true }));
            return [card.querySelectorAll(".frame .looks").length, card.querySelector(".attention").textContent !== ""];
        });
        const shown = document.createElement("pre");
        shown.id = "seen";
        shown.textContent = JSON.stringify({ result });
        document.body.append(shown);
    """
    seen = browse(answers_page, f"addEventListener('load', () => {{ {script} }})", tmp_path)
    assert seen["result"] == [[1, True]] * 3
