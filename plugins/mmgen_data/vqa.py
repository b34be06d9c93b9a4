"""VQA 1.0, VQA 2.0 and OK-VQA (Antol et al., 2015; Goyal et al., 2017; Marino et al., 2019): questions and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mmgen_vision.answers import PEOPLE, most_common, normalise, tidy, weights
from mmgen_vision.configs import Paths, SplitName, as_paths
from mmgen_vision.lines import read_answers
from pydantic import AfterValidator, Field

from mmgen.configs import RelativeTo
from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.reading.rows import Id, Key, Line, Row
from mmgen.reading.rows import tidy as on_one_line

from .questions import Entry, ReleasedQuestions
from .releases import VQA, Release

if TYPE_CHECKING:
    from mmgen_vision.published import Files, Finder, PublishedData

UNKNOWN = "<unk>"  # Pythia's first answer, which is never right


def _official(text: str) -> str:
    """An answer as the official evaluation reads it: two blanks stay two."""
    on_one_line(text)  # raises
    return intern(tidy(text))


class Question(Row):
    """A row of the list `questions`."""

    question_id: Id
    image_id: Key
    question: Line


class PersonsAnswer(Row):
    """One of the answers to a question."""

    answer: Annotated[str, AfterValidator(_official)]


class Annotation(Row):
    """A row of the list `annotations`: the answers of people to a question."""

    question_id: Id
    answers: list[PersonsAnswer] = Field(min_length=1, max_length=PEOPLE)
    multiple_choice_answer: Line | None = None
    question_type: Line | None = None
    answer_type: Line | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The answers."""
        return tuple(row.answer for row in self.answers)

    @property
    def common(self) -> str:
        """The most common answer, as published."""
        given = self.multiple_choice_answer
        return Counter(self.texts).most_common(1)[0][0] if given is None else given

    @property
    def types(self) -> dict[str, str]:
        """The types of question and answer that are known."""
        kinds = {"question_type": self.question_type, "answer_type": self.answer_type}
        return {name: intern(kind) for name, kind in kinds.items() if kind is not None}


