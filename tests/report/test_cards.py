"""Cards of predictions that are not texts: labels, choices, regions, boxes and pairs of pictures, as on the page."""

import json
import re
from pathlib import Path

import pytest
from kit.asked import SCENES, TaskDataset, recipe_text, registry
from kit.browsers import CHROMIUM, browse

from mmgen.data.datasets import Datasets
from mmgen.errors import DataError
from mmgen.evaluation.answers import read_answers
from mmgen.evaluation.score import build_metrics, score_step, write_scores
from mmgen.files import write_json
from mmgen.progress import Progress
from mmgen.recipe.load import load
from mmgen.report import gather_tables, write_page
from mmgen.storage.generations import PREDICTIONS
from mmgen.storage.run_folder import RunFolder

pytestmark = pytest.mark.slow


def shift(box, by):
    return [min(1.0, max(0.0, round(corner + by, 3))) for corner in box]


def fake_prediction(task, example, i, blind):
    """The value of a step, and its score: the step with the picture is sometimes right."""
    if task == "answers":
        shares = {"red": 0.62, "blue": 0.21, "green": 0.1, "yes": 0.004, "no": 0.003}
        shares = dict.fromkeys(shares, 0.2) if blind else shares
        return {"label": "blue" if blind else "red", "probabilities": shares}, 0.62
    if task == "pairs":
        return {"label": "True", "probabilities": {"False": 0.28, "True": 0.72}}, 0.72
    if task == "choices":
        shares = [0.1, 0.1, 0.1, 0.1]
        shares[2 if blind else i % 4] = 0.7
        return {"choice": 2 if blind else i % 4, "probabilities": shares}, 0.7
    if task == "expressions":
        return {"box": shift(example.labels["box"], 0.3 if blind else 0.01 * i), "index": i}, 0.44
    return [shift(example.labels["phrases"][0][2], by) for by in (0.4, 0.25, 0.02, 0.5)][i % 3 :], 0.31


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    """A run with predictions written by hand: its recipe, folder and data sets."""
    place = tmp_path_factory.mktemp("cards")
    (place / "toy.toml").write_text(recipe_text())
    recipe = load(place / "toy.toml", registry())[0].model_copy(update={"output": str(place / "runs")})
    folder, datasets = RunFolder.of(recipe), Datasets(recipe)
    about = {name: "x" for name in ("command", "written", "python", "platform", "device")}
    write_json(folder.path / "environment.json", {**about, "versions": {}, "threads": 1})
    tables = {"Shares": [["step", "picture"], ["answers", 62.5], ["answers_blind", None]]}
    findings = {"tables": tables, "plots": {}, "notes": ["of 6 examples"], "settings": {}}
    write_json(folder.path / "probes/heads/findings.json", findings)
    write_json(folder.path / "data.json", {"fingerprint": "0", "name": "drawn scenes"})
    for step in recipe.steps:
        examples, lines = datasets.scored_by(step), ""
        for i, example in enumerate(examples):
            value, score = fake_prediction(step.split("_")[0], example, i, "blind" in step)
            lines += json.dumps({"id": example.id, "value": value, "score": score}) + "\n"
        folder.step(step).mkdir(parents=True)
        (folder.step(step) / PREDICTIONS).write_text(lines)
        answers, metrics = read_answers(recipe, step, folder.step(step)), build_metrics(recipe, [step], datasets)
        judging = {name: metrics[name] for name in recipe.judging(step)}
        write_scores(folder.step(step), score_step(step, answers, examples, judging, Progress()))
    return recipe, folder, datasets


def write_page_text(recipe, folder, datasets, shown=200):
    tables = gather_tables(recipe, folder, datasets)
    path = write_page(recipe, folder, datasets, tables, lambda step: None, Progress(), shown)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(finished_run):
    return write_page_text(*finished_run)


