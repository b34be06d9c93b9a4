"""Captions of drawn scenes are about the same part of the scene."""

from mmgen_scenes.grammar import is_relevant, mentions


def test_captions_are_about_the_same_part_of_the_scene(examples):
    for example in examples:
        captions, things = example.inputs["caption"], example.facts["things"]
        captioned = {thing["kind"] for thing in things if thing["captioned"]}
        assert len(set(captions)) == 5 and list(captions) == example.facts["captions"]
        assert len(captioned) == 2 < len({thing["kind"] for thing in things})
        for caption in captions:
            assert {mention.kind for mention in mentions(caption)} == captioned
            assert is_relevant(caption, things)
