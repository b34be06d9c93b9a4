"""Phrases map words of captions to things."""

from mmgen_scenes.grammar import mentions


def test_phrases_map_words_to_things(examples):
    for example in examples:
        for caption, phrases in zip(example.facts["captions"], example.facts["phrases"], strict=True):
            for start, end, members in phrases:
                (mention,) = mentions(caption[start:end])
                assert members and {example.facts["things"][i]["kind"] for i in members} == {mention.kind}
                assert len(members) >= mention.least
                assert caption[end : end + 1] in ("", " ")  # "a ball" is not the beginning of "a balloon"