def test_the_page_is_the_golden_one(finished_run):
    """But for pictures, styles, versions. To renew `page.html`, delete it; then look at the page in a browser."""
    page = write_page_text(*finished_run, shown=15)
    page = re.sub(r"<style>.*?</style>|<script type=.module.*?</script>", "", page, flags=re.DOTALL)
    page = re.sub(
        r'data:image[^"]*|download="recipe.toml" href="[^"]*|<pre><code>.*?</code></pre>', "", page, flags=re.DOTALL
    )
    golden = Path(__file__).with_name("page.html")
    if not golden.exists():
        golden.write_text(page, encoding="utf-8")
        pytest.fail(f"{golden} is new; look at the page, and run the test again")
    assert page.splitlines() == golden.read_text(encoding="utf-8").splitlines()


def cards(page, gallery):
    """The cards of a data set: id in the page's script -> inner HTML."""
    matches = re.findall(r'<article [^>]*data-id="(.*?)" data-gallery="(\d)">(.*?)</article>', page, re.DOTALL)
    return {key: inner for key, number, inner in matches if int(number) == gallery}


def test_the_page_is_complete_without_pictures(finished_run, monkeypatch):
    def fail(self):
        raise DataError("no such folder <x>")

    monkeypatch.setattr(TaskDataset, "pictures", fail)
    page = write_page_text(*finished_run)
    assert page.count("No pictures: no such folder &lt;x&gt;") == 1 and "<img " not in page
    assert "overlap" in cards(page, 3)["3:test-1"] and "<rect" not in page


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, which is not on this machine")
def test_in_a_browser_selecting_a_data_set_shows_its_metrics(page, tmp_path):
    script = """
    const seen = {}, at = (id) => document.getElementById(id);
    window.addEventListener("error", (event) => { seen.error = event.message; });
    const cards = [...document.querySelectorAll(".card")];
    const ids = () => cards.filter((card) => card.checkVisibility()).map((card) => card.dataset.id);
    const metrics = () => [...at("metric").options].filter((item) => !item.disabled).map((item) => item.textContent);
    const bounds = (element) => element.getBoundingClientRect();
    const choose = (number) => { at("gallery").value = number; at("gallery").dispatchEvent(new Event("change")); };
    setTimeout(() => {
      seen.first = ids(); seen.metrics = metrics();
      choose("3");
      seen.regions = ids(); seen.regionMetrics = metrics();
      const card = document.getElementById("x-3:test-1");
      seen.scores = [...card.querySelectorAll(".score")].map((score) => score.textContent);
      const [image, drawing] = [".frame img", ".frame svg"].map((name) => bounds(card.querySelector(name)));
      seen.covers = ["left", "top", "width", "height"].every((side) => Math.abs(image[side] - drawing[side]) < 1);
      at("order").value = "low"; at("order").dispatchEvent(new Event("change"));
      seen.count = ids().length;
      location.hash = "#x-1:test-2";
      setTimeout(() => {
        seen.linked = ids(); seen.chosen = at("gallery").value;
        const pair = document.getElementById("x-1:test-2").querySelectorAll("img");
        const [left, right] = [...pair].map(bounds);
        seen.pair = left.right < right.left && left.top === right.top && Math.abs(left.height - right.height) < 1;
        seen.wide = document.documentElement.scrollWidth <= innerWidth;
        const out = document.createElement("pre");
        out.id = "seen"; out.textContent = JSON.stringify(seen);
        document.body.append(out);
      }, 100);
    }, 200);
    """
    seen = browse(page, script, tmp_path)
    assert "error" not in seen and seen["first"] == [f"test-{i}" for i in range(SCENES)]
    assert seen["metrics"] == ["none", "accuracy", "other"] and seen["regionMetrics"] == ["none", "accuracy"]
    assert seen["regions"] == [f"3:test-{i}" for i in range(SCENES)] and seen["count"] == SCENES
    assert seen["scores"] == ["accuracy ✓", "accuracy ✗"] and seen["covers"]
    assert sorted(seen["linked"]) == [f"1:test-{i}" for i in range(SCENES)] and seen["chosen"] == "1"
    assert seen["pair"] and seen["wide"]
