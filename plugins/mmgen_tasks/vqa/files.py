"""Reads VQA 1.0, VQA 2.0 and OK-VQA with answers (Antol et al., 2015; Goyal et al., 2017; Marino et al., 2019)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

from mmgen_vision.answers import PEOPLE, most_common, normalise, weights
from mmgen_vision.answers import tidy as on_one_line
from mmgen_vision.coco import YEARS
from mmgen_vision.find_files import Finder

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.reading.text import image_id, read_items, read_list, require_keys, tidy

from ..dataset import CountedExamples, PublishedDataset, read_images
from .vocabulary import UNKNOWN, read_vocabulary

if TYPE_CHECKING:
    from .config import VqaAnswers

QUESTIONS = "{prefix}{kind}_mscoco_{year}_questions.json"
ANNOTATIONS = "{prefix}mscoco_{year}_annotations.json"
RELEASES = {  # name, prefix of the files' names, kinds of question files, where to get the files
    "1.0": ("VQA 1.0", "", ("OpenEnded", "MultipleChoice"), "visualqa.org/vqa_v1_download.html"),
    "2.0": ("VQA 2.0", "v2_", ("OpenEnded",), "visualqa.org/download.html"),
    "okvqa": ("OK-VQA", "", ("OpenEnded",), "okvqa.allenai.org/download.html"),
}


class Files(NamedTuple):
    """The files of a split. Without annotations the answers are unknown."""

    questions: tuple[Path, ...]
    annotations: tuple[Path, ...]
    vocabulary: Path | None  # this file and the next are shared by all splits
    held_out: Path | None


class Annotation(NamedTuple):
    """The answers of people to a question."""

    answers: tuple[str, ...]
    common: str  # the most common answer, as published
    image: str | None  # the key of the picture, where the file has one
    facts: Mapping[str, str]


class VqaFiles(PublishedDataset):
    """Examples of a `VqaAnswers` config, one per question.

    id       the question's id
    inputs   "image": its key; "question"; "answer": the most common answer, to pretrain on questions with answers
    targets  the ten answers of people in the split to evaluate; in other splits the most common answer, or all
    labels   "answers": {answer: min(1, 0.3 per person who gave it)}, only answers of the vocabulary
    facts    image, question_type, answer_type

    Answers are compared as the official evaluation normalises them.
    """

    licence = "questions and answers: CC BY 4.0; images: their photographers' terms"
    advice = (
        "put the files there, or name other files in data.questions, data.annotations, data.vocabulary and "
        "data.held_out"
    )
    config: VqaAnswers

    def __init__(self, config: VqaAnswers) -> None:
        self.name, self.prefix, self.kinds, self.source = RELEASES[config.release]
        self._annotations: dict[str, dict[str, Annotation]] = {}
        super().__init__(config)

    def find(self, finder: Finder, split: str) -> Files:
        config, year = self.config, YEARS.get(split)
        questions, annotations = config.questions.get(split), config.annotations.get(split)
        published = [QUESTIONS.format(prefix=self.prefix, kind=kind, year=year) for kind in self.kinds]
        usual = Path(ANNOTATIONS.format(prefix=self.prefix, year=year))
        if annotations is None and (split in ("train", "val") or (config.folder / usual).is_file()):
            annotations = (usual,)
        return Files(
            tuple(finder.file([name], self.source) for name in questions)
            if questions
            else (finder.file(published, self.source),),
            tuple(finder.file([name], self.source) for name in annotations or ()),
            None if config.vocabulary is None else finder.file([config.vocabulary], ""),
            None if config.held_out is None else finder.file([config.held_out], ""),
        )

    def main_file(self, split: str) -> Path:
        return self.files[split].questions[0]

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        return {"answers": self._vocabulary}

    def describe(self) -> dict[str, Any]:
        """As for all published data sets; also the size of the answer vocabulary, and a hash of the vocabulary."""
        digest = hashlib.sha256("\n".join(self._vocabulary).encode()).hexdigest()
        return {**super().describe(), "answers": len(self._vocabulary), "answers_fingerprint": digest[:16]}

    def read(self, split: str) -> CountedExamples:
        files, annotated = self.files[split], self._annotated(split)
        examples: dict[str, Example] = {}
        counts: Counter[str] = Counter()

        def take(row: Any) -> None:
            require_keys(row, "question_id", "image_id", "question")
            question_id = image_id(row["question_id"], "question_id", plain=True)
            key, question = image_id(row["image_id"], "image_id"), tidy(row["question"], "question")
            if question_id in examples:
                raise DataError(f"duplicate question_id {question_id:.60}")
            known = annotated.get(question_id)
            if known is not None and known.image not in (None, key):
                names = " and ".join(path.name for path in files.annotations)
                raise DataError(
                    f"question_id {question_id:.60} has image_id {key:.60} here, but {known.image:.60} in {names}; use "
                    "files of the same release"
                )
            if not question or (files.annotations and question_id not in annotated):
                counts["without_answers" if question else "without_text"] += 1
            else:
                examples[question_id] = self._build_example(split, question_id, key, question, known)

        for path in files.questions:
            read_items(read_list(path, "questions", "VQA questions")[1], path, "questions", take)
        return CountedExamples(self._without_held_out(split, [*examples.values()]), counts)

    def _without_held_out(self, split: str, examples: list[Example]) -> list[Example]:
        """The examples about the images that a split may have."""
        if (path := self.files[split].held_out) is None:
            return examples
        held_out = read_images(path)
        held_out_examples = [example for example in examples if example.inputs["image"] in held_out]
        if split != self.config.train_split:
            return held_out_examples or examples
        return [example for example in examples if example.inputs["image"] not in held_out]

    def _build_example(
        self, split: str, question_id: str, key: str, question: str, known: Annotation | None
    ) -> Example:
        inputs, facts = {"image": key, "question": question}, {"image": key}
        if known is None:
            return Example(question_id, inputs, (), facts, {"answers": {}})
        inputs |= {"answer": known.common} if known.common else {}
        train_targets = known.answers if self.config.train_targets == "all" else (known.common,)
        targets = known.answers if split == self.config.test_split else tuple(filter(None, train_targets))
        answer_weights = weights(map(normalise, known.answers))
        vocabulary_weights = {
            self._spelling[answer]: weight for answer, weight in answer_weights.items() if answer in self._spelling
        }
        return Example(question_id, inputs, targets, {**facts, **known.facts}, {"answers": vocabulary_weights})

    @cached_property
    def _vocabulary(self) -> tuple[str, ...]:
        split = self.config.train_split
        if (path := self.files[split].vocabulary) is not None:
            return read_vocabulary(path)
        if not self.files[split].annotations:
            raise DataError(
                f"{self.name}: the split '{split}' has no annotations, so its answers cannot be counted; name files "
                "in data.annotations, or a file of answers in data.vocabulary"
            )
        common = (normalise(known.common) for known in self._annotated(split).values())
        return most_common(common, self.config.num_answers, self.config.min_count, self.files[split].annotations[0])

    @cached_property
    def _spelling(self) -> dict[str, str]:
        """Normalised answer -> its spelling in the vocabulary, the first of several."""
        spellings: dict[str, str] = {}
        for answer in self._vocabulary:
            if answer != UNKNOWN:
                spellings.setdefault(normalise(answer), answer)
        return spellings

    def _annotated(self, split: str) -> dict[str, Annotation]:
        """The answers of people, by question."""
        if split not in self._annotations:
            by_question: dict[str, Annotation] = {}

            def take(row: Any) -> None:
                require_keys(row, "question_id", "answers")
                question_id = image_id(row["question_id"], "question_id", plain=True)
                if question_id in by_question:
                    raise DataError(f"duplicate question_id {question_id:.60}")
                by_question[question_id] = read_annotation(row)

            for path in self.files[split].annotations:
                read_items(read_list(path, "annotations", "VQA annotations")[1], path, "annotations", take)
            self._annotations[split] = by_question
        return self._annotations[split]


def read_annotation(row: Any) -> Annotation:
    """The answers of people to a question. Raises DataError."""
    if not isinstance(row["answers"], list) or not row["answers"]:
        raise DataError(f"answers must be a list with the answers of people, not {row['answers']!r:.60}")
    if len(row["answers"]) > PEOPLE:
        raise DataError(
            f"a question has {len(row['answers'])} answers; VQA has the answers of {PEOPLE} people or fewer"
        )
    answers = tuple(_read_answers(row["answers"]))
    if row.get("multiple_choice_answer") is not None:
        common = intern(tidy(row["multiple_choice_answer"], "multiple_choice_answer"))
    else:
        common = max(Counter(answers).items(), key=lambda item: item[1])[0]
    facts = {
        name: intern(tidy(row[name], name)) for name in ("question_type", "answer_type") if row.get(name) is not None
    }
    image = None if row.get("image_id") is None else intern(image_id(row["image_id"], "image_id"))
    return Annotation(answers, common, image, facts)


def _read_answers(rows: list[Any]) -> Iterator[str]:
    for number, row in enumerate(rows):
        try:
            require_keys(row, "answer")
            tidy(row["answer"], "answer")  # raises
            yield intern(on_one_line(row["answer"]))  # as in the official evaluation: two blanks stay two
        except DataError as error:
            raise DataError(f"answers[{number}]: {error}") from None
