"""Tags come from the caption alone, and are its words without function words."""

from dataclasses import replace

import pytest
from mmgen.data.seeds import resolve
from mmgen.examples import Example
from mmgen.testing import EmbedderSuite

from mmgen_rivals import Lstm, Tags
from mmgen_rivals.tags import tags_of
from written_out import collated, examples, model


class TestTags(EmbedderSuite):
    def config(self):
        return Tags(max_tags=3)

    def backbone_config(self):
        return Lstm(hidden_size=16, vocab_size=200)

    def examples(self):
        texts = ("a red cat on the grass", "two dogs near a big house and a tree")
        return [Example(str(n), {"caption": text}) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    "text, tags",
    [
        ("A photo of a person, a train and a chair.", ["photo", "person", "train", "chair"]),
        ("We see TWO dogs running on the grass; the dogs run.", ["two", "dogs", "running", "grass", "run"]),
        ("it is on the", []),
        ("", []),
    ],
)
def test_tags_are_words_that_are_no_function_words(text, tags):
    assert tags_of(text, 8) == tags and tags_of(text, 1) == tags[:1]


def test_the_reference_question_does_not_reach_the_input():
    """MC-SBN's published tags have words of the question that is to be written; these do not change with it."""
    rival, example = model("mc_sbn"), examples()[0]
    written = (("where is the dog",), ("how many",), ())
    batches = [collated(rival, [replace(example, targets=targets)], ()) for targets in written]
    assert all(
        tensor.equal(batch.inputs[name][key])
        for batch in batches[1:]
        for name, tensors in batches[0].inputs.items()
        for key, tensor in tensors.items()
    )
    assert rival.embedders["tags"].reader.tags(resolve(example)) == tags_of(example.inputs["caption"], 8)
