"""`mmgen probe`: the probes of a run, with other settings, and on the page of the report."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from kit import toys
from mmgen_probes import Attention, Grounding

import mmgen
from mmgen import RecipeError
from mmgen.cli import main
from mmgen.registry import installed
from mmgen.runs.probe import select_probes
from mmgen.runs.run import run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


PROBES = """\
[probes.heads]
type = "grounding"
top_heads = 2
[probes.looks]
type = "attention"
examples = 1
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    from mmgen.recipe.load import load

    folder = tmp_path_factory.mktemp("probes")
    (folder / "toy.toml").write_text(
        toys.recipe_with_pictures(folder / "runs", epochs=1, rate=1e-3, train=16, val=2, test=5) + PROBES
    )
    return run(load(folder / "toy.toml", installed())[0]).path


def probed(*arguments: str):
    return CliRunner().invoke(main, ["probe", *arguments])


def test_the_recipes_probes_run_and_say_where_everything_is(drawn, done):
    before = {path: path.read_bytes() for path in (done / "steps").rglob("*") if path.is_file()}
    result = probed(str(done))
    assert result.exit_code == 0, result.output
    assert "| both" in result.output and f"heads: all files are in {done}/probes/heads" in result.output
    assert "words: reads caption; grounding needs regions with boxes and a caption" in result.output
    assert sorted(path.name for path in (done / "probes/heads").iterdir()) == [
        "findings.json",
        "grounding.json",
        "grounding.png",
        "grounding.svg",
        "relations-both.png",
        "relations-both.svg",
        "tables.md",
    ]
    assert {"test-00000.svg", "test-00000.png", "attention.json"} <= {
        path.name for path in (done / "probes/looks").iterdir()
    }
    assert before == {path: path.read_bytes() for path in (done / "steps").rglob("*") if path.is_file()}
    assert not list((done / "probes").glob(".*"))


def test_flickr30k_files_of_drawn_scenes_give_the_same_results(done, tmp_path):
    """Phrases from Flickr30k Entities, dependencies from a CoNLL-U file; the annotations alone have no dependencies."""
    parsed = []
    for part in ("Sentences", "Annotations"):
        (tmp_path / part).mkdir()
    for scene in mmgen.load(done).recipe.data.build().split("test"):
        lines, objects = [], []
        for place, thing in enumerate(scene.facts["things"]):
            corners = "".join(
                f"<{side}>{1000 * number + 1}</{side}>"
                for side, number in zip(("xmin", "ymin", "xmax", "ymax"), thing["box"], strict=True)
            )
            for caption, spans in enumerate(scene.facts["phrases"]):
                names = [
                    f"<name>{caption}0{number}</name>" for number, (_, _, things) in enumerate(spans) if place in things
                ]
                objects.append(f"<object>{''.join(names)}<bndbox>{corners}</bndbox></object>")
        for caption, (text, spans) in enumerate(zip(scene.facts["captions"], scene.facts["phrases"], strict=True)):
            for number, (first, end, _) in reversed(list(enumerate(spans))):
                text = f"{text[:first]}[/EN#{caption}0{number}/other {text[first:end]}]{text[end:]}"
            lines.append(text)
        for text, parse in zip(scene.facts["captions"], scene.facts["parses"], strict=True):
            parsed += [
                f"{number}\t{word}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"
                for number, (word, (head, relation)) in enumerate(zip(text.split(), parse, strict=True), 1)
            ]
            parsed.append("\n")
        (tmp_path / f"Sentences/{scene.id}.txt").write_text("\n".join(lines))
        size = "<size><width>1000</width><height>1000</height></size>"
        (tmp_path / f"Annotations/{scene.id}.xml").write_text(f"<annotation>{size}{''.join(objects)}</annotation>")
    (tmp_path / "captions.conllu").write_text("".join(parsed))
    annotated = ("--set", f"heads.annotations={tmp_path}")
    results = []
    for settings in ((), (*annotated, "--set", f"heads.parses={tmp_path}/captions.conllu"), annotated):
        assert probed(str(done), "--probe", "heads", *settings).exit_code == 0
        results.append(json.loads((done / "probes/heads/grounding.json").read_text()))
    assert (
        results[0] == results[1]
        and results[0]["both"]["entities"]["count"] > 40
        and results[0]["both"]["amod"]["count"] > 9
    )
    assert results[2] == {"both": {"entities": results[0]["both"]["entities"]}}


def test_the_attention_of_the_probe_is_the_one_of_the_report(done):
    """attention.json equals the attention in the page of the same run."""
    assert probed(str(done), "--probe", "looks").exit_code == 0
    saved = json.loads((done / "probes/looks/attention.json").read_text())["examples"]
    page = (done / "report.html").read_text(encoding="utf-8")
    looks = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])[
        "looks"
    ]
    compared = []
    for name, look in looks.items():
        rows = [(saved[name]["steps"][step]["weights"], look["weights"]["last"][step]) for step in ("words", "both")]
        for saved_weights, page_weights in rows:
            assert np.allclose(1e4 * np.array(saved_weights), np.array(page_weights), atol=2)
        compared += [saved_weights for saved_weights, _ in rows if saved_weights]  # a text may be empty
        assert [unit.strip() for unit in look["units"]["caption"]] == saved[name]["inputs"]["caption"]["labels"]
    assert compared


