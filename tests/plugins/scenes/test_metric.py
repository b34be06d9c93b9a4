"""The metric of drawn scenes: relevance and discovery."""

from dataclasses import replace

from mmgen_scenes import Discovery

from mmgen.tensors import Example, Generation


def generations_of(examples, texts):
    return [Generation(example.id, text, (), 0.0) for example, text in zip(examples, texts, strict=True)]


def questions_about(examples, captioned):
    """For every example, a question about its first thing that is (or is not) in the caption."""
    for example in examples:
        thing = next(thing for thing in example.facts["things"] if thing["captioned"] is captioned)
        yield f"where is the {thing['color']} {thing['kind']}?"


def test_references_are_relevant_and_about_half_of_them_discover(data):
    scores = Discovery().build().references(data.split("test"))
    assert scores.values["relevance"] == scores.values["well_formed"] == 100
    assert 45 <= scores.values["discovery"] <= 62
    assert 0 < scores.values["chance_discovery"] < scores.values["chance_relevance"] < 15
    assert scores.notes == ("chance: questions about other scenes (40 a scene)",)
    assert len(scores.per_example["relevance"]) == 120
    assert scores == Discovery().build().references(data.split("test"))


def test_parroting_the_caption_discovers_nothing(data):
    examples, metric = data.split("test"), Discovery().build()
    captioned_scores = metric.score(generations_of(examples, questions_about(examples, True)), examples)
    assert (captioned_scores.values["relevance"], captioned_scores.values["discovery"]) == (100, 0)
    other_scores = metric.score(generations_of(examples, questions_about(examples, False)), examples)
    assert (other_scores.values["relevance"], other_scores.values["discovery"]) == (100, 100)
    assert other_scores.per_example["discovery"] == [100] * len(examples)


def test_empty_and_equal_questions(data):
    examples = data.split("test")[:4]
    values = Discovery().build().score(generations_of(examples, ["", "", "what?", "what?"]), examples).values
    assert values == {"relevance": 0, "discovery": 0, "well_formed": 0, "distinct": 50}


def test_other_data_sets_have_no_relevance():
    examples = [Example("1", {"image": "1"}, ("what is that?",))]
    scores = Discovery().build().score(generations_of(examples, ["what is that?"]), examples)
    assert scores.values["relevance"] is None
    assert scores.notes == (
        "relevance and discovery need a data set that knows what is in its pictures, such as drawn scenes",
    )
    assert Discovery().build().references(examples).values["discovery"] is None


def test_scenes_without_questions(data):
    examples = [replace(example, targets=()) for example in data.split("test")[:3]]
    scores = Discovery().build().references(examples)
    assert scores.values["relevance"] is None and scores.notes == ("no questions to judge",)
