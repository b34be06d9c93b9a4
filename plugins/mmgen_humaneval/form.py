"""Makes a blind sheet: draws pictures, shuffles the questions of all systems, writes the page and its key.

The procedure is the paper's (section 5, "Human Evaluation"): judges see the question alone to rate readability, only
the caption to rate caption relevance, and only the picture to rate image relevance. The page names no system; the key
names them. The dimensions of QGEval that show the same things are rated on one page."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.errors import DataError, RunError
from mmgen.examples import Example
from mmgen.files import read_json, write_json, write_text
from mmgen.report import pictures, web_page

from .criteria import ANSWER_CONSISTENCY, CAPTION, CRITERIA, PAPER, SETS
from .systems import HUMAN, Material

KEY = "mmgen judge key 1"  # the "format" of the files
FILLED = "mmgen judge sheet 1"
LOWEST, HIGHEST = 1, 5
ORDER: tuple[tuple[str, ...], ...] = ((), ("caption",), ("picture",), ("picture", "answer"))  # of rounds
SIDE = 640  # longer side of a picture in pixels; questions may be about small things


@dataclass(frozen=True)
class Form:
    """The written files, and notes for the person who made them."""

    page: Path
    key: Path
    notes: tuple[str, ...]


def make(
    material: Material,
    out: Path,
    *,
    count: int = 50,
    seed: int = 0,
    together: bool = False,
    criteria: str = "paper",
) -> Form:
    """Write `out` and `<out>.key.json` for `count` random test examples. `together`: everything is shown at once, and
    all criteria are rated at once. `criteria`: one of `criteria.SETS`. Never overwrites a sheet, since a judge may be
    filling it. Raises RunError and DataError."""
    if out.suffix != ".html" or out.is_dir():
        raise RunError(f"--out {out}: file name must end in .html")
    key_path = out.with_suffix(".key.json")
    if out.exists():
        raise RunError(
            f"{out}: already exists, and judges may be filling it; choose another name for --out, or delete it"
        )
    draw = random.Random(seed)
    examples = _draw_examples(material, count, draw)
    picture_sources, reason = pictures.find(material.dataset, examples)
    shots, broken = pictures.thumbnails(picture_sources, SIDE)
    reason = reason or broken
    if shots and len(shots) < count:
        example_id = next(example.id for example in examples if example.id not in shots)
        raise DataError(f"{reason or f'{example_id}: has no picture'}; fix the picture, or draw others with --seed")
    pictureless = "" if shots else reason or "the examples have no pictures"
    rated, notes = _criteria_to_rate(material, examples, criteria, pictureless)
    texts = _normalise_texts(
        {
            **material.texts,
            _human_name(material): {example.id: draw.choice(_human_questions(example)) for example in examples},
        },
        examples,
    )
    items, questions = _shuffle_systems(texts, examples, draw)
    key = {
        "format": KEY,
        "seed": seed,
        "together": together,
        "criteria": rated,
        "systems": list(texts),
        "human": _human_name(material),
        "questions": questions,
    }
    key["sheet"] = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
    for item, example in zip(items, examples, strict=True):
        item["caption"] = material.captions.get(example.id, "") if CAPTION in rated else ""
        item["shot"] = next(iter(shots.get(example.id, ())), None)
        if ANSWER_CONSISTENCY in rated:
            item["answer"] = material.answers[example.id]
    rounds = _plan_rounds(rated, together)
    words = {name: CRITERIA[name].words for name in rated}
    if (
        key_path.exists() and read_json(key_path) != key
    ):  # an equal key is left over when a full disk had no room for the page
        raise RunError(f"{key_path}: already exists for a different sheet; choose another name for --out, or delete it")
    page = render({"sheet": key["sheet"], "format": FILLED, "rounds": rounds, "words": words, "items": items})
    write_json(key_path, key)
    write_text(out, page)
    shared = count * len(texts) - len(questions)
    if shared:
        notes.append(
            f"{shared} of {count * len(texts)} questions duplicate another question of their picture; a "
            "duplicate is shown once and counts for every system that wrote it"
        )
    return Form(out, key_path, tuple(notes))


def render(data: Mapping[str, Any]) -> str:
    """The page with its data as escaped JSON; the script inserts every text as text, never as HTML."""
    wide = any(
        "picture" in judging_round["shows"] for judging_round in data["rounds"]
    )  # then every round is wide, so that the layout does not jump
    styles = [("mmgen.report", "page.css")]  # the reports' colours and type
    return web_page.render("mmgen_humaneval", "form", {"data": data, "wide": wide}, styles)


def _human_questions(example: Example) -> list[str]:
    return [text for text in example.targets if text.strip()]


def _draw_examples(material: Material, count: int, draw: random.Random) -> list[Example]:
    usable = [example for example in material.examples if _human_questions(example)]
    if count > len(usable):
        raise RunError(f"--n {count}: only {len(usable)} test examples have a question by people")
    return draw.sample(usable, count)


def _human_name(material: Material) -> str:
    return HUMAN if HUMAN not in material.texts else f"{HUMAN} (references)"


def _criteria_to_rate(
    material: Material, examples: Sequence[Example], criteria: str, pictureless: str
) -> tuple[list[str], list[str]]:
    """The criteria that can be judged for these examples, and notes on those that cannot. `pictureless`: why there are
    no pictures; empty if there are."""
    captioned = all(example.id in material.captions for example in examples)
    missing = {
        "caption": "" if captioned else "not every example has a caption",
        "picture": pictureless,
        "answer": ""
        if material.answers
        else "answers are missing; --answer names the input or fact of the examples that has them",
    }
    rated, notes = [], []
    for name in SETS[criteria]:
        reason = next((missing[thing] for thing in CRITERIA[name].shows if missing[thing]), "")
        if reason:
            notes.append(f"{name.replace('_', ' ')} is not judged: {reason}")
        else:
            rated.append(name)
    return rated, notes


def _plan_rounds(rated: Sequence[str], together: bool) -> list[dict[str, list[str]]]:
    """The rounds of a sheet: the criteria to rate, and what is shown with the question. Nobody sees a picture before
    what is judged without it. A criterion of the paper has a round of its own."""
    if together:
        things = dict.fromkeys(thing for name in rated for thing in CRITERIA[name].shows)
        return [{"criteria": list(rated), "shows": list(things)}]
    rounds: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for name in sorted(rated, key=lambda name: ORDER.index(CRITERIA[name].shows)):  # stable
        rounds.setdefault((CRITERIA[name].shows, name if name in PAPER else ""), []).append(name)
    return [{"criteria": names, "shows": list(shows)} for (shows, _), names in rounds.items()]


def _normalise_texts(texts: Mapping[str, Mapping[str, str]], examples: Sequence[Example]) -> dict[str, dict[str, str]]:
    """Texts with the same spacing for all systems. If one system writes no capitals, all texts become lower-case:
    capitals would reveal the system."""
    cleaned = {
        system: {example.id: _clean_text(by_example[example.id]) for example in examples}
        for system, by_example in texts.items()
    }
    if any(all(text == text.lower() for text in by_example.values()) for by_example in cleaned.values()):
        return {
            system: {name: text.lower() for name, text in by_example.items()} for system, by_example in cleaned.items()
        }
    return cleaned


def _clean_text(text: str) -> str:
    text = " ".join(text.split())
    for mark in "?!.,":
        text = text.replace(f" {mark}", mark)
    return text


def _shuffle_systems(
    texts_by_system: Mapping[str, Mapping[str, str]], examples: Sequence[Example], draw: random.Random
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Items for the page (without systems) and questions for the key (with systems), shuffled within each example."""
    items, questions = [], []
    for number, example in enumerate(examples, 1):
        systems: dict[str, list[str]] = {}
        for system, by_example in texts_by_system.items():
            systems.setdefault(by_example[example.id], []).append(system)
        texts = list(systems)
        draw.shuffle(texts)
        ids = [f"{number}-{place}" for place in range(1, len(texts) + 1)]
        items.append(
            {"questions": [{"id": question_id, "text": text} for question_id, text in zip(ids, texts, strict=True)]}
        )
        questions += [
            {"id": question_id, "example": example.id, "text": text, "systems": systems[text]}
            for question_id, text in zip(ids, texts, strict=True)
        ]
    return items, questions