def test_a_probe_that_is_not_in_the_recipe_runs_with_its_defaults_on_one_step(drawn, done):
    result = probed(str(done), "--probe", "similarity", "--step", "both", "--set", "similarity.batch_size=3")
    assert result.exit_code == 0, result.output
    saved = json.loads((done / "probes/similarity/similarity.json").read_text())
    assert list(saved["curves"]) == ["both", "random transformer"] and saved["examples"] == 5
    assert json.loads((done / "probes/similarity/findings.json").read_text())["settings"]["batch_size"] == 3
    again = (done / "probes/similarity/similarity.svg").read_bytes()
    assert probed(str(done), "--probe", "similarity", "--step", "both").exit_code == 0
    assert (done / "probes/similarity/similarity.svg").read_bytes() == again


def test_the_report_shows_results_of_probes_and_runs_no_script_of_them(drawn, done):
    assert probed(str(done), "--probe", "heads", "--probe", "similarity").exit_code == 0
    path = done / "probes/heads/findings.json"
    before = path.read_text()
    path.write_text(before.replace("Entity grounding by layer", "<script>alert(1)</script>"))
    assert CliRunner().invoke(main, ["report", str(done)]).exit_code == 0
    path.write_text(before)
    page = (done / "report.html").read_text(encoding="utf-8")
    section = page[page.index('<section id="inside">') : page.index('<section id="reproduce">')]
    assert re.findall(r'<h3 id="inside-(.*?)"', section)[:1] == ["heads"] and "<script>alert" not in page
    assert (
        section.count('<img src="data:image/svg+xml;base64,') == 3  # entities, relations, similarity
        and "Grounding by relation of both" in section
        and "random transformer" in section
        and "any region" in section
    )
    path.write_text('{"tables": 1}')
    result = CliRunner().invoke(main, ["report", str(done)])
    path.write_text(before)
    assert result.exit_code == 1 and result.output.splitlines()[-1] == f"error: {path}: damaged: 'tables' is 1"


def test_untrained_models_have_the_shape_and_not_the_weights(done):
    from mmgen.runs.probe import untrained_model

    trained, fresh = mmgen.load(done, "both").model, untrained_model(mmgen.load(done, "both"), done / "backbone")
    assert {name: tensor.shape for name, tensor in trained.state_dict().items()} == {
        name: tensor.shape for name, tensor in fresh.state_dict().items()
    }
    assert not any(
        torch.equal(tensor, fresh.state_dict()[name])
        for name, tensor in trained.state_dict().items()
        if tensor.dim() == 2 and "mean" not in name
    )
    assert fresh.embedders["caption"]._backbone[0] is fresh.backbone and not fresh.training


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--step", "bth"],
            "error: --step: unknown name 'bth'; did you mean 'both'?; choose from: words, both",
        ),
        (
            ["--probe", "head"],
            "error: --probe head: unknown probe; did you mean 'heads'?; choose from: heads, looks, attention, "
            "grounding, similarity",
        ),
        (
            ["--set", "similarity.batch_size=3"],
            "error: --set similarity.batch_size=3: write PROBE.KEY=VALUE; the probes are: heads, looks",
        ),
        (["--set", "heads=3"], "error: --set heads=3: write PROBE.KEY=VALUE; the probes are: heads, looks"),
        (["--set", "heads.iou=0.3"], "error: --set heads.iou=0.3: iou: no such key"),
        (
            ["--set", "looks.layer=0", "--set", "looks.head=1"],
            "error: --set looks.head=1: head: needs one layer, because layer = 0 is the mean over layers; set layer "
            "too",
        ),
    ],
)
def test_mistakes_are_one_line(done, arguments, words):
    result = probed(str(done), *arguments)
    assert result.exit_code == 1 and result.output.splitlines()[-1] == words


def test_a_failing_probe_does_not_stop_the_others_and_keeps_old_results(done):
    assert probed(str(done), "--probe", "looks").exit_code == 0
    before = (done / "probes/looks/attention.json").read_bytes()
    result = probed(str(done), "--set", "looks.layer=7")
    assert (
        result.exit_code == 0
        and "looks: words: layer = 7: the encoder has only 2 layers; both: layer = 7: the encoder has only 2 layers"
        in result.output
    )
    assert (done / "probes/looks/attention.json").read_bytes() == before
    alone = probed(str(done), "--probe", "looks", "--set", "looks.layer=7")
    assert alone.exit_code == 1


def test_settings_are_laid_over_the_recipes_own(done):
    recipe = mmgen.load(done).recipe
    assert select_probes(recipe, (), ["heads.iou_threshold=0.7"], installed())["heads"] == Grounding(
        top_heads=2, iou_threshold=0.7
    )
    with pytest.raises(RecipeError) as error:
        select_probes(recipe.model_copy(update={"probes": {}}), (), (), installed())
    assert str(error.value) == "the recipe has no [probes]; choose with --probe: attention, grounding, similarity"


def test_a_name_that_would_lead_out_of_the_folder_is_refused(done):
    recipe = mmgen.load(done).recipe
    with pytest.raises(RecipeError) as error:
        select_probes(recipe.model_copy(update={"probes": {"../steps": Grounding()}}), (), (), installed())
    assert (
        str(error.value)
        == "probes.../steps: the name of a probe must consist of letters, digits, '_', '-' and '.', because it "
        "names a folder"
    )


def test_probes_in_a_recipe_do_not_make_it_another_run(done):
    """A finished run stays finished with other probes in its recipe, and stores the new ones."""
    from mmgen.recipe.load import load

    recipe = load(done.parents[3] / "toy.toml", installed(), sets=("probes.looks.layer=1",))[0]
    assert run(recipe).path == done and mmgen.load(done).recipe.probes["looks"] == Attention(layer=1, examples=1)
    run(load(done.parents[3] / "toy.toml", installed())[0])


def test_a_folder_without_a_run(tmp_path):
    result = probed(str(tmp_path))
    assert result.exit_code == 1
    assert (
        result.output
        == f"error: {tmp_path}: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)\n"
    )
