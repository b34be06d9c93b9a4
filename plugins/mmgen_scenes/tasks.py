"""Configs of the tasks VQA, NLVR2, VCR, RefCOCO+ and Flickr30K Entities, drawn: data sets about scenes."""

from typing import ClassVar, Literal

from pydantic import Field

from .configs import QUESTIONS, STATEMENTS, Drawn, Proposals


class SceneAnswers(Drawn):
    """Questions about drawn scenes with one answer, and the answers of ten people: VQA, drawn. All answers to a form of
    question are about equally common."""

    type: Literal["scene_answers"] = "scene_answers"
    labels: ClassVar[tuple[str, ...]] = ("answers",)
    questions: int = Field(4, ge=1, le=6, description="questions per scene, one example each")
    unanswerable: float = Field(
        0.0,
        ge=0,
        lt=1,
        description='share of the questions that name what the scene does not have; nine people answer "unanswerable", '
        "as in VizWiz",
    )

    def build(self):
        from .tasks_answers import DrawnAnswers

        return DrawnAnswers(self)


class ScenePairs(Drawn):
    """Statements about two drawn scenes side by side, true or false: NLVR2, drawn.

    A set has eight scenes. Each statement is true of half of its pairs of scenes and false of the others, so that the
    words alone do not help: chance is 50 in 100, and 1 in 16 for all four pairs of a statement.
    """

    type: Literal["scene_pairs"] = "scene_pairs"
    labels: ClassVar[tuple[str, ...]] = ("truth",)
    train_size: int = Field(300, ge=1, le=100_000, description="training sets, of eight scenes each")
    val_size: int = Field(10, ge=1, le=100_000, description="validation sets")
    test_size: int = Field(40, ge=1, le=100_000, description="test sets")
    statements: int = Field(2, ge=1, le=3, description="statements per set; each makes four examples, one per pair")
    forms: tuple[Literal[STATEMENTS], ...] = Field(  # type: ignore[valid-type]
        STATEMENTS, min_length=1, description="forms of statements, where they fit; by default all 14, equally common"
    )
    pairings: int = Field(4, ge=4, le=28, multiple_of=2, description="pairs per training statement, at most")

    def build(self):
        from .tasks_statements import DrawnPairs

        return DrawnPairs(self)


class SceneStatements(Drawn):
    """Statements about one drawn scene, a true and a false one of each form: what is there or not (as in POPE),
    colours, numbers, and the same words swapped (as in Winoground). Chance is 50 in 100, and 25 for both."""

    type: Literal["scene_statements"] = "scene_statements"
    labels: ClassVar[tuple[str, ...]] = ("truth",)
    statements: int = Field(
        6, ge=1, le=6, description="forms of statements per scene, at most; each makes two examples"
    )

    def build(self):
        from .tasks_statements import DrawnStatements

        return DrawnStatements(self)


class SceneChoices(Drawn):
    """Questions about drawn scenes with four answers, and four rationales for the right one: VCR, drawn. Wrong choices
    fit the scene's things."""

    type: Literal["scene_choices"] = "scene_choices"
    labels: ClassVar[tuple[str, ...]] = ("choices", "choice_mentions", "choice", "objects")
    min_things: int = Field(6, ge=6, le=7, description="fewest things in a scene")
    max_things: int = Field(7, ge=6, le=7, description="most things in a scene")
    num_questions: int = Field(2, ge=1, le=2, description="questions per scene")
    subtask: Literal["answer", "rationale", "both", "every"] = Field(
        "both",
        description="answers; rationales of the right answer; both; or, for VCR's leaderboard, also the rationales of "
        "each of the four answers",
    )
    forms: tuple[Literal[QUESTIONS], ...] = Field(  # type: ignore[valid-type]
        QUESTIONS, min_length=1, description="questions of these forms only, where they fit"
    )

    def build(self):
        from .tasks_choices import DrawnChoices

        return DrawnChoices(self)


class SceneExpressions(Proposals):
    """Expressions that fit exactly one thing of a drawn scene with several of its kind: RefCOCO+, drawn.

    An expression is as short as possible, and never says left or right. A random box is right 18 times in 100 among
    the things' boxes, and 5 times among 36 proposals; the proposals have a right box for 98 things in 100.
    """

    type: Literal["scene_expressions"] = "scene_expressions"
    labels: ClassVar[tuple[str, ...]] = ("box",)
    proposals: int = Field(0, ge=0, le=100, description=Proposals.model_fields["proposals"].description)
    same_kind: int = Field(3, ge=2, le=4, description="how many things of one kind, not all alike, a scene has")
    expressions: int = Field(2, ge=1, le=4, description="at most this many expressions per scene, one example each")

    def build(self):
        from .tasks_boxes import DrawnExpressions

        return DrawnExpressions(self)


class ScenePhrases(Proposals):
    """Boxes of the things that captions of drawn scenes name: Flickr30K Entities, drawn.

    A phrase that names several things has one box around all of them. Of 36 proposals 5 in 100 are right; 98 phrases in
    100 have a right proposal.
    """

    type: Literal["scene_phrases"] = "scene_phrases"
    labels: ClassVar[tuple[str, ...]] = ("phrases",)
    captions: int = Field(2, ge=1, le=10, description="captions per scene: the first captions of the data set `scenes`")

    def build(self):
        from .tasks_boxes import DrawnPhrases

        return DrawnPhrases(self)
