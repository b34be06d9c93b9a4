"""Examples: their inputs by field, what is missing, and how they show themselves."""

from mmgen.examples import All, Example, ResolvedExample

EXAMPLE = Example(
    "e1", {"image": All(("left", "right")), "caption": "a dog", "empty": ()}, ("what ?",), labels={"truth": True}
)


def test_all_values_of_an_input():
    assert EXAMPLE.shown("image") == ("left", "right")
    assert EXAMPLE.shown("caption") == ("a dog",) and EXAMPLE.shown("nothing") == ()


def test_what_an_example_lacks():
    assert [field for field in ("image", "caption", "empty", "nothing") if EXAMPLE.lacks(field)] == ["empty", "nothing"]


def test_a_reader_sees_its_own_overrides():
    example = ResolvedExample("e1", {"image": "left", "caption": "a dog"}, overrides={"second": {"image": "right"}})
    assert example.seen_by("first") is example
    assert dict(example.seen_by("second").inputs) == {"image": "right", "caption": "a dog"}