class Vqa(ReleasedQuestions):
    """VQA: questions about images and the answers of people (VQA 1.0, VQA 2.0, OK-VQA).

    With targets = "questions" the questions about an image are the texts to generate; with "answers" each question is
    an example, whose answer is chosen or generated, and a split without annotations, such as test, has no answers. A
    split may have several files: `files = { train = ["a.json", "b.json"] }`.
    """

    type: Literal["vqa"] = "vqa"
    release: Literal["1.0", "2.0", "okvqa"] = Field(
        "1.0", description="the release, which defines file names, captions and published results"
    )
    targets: Literal["questions", "answers", "captions"] = Field(  # type: ignore[assignment]
        "questions",
        description='what is learned: the questions of an image, the answer to a question, or "captions" (of the '
        "images with questions), for a warm start",
    )
    prompts: Literal["none", "answer", "answer_type", "question_type"] = Field(
        "none",
        description="a prompt per question, from the annotations beside the questions: its most common answer "
        '("answer: red"), the type of its answer ("answer type: yes/no") or its own ("question type: how many")',
    )
    annotations: Annotated[dict[SplitName, Paths], RelativeTo("folder")] = Field(
        {}, description="split -> its annotation files, instead of the published file; [] for none"
    )
    num_answers: int = Field(
        3129, ge=1, description="size of the answer vocabulary: the most common answers of the split `train`"
    )
    vocabulary: Annotated[Path | None, RelativeTo("folder")] = Field(
        None,
        description="the answer vocabulary, in a checkpoint's order: lines (Pythia's answers_vqa.txt) or JSON "
        "(LXMERT's trainval_label2ans.json)",
    )

    @property
    def released(self) -> Release:
        return VQA[self.release]

    @property
    def has_prompts(self) -> bool:
        return self.prompts != "none"

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("answers",) if self.targets == "answers" else super().labels

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        if self.has_prompts and self.targets != "questions":
            raise ValueError('prompts: only questions have prompts; remove it, or set targets = "questions"')

    def find(self, finder: Finder, split: str) -> Files:
        files: dict[str, Sequence[Path]] = {**super().find(finder, split)}
        if self.targets == "answers" or self.has_prompts:
            published = map(Path, self.released.files(split, self.released.annotations))
            names = as_paths(self.annotations.get(split, tuple(published)))
            if split not in {"train", "val", *self.annotations}:
                names = tuple(name for name in names if (self.folder / name).is_file())
            if self.has_prompts and not names:
                raise DataError(
                    f"data.prompts: {self.about.name} has no annotations of '{split}'; choose another split, such as "
                    'test_split = "val"'
                )
            files["annotations"] = [finder.file(name, where=self.about.source) for name in names]
        return files | ({} if self.vocabulary is None else {"vocabulary": [finder.file(self.vocabulary)]})

    def find_captions(self, finder: Finder, published: Sequence[str] = ()) -> list[Path]:
        return [] if self.targets == "answers" else super().find_captions(finder, published)

    def entries(self, data: PublishedData, split: str) -> Iterable[tuple[str, str, Entry]]:
        annotated = self._annotations(data, split) if self.has_prompts else {}
        for place, row in data.rows(split, "questions", Question, "questions", unique="question_id"):
            answers = annotated.get(row.question_id)
            value = {"answer": answers.common, **answers.types}.get(self.prompts) if answers else None
            prompt = f"{self.prompts.replace('_', ' ')}: {value}" if value else ""
            yield place, row.image_id, Entry(row.image_id, [(row.question, prompt)])

    def read(self, data: PublishedData, split: str) -> Iterator[Example | str]:
        """With targets = "answers", examples by the question's id:

        inputs   "image": its key; "question"; "answer": the most common answer, to pretrain on questions with answers
        targets  the ten answers of people in the split to evaluate; in other splits the most common answer
        labels   "answers": {answer: min(1, 0.3 per person who gave it)}, only answers of the vocabulary
        facts    image, question_type, answer_type

        Answers are compared as the official evaluation normalises them.
        """
        if self.targets != "answers":
            yield from super().read(data, split)
            return
        annotated, spelling = self._annotations(data, split), self._spelling(data)
        for _, row in data.rows(split, "questions", Question, "questions", unique="question_id"):
            answers = annotated.get(row.question_id)
            if not row.question or (data.files[split]["annotations"] and not answers):
                yield "question{s} without answers" if row.question else "question{s} without a text"
            else:
                yield self._example(row, answers, split, spelling)

    def _example(self, row: Question, answers: Annotation | None, split: str, spelling: Mapping[str, str]) -> Example:
        inputs, facts = {"image": row.image_id, "question": row.question}, {"image": row.image_id}
        if answers is None:
            return Example(row.question_id, inputs, (), facts, {"answers": {}})
        common = {"answer": answers.common} if answers.common else {}
        targets = answers.texts if split == self.test_split else tuple(common.values())
        known = weights(map(normalise, answers.texts)).items()
        weighted = {spelling[answer]: weight for answer, weight in known if answer in spelling}
        return Example(row.question_id, inputs | common, targets, facts | answers.types, {"answers": weighted})

    def _annotations(self, data: PublishedData, split: str) -> Mapping[str, Annotation]:
        """The answers of people, by question."""
        rows = data.rows(split, "annotations", Annotation, "annotations", unique="question_id")
        return data.once(f"annotations {split}", lambda: {row.question_id: row for _, row in rows})

    def _answers(self, data: PublishedData) -> tuple[str, ...]:
        """The answer vocabulary."""
        files = data.files[self.train_split]
        if self.vocabulary is not None:
            return data.once("vocabulary", lambda: read_answers(files["vocabulary"][0]))
        if not files["annotations"]:
            raise DataError(
                f"{self.about.name}: the split '{self.train_split}' has no annotations, so its answers cannot be "
                "counted; name files in data.annotations, or a file of answers in data.vocabulary"
            )
        common = (normalise(row.common) for row in self._annotations(data, self.train_split).values())
        return data.once("vocabulary", lambda: most_common(common, self.num_answers, files["annotations"][0]))

    def _spelling(self, data: PublishedData) -> dict[str, str]:
        """Normalised answer -> its spelling in the vocabulary, the first of several."""
        answers = (answer for answer in reversed(self._answers(data)) if answer != UNKNOWN)
        return {normalise(answer): answer for answer in answers}

    def vocabularies(self, data: PublishedData) -> Mapping[str, tuple[str, ...]]:
        return {"answers": self._answers(data)} if self.targets == "answers" else {}
