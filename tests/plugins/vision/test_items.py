"""Items of VCR, and the examples made from them."""

import pytest
from mmgen_vision.items import Item, Text

ANSWERS = tuple(Text(f"answer {number}", ((0, 6, (number,)),)) for number in range(4))
RATIONALES = tuple(Text(f"because {number}", ()) for number in range(4))
ITEM = Item("val-1", "7", ("person",), Text("what ?", ((0, 4, (0,)),)), ANSWERS, RATIONALES, 2, None)


@pytest.mark.parametrize(
    ("subtask", "names"),
    [
        ("answer", ["answer"]),
        ("rationale", ["rationale"]),
        ("both", ["answer", "rationale"]),
    ],
)
def test_examples_of_a_subtask(subtask, names):
    examples = list(ITEM.examples(subtask))
    assert [example.id for example in examples] == [f"val-1-{name}" for name in names]
    for example in examples:
        assert example.facts["item"] == "val-1" and len(example.labels["choices"]) == 4
