"""The benchmark: systems do the same work, counts equal sums made by hand, results are printed in every format."""

import json

import pytest
import torch
from click.testing import CliRunner
from mmgen_bench import tables
from mmgen_bench.flops import BERT2BERT, CAUSAL, NAIVE, OURS, Shape, Work, generation_work, training_work
from mmgen_bench.run import SEARCHES, Ratio, Result, Settings, prepare_systems
from mmgen_bench.scaling import Curve, draw
from mmgen_bench.workload import batch_of, draw_examples

from mmgen.cli import main

pytestmark = pytest.mark.slow

TINY = Shape(layers=1, width=16, vocabulary=1500, regions=36, features=8)
OPTIONS = ["--layers", "1", "--width", "16", "--words", "1500", "--rounds", "1", "--batch", "2"]


@pytest.fixture(scope="module")
def systems():
    with prepare_systems(Settings(TINY, batch=2, tokens=6, dropout=0.0)) as built_systems:
        yield built_systems


def test_slots_are_those_counted_by_hand():
    base = Shape()
    assert base.prefix == 54
    assert [training_work(base, OURS, k, 9).slots for k in (1, 3, 5)] == [71, 35, pytest.approx(27.8)]
    assert training_work(base, NAIVE, 1, 9).slots == sum(54 + t for t in range(1, 10))
    assert (training_work(base, BERT2BERT, 1, 9).slots, training_work(base, CAUSAL, 1, 9).slots) == (63, 62)
    assert generation_work(base, OURS, 1, 20).slots == 54 + 1 + 2 * 19
    assert generation_work(base, BERT2BERT, 4, 20).slots == 54 / 4 + 20
    assert generation_work(base, NAIVE, 4, 20).slots == generation_work(base, NAIVE, 1, 20).slots


def test_multiply_adds_of_a_layer_and_a_head_by_hand():
    one_layer = Shape(layers=1, width=10, vocabulary=100, regions=1, features=6, caption=1)  # 4 prefix slots
    row, head, front = 4 + 3, 10 * 10 + 10 * 100, 10 * 10
    assert training_work(one_layer, CAUSAL, 1, 2).multiply_adds == front + 12 * 100 * 5 + 2 * 10 * 5 * 5 + 2 * head
    last = 2 * 100 * row + 2 * (12 * 100 + 2 * 10 * row)  # keys and values of all, then two predicted slots
    assert training_work(one_layer, OURS, 1, 2).multiply_adds == front + last + 2 * head
    two_layers = Shape(layers=2, width=10, vocabulary=100, regions=1, features=6, caption=1)
    assert (
        training_work(two_layers, OURS, 1, 2).multiply_adds
        == front + 12 * 100 * row + 2 * 10 * row * row + last + 2 * head
    )
    step = 2 * (12 * 100 + 2 * 10 * 10) + 2 * 100 * 2 + 12 * 100 + 2 * 10 * 10  # two slots look at X and 3 texts of 2
    read = 5 * (12 * 100 + 2 * 10 * 5) + 2 * 100 * 5 + 12 * 100 + 2 * 10 * 5
    assert generation_work(two_layers, OURS, 3, 2).multiply_adds == pytest.approx(
        (front + read + head) / 3 + step + head
    )


def test_every_row_has_the_stated_length(systems):
    model = systems[OURS].module
    batch_examples = draw_examples(TINY, model, 2, 3, 6)
    batch = batch_of(model, batch_examples)
    assert model.prefix(batch).slots.layout.real.sum(1).tolist() == [54, 54]
    assert batch.tail.layout.real.sum(1).tolist() == [3 * 11, 3 * 11]


