"""The comparison of ways to write: gaps in references, and the table's cells."""

from types import SimpleNamespace

from kit.any_order import any_order

from mmgen.tensors import Example, Generation
from tools.ways import cell, half_given, restored, table


def test_half_of_the_words_are_left_out_and_restored_words_are_counted():
    model = any_order()
    run = SimpleNamespace(model=model)
    examples = [Example("a", {"caption": "red"}, ("what color is the dog",)), Example("b", {}, ("where",))]
    gapped = half_given(run, examples)
    for example, (partial, gaps) in zip(examples, gapped, strict=True):
        words, left = example.targets[0].split(), [ids for ids in gaps if ids[0] >= 0]
        assert len(left) == (len(words) + 1) // 2 and not partial.targets
        assert partial.labels["text"].count("[MASK]") == sum(map(len, left))
        tokens = tuple(model.backbone.encode_text(example.targets[0]))
        right = [*restored(Generation("x", "", tokens, 0.0), gaps, model.backbone)]
        assert [word for word, _ in right] == [expected for _, expected in right] == left
        wrong = [*restored(Generation("x", "", (0,) * len(tokens), 0.0), gaps, model.backbone)]
        assert all(word != expected for word, expected in wrong)
    assert half_given(run, examples)[0][0].labels == gapped[0][0].labels


def test_a_row_per_way_with_intervals_of_pictures_or_of_seeds():
    row = {"values": {"relevance": 50.0, "passes": 4.0}, "intervals": {"relevance": (40.0, 61.04)}}
    once = {"values": {"relevance": 60.0, "passes": 5.0}, "intervals": {"relevance": (50.0, 70.0)}}
    assert cell("relevance", [row]) == "50.0 (40.0-61.0)" and cell("relevance", [row, once]) == "55.0 (50.0-60.0)"
    assert cell("passes", [row, once]) == "4.5" and cell("ms", [row]) == "-"
    rows = {"seed-0": {"infilling, any order": row, "causal": row, "any order": once}}
    assert table(rows).splitlines() == [
        "| way | relevance | passes |",
        "|---|--:|--:|",
        "| causal | 50.0 (40.0-61.0) | 4.0 |",
        "| any order | 60.0 (50.0-70.0) | 5.0 |",
        "| infilling, any order | 50.0 (40.0-61.0) | 4.0 |",
    ]
