"""Writes VQA 2.0's format: questions, annotations, and the answer vocabulary."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from mmgen_vl.coco import YEARS

from mmgen.reading.export import (
    Exported,
    Exporter,
    number_or_text,
    save_json,
    text_input,
)
from mmgen.tensors import Example

from ..export import split_roles
from .files import ANNOTATIONS, QUESTIONS, RELEASES

VOCABULARY = "answers.txt"


class Vqa2(Exporter):
    """Questions, annotations (also of the test split, where known), and the answer vocabulary."""

    name = "vqa2"
    required_labels = ("answers",)

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        _, prefix, (kind,), _ = RELEASES["2.0"]
        for split, examples in exported.splits.items():
            names = {"prefix": prefix, "kind": kind, "year": YEARS.get(split, split)}
            questions = {"questions": [_question_row(example) for example in examples]}
            save_json(folder / QUESTIONS.format_map(names), questions)
            if rows := [_annotation_row(example) for example in examples if example.targets]:
                save_json(folder / ANNOTATIONS.format_map(names), {"annotations": rows})
        (folder / VOCABULARY).write_text(
            "".join(f"{answer}\n" for answer in exported.vocabularies["answers"]), encoding="utf-8"
        )
        return {"type": "vqa_answers", "vocabulary": VOCABULARY, **split_roles([*exported.splits], {})}


def _question_row(example: Example) -> dict[str, Any]:
    ids = {"question_id": number_or_text(example.id), "image_id": number_or_text(text_input(example, "image"))}
    return {**ids, "question": text_input(example, "question")}


def _annotation_row(example: Example) -> dict[str, Any]:
    answers = [
        {"answer": answer, "answer_confidence": "yes", "answer_id": place}
        for place, answer in enumerate(example.targets, 1)
    ]
    known = {name: example.facts[name] for name in ("question_type", "answer_type") if name in example.facts}
    row = {"question_id": number_or_text(example.id), "image_id": number_or_text(text_input(example, "image")), **known}
    common = example.inputs.get("answer") or Counter(example.targets).most_common(1)[0][0]
    return {**row, "multiple_choice_answer": common, "answers": answers}