def test_naive_has_the_gradients_of_ours(systems):
    """One question an image: the same loss, so the same gradients."""
    model = systems[OURS].module
    batch_examples, gradients = draw_examples(TINY, model, 2, 1, 6), []
    for name in (OURS, NAIVE):
        model.zero_grad()
        systems[name].prepare_training(batch_examples)()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    assert gradients[0].abs().max() > 0
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("search", SEARCHES)
@torch.inference_mode()
def test_all_write_the_same_number_of_tokens(systems, search):
    for name, system in systems.items():
        system.module.eval()
        texts = system.prepare_generation(draw_examples(TINY, systems[OURS].module, 2, 1, 6), SEARCHES[search], 6)()
        assert texts == 2 * {"greedy": 1, "4 beams": 4, "5 samples": 5}[search], name


@torch.inference_mode()
def test_transformers_read_the_prefix_as_counted(systems):
    """BERT2BERT reads the prefix once per image, causal BERT once per beam."""
    batch_examples, seen = draw_examples(TINY, systems[OURS].module, 2, 1, 6), []

    def note(module, inputs, named):
        seen.append(tuple(named["inputs_embeds"].shape[:2]) if named.get("inputs_embeds") is not None else None)

    encoders = {BERT2BERT: systems[BERT2BERT].network.encoder, CAUSAL: systems[CAUSAL].network.bert}
    for name, rows in ((BERT2BERT, 2), (CAUSAL, 8)):
        seen.clear()
        handle = encoders[name].register_forward_pre_hook(note, with_kwargs=True)
        systems[name].prepare_generation(batch_examples, SEARCHES["4 beams"], 6)()
        handle.remove()
        assert [shape for shape in seen if shape and shape[1] > 1] == [(rows, 54)]


def test_a_ratio_is_the_median_of_the_rounds_own():
    ours = Result("K = 1", OURS, (1.0, 2.0, 4.0), Work(10, 100), 4)
    naive = Result("K = 1", NAIVE, (3.0, 4.0, 16.0), Work(50, 250), 2)
    assert Ratio.of(naive, ours) == Ratio(3.0, 2.0, 4.0, 2.5)
    first, second = tables.rows([ours, naive])
    assert first[:3] == ("K = 1", "ours", "2,000.0")
    assert second == ("", "naive", "4,000.0", "325%", "3.00", "2.00-4.00", "2.50", "+20% *", "50.0", "0")


def test_a_straight_line_is_found_and_drawn(tmp_path):
    curve = Curve("images", (1, 2, 4), (3.0, 5.0, 9.0))
    assert curve.line == (pytest.approx(1), pytest.approx(2)) and curve.max_deviation < 1e-9
    draw([curve, curve], tmp_path / "a.svg")
    draw([curve, curve], tmp_path / "b.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn == (tmp_path / "b.svg").read_text() and "seconds per batch" in drawn


def test_the_command_prints_json_with_every_round():
    result = CliRunner().invoke(main, ["bench", "train", *OPTIONS, "-k", "2", "--json", "--without", "naive"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert [(row["case"], row["system"], len(row["seconds"])) for row in report["results"]] == [
        ("K = 2", name, 1) for name in (OURS, BERT2BERT, CAUSAL)
    ]
    assert report["settings"]["shape"]["width"] == 16 and report["settings"]["rounds"] == 1


def test_the_command_prints_markdown():
    result = CliRunner().invoke(
        main, ["bench", "decode", *OPTIONS, "--search", "greedy", "--tokens", "4", "--markdown"]
    )
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:]] for line in lines]
    assert rows[0][:4] == ["", "system", "ms", "spread"] and rows[2][:2] == ["greedy", "ours"]
    assert "measured on 2 images with one question each" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train", "--width", "30"],
            "error: --width 30: must be a multiple of 4 (a multiple of 64 gives heads of BERT's size)",
        ),
        (["train", "--device", "abc"], "error: --device abc: not available here: "),
        (["scaling", "--svg", "no/where.svg"], "error: --svg no/where.svg: folder no does not exist; create it"),
    ],
)
def test_mistakes_are_one_line(arguments, message):
    result = CliRunner().invoke(main, ["bench", *arguments])
    assert result.exit_code == 1 and result.output.startswith(message) and result.output.count("\n") == 1
