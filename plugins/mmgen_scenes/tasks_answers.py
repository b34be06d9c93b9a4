"""The data set `scene_answers`, VQA drawn: questions about scenes, the answers of ten people, some unanswerable.

The questions are those of `mmgen_scenes.questions`. Knowing which answers are common helps little without the picture:
a question is kept more rarely, the more common its answer is among questions of its form.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from mmgen_vision.answers import PEOPLE, weights

from mmgen.examples import Example

from . import SceneAnswers
from .drawn import DrawnDataset, SceneSet, plain_scene, things
from .phrases import at_place
from .questions import FORMS, find_answers
from .world import COLORS, GROUNDS, KINDS, SIDES, SIZES, SORTS, Scene, sample

UNANSWERABLE = "unanswerable"
NUMBERS = ("1", "2", "3")
PLACES = tuple(map(at_place, GROUNDS))  # "where" questions are about things on the ground
ANSWERS = ("yes", "no", *NUMBERS, *COLORS, *SIDES, *PLACES, *KINDS)
MOST_OF_A_FORM = 2  # questions of one form per scene
PATIENCE = 100  # forms drawn per question before MOST_OF_A_FORM no longer holds
TOPICS = 6  # topics tried for a form before another form is drawn
PILOT_SCENES = 300  # used to estimate how common answers are
TRIED = {  # how often each form is tried; those that seldom have an answer more often
    "what color": 5,
    "how many": 10,
    "where": 1,
    "which side": 1,
    "is it bigger": 1,
    "is it beside": 2,
    "is there": 4,
    "is there near": 5,
    "what is beside": 3,
    "what is it looking at": 14,
    "which way": 2,
}
FLATTENED = ("what color", "how many", "is it beside", "is there near", "is there")
ALIKE = {  # answers that people confuse
    "red": ("orange", "purple"),
    "orange": ("red", "yellow"),
    "yellow": ("orange", "white"),
    "green": ("blue", "yellow"),
    "blue": ("purple", "green"),
    "purple": ("blue", "red"),
    "white": ("yellow",),
    "black": ("brown",),
    "brown": ("black", "orange"),
    "1": ("2",),
    "2": ("1", "3"),
    "3": ("2",),
}

Rates = Mapping[tuple[str, str], float]


class Question(NamedTuple):
    """A question of a form, and its answer."""

    form: str
    text: str
    answer: str


class DrawnAnswers(DrawnDataset):
    """Examples of a `SceneAnswers` config, one per question.

    inputs   "image": the scene's name; "question"; "answer": the right answer, for pretraining
    targets  the ten people's answers in the split to evaluate, in other splits the most common answer
    labels   "answers": {answer: its weight}
    facts    question_type (the form of question), answer_type (as in VQA; "unanswerable"), image, the scene's things
    """

    name = "drawn scenes with answers"
    config: SceneAnswers

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        return {"answers": (*ANSWERS, UNANSWERABLE) if self.config.unanswerable else ANSWERS}

    def make(self, split: str, i: int) -> SceneSet:
        config = self.config
        _, scene = plain_scene(config, split, i)
        rng, known = Random(f"{config.seed}/{split}/{i}/answers"), things(scene)
        luck = Random(f"{config.seed}/{split}/{i}/unanswerable")
        rates = acceptance(*config.things)
        examples = []
        for place, question in enumerate(write(rng, scene, config.questions, rates)):
            people = sample_people(rng, question)
            if luck.random() < config.unanswerable:
                question = self._about_another(luck, known, rates)
                people = (*[UNANSWERABLE] * (PEOPLE - 1), question.answer)
                question = question._replace(answer=UNANSWERABLE)
            examples.append(
                Example(
                    f"{scene.id}-{place}",
                    {"image": scene.id, "question": question.text, "answer": question.answer},
                    people if split == config.test_split else (question.answer,),
                    {
                        "image": scene.id,
                        "question_type": question.form,
                        "answer_type": answer_type(question.answer),
                        "things": known,
                    },
                    {"answers": weights(people)},
                )
            )
        return (scene,), tuple(examples)

    def _about_another(self, rng: Random, known: list[dict[str, Any]], rates: Rates) -> Question:
        """A question about another scene, of which something is not in this one."""
        while True:
            another = sample(rng, "", *self.config.things)
            question = rng.choice(write(rng, another, self.config.questions, rates))
            if find_answers(question.text, known).reason == "not there":
                return question


def write(rng: Random, scene: Scene, count: int, rates: Rates) -> list[Question]:
    """`count` different questions. `rates`: the result of `acceptance`."""
    written: dict[str, Question] = {}  # by text without colours and sizes, so that no question is asked twice
    used: Counter[str] = Counter()
    for tries in range(PATIENCE * count):
        (form,) = rng.choices(tuple(TRIED), tuple(TRIED.values()))
        question = _ask(rng, scene, form) if used[form] < MOST_OF_A_FORM or tries >= PATIENCE else None
        if question is None:
            continue
        plain = " ".join(word for word in question.text.split() if word not in (*COLORS, *SIZES))
        if plain not in written and rng.random() < rates.get((form, question.answer), 1.0):
            written[plain] = question
            used[form] += 1
            if len(written) == count:
                break
    return list(written.values())


@lru_cache(maxsize=16)
def acceptance(fewest: int, most: int) -> Rates:
    """(form, answer) -> the probability of keeping such a question, so that all answers to questions of one form are
    equally common. Estimated on scenes of `fewest` to `most` things that no data set shows."""
    offered: dict[str, Counter[str]] = defaultdict(Counter)
    for i in range(PILOT_SCENES):
        rng = Random(f"pilot/{i}")
        scene = sample(rng, str(i), fewest, most)
        for form in FLATTENED:
            if question := _ask(rng, scene, form):
                offered[form][question.answer] += 1
    return {(form, answer): min(n.values()) / n[answer] for form, n in offered.items() for answer in n}


def _ask(rng: Random, scene: Scene, name: str) -> Question | None:
    """A question of a form that has one answer; None if none was found."""
    form = FORMS[name]
    for _ in range(TOPICS):
        topic, partner = rng.sample(scene.groups, 2)
        moves = form.words.endswith(("at", "going"))
        related = "{relation}" in form.words  # to a single thing
        if topic.plural and (related or moves) or partner.plural and related and "{partner}" in form.words:
            continue
        if form.fill and (slots := form.fill(rng, scene, topic, partner)):
            text = f"{form.words.format_map(slots)}?"
            answers = find_answers(text, things(scene), alone=True).answers
            several = any([thing.kind for thing in scene.things].count(answer) > 1 for answer in answers)
            if len(answers) == 1 and answers <= {*ANSWERS} and not several:
                return Question(name, text, *answers)
    return None


def sample_people(rng: Random, question: Question) -> tuple[str, ...]:
    """The answers of ten people: nine agree, and one gives a near miss that the question does not name."""
    answer, people = question.answer, [question.answer] * PEOPLE
    alike = ALIKE.get(answer) or next(
        group for group in (("yes", "no"), SIDES, PLACES, *SORTS.values()) if answer in group
    )
    misses = [miss for miss in alike if miss != answer and miss not in question.text[:-1].split()]
    people[rng.randrange(PEOPLE)] = rng.choice(misses or [answer])
    return tuple(people)


def answer_type(answer: str) -> str:
    """The type of a drawn question's answer, as VQA calls it."""
    if answer == UNANSWERABLE:
        return UNANSWERABLE
    return "yes/no" if answer in ("yes", "no") else "number" if answer in NUMBERS else "other"
