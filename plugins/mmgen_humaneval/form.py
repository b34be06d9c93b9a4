"""Making a sheet: pictures are drawn, questions of all systems mixed, and a page and the key to it written.

The procedure is the paper's (section 5, "Human Evaluation"): readability is judged of the question alone, caption
relevance beside the caption only, image relevance beside the picture only. The page holds no name of a system; the key
does."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.errors import DataError, RunError
from mmgen.files import read_json, write_json, write_text
from mmgen.progress import Progress
from mmgen.report import pictures, web_page
from mmgen.tensors import Example

from .systems import HUMAN, Material

KEY = "mmgen judge key 1"  # what the files call themselves
FILLED = "mmgen judge sheet 1"
READABILITY, CAPTION, IMAGE = "readability", "caption_relevance", "image_relevance"
LOWEST, HIGHEST = 1, 5
SIDE = 640  # longer side of a picture in pixels: small things are asked about too


@dataclass(frozen=True)
class Form:
    """What was written where, and what a person should know about it."""

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
    progress: Progress | None = None,
) -> Form:
    """`out` and `<out>.key.json`, for `count` random test examples. `together`: picture and caption are shown at once,
    and all is judged at once. Raises RunError and DataError; never overwrites, since somebody may be filling the
    sheet."""
    if out.suffix != ".html" or out.is_dir():
        raise RunError(f"--out {out}: give the name of a file that ends in .html")
    key_path = out.with_suffix(".key.json")
    if out.exists():
        raise RunError(f"{out}: is there already, and judges may be filling it; give --out another name, or delete it")
    draw = random.Random(seed)
    chosen = _draw(material, count, draw)
    found, reason = pictures.find(material.dataset, chosen)
    with (progress or Progress()).task("judge: pictures", len(found), "pictures") as advance:
        shots, broken = pictures.thumbnails(found, advance, SIDE)
    reason = reason or broken
    if shots and len(shots) < count:
        lost = next(example.id for example in chosen if example.id not in shots)
        raise DataError(f"{reason or f'{lost}: has no picture'}; mend that, or draw others with --seed")
    criteria, notes = _criteria(material, chosen, bool(shots), reason)
    asked = _lower_together(
        {**material.texts, _human(material): {each.id: draw.choice(_asked(each)) for each in chosen}}, chosen
    )
    items, questions = _mix(asked, chosen, draw)
    key = {
        "format": KEY,
        "seed": seed,
        "together": together,
        "criteria": criteria,
        "systems": list(asked),
        "human": _human(material),
        "questions": questions,
    }
    key["sheet"] = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
    for item, example in zip(items, chosen, strict=True):
        item["caption"] = material.captions.get(example.id, "") if CAPTION in criteria else ""
        item["shot"] = next(iter(shots.get(example.id, ())), None)
    rounds = _rounds(criteria, together)
    if key_path.exists() and read_json(key_path) != key:  # the same one: a full disk had no room for the page
        raise RunError(f"{key_path}: is there already, and is another sheet's; give --out another name, or delete it")
    page = render({"sheet": key["sheet"], "format": FILLED, "rounds": rounds, "items": items})
    write_json(key_path, key)
    write_text(out, page)
    shared = count * len(asked) - len(questions)
    if shared:
        notes.append(
            f"{shared} of {count * len(asked)} questions equal another of their picture: shown once, they count for "
            "each"
        )
    return Form(out, key_path, tuple(notes))


def render(data: Mapping[str, Any]) -> str:
    """The page, with its data as JSON that no text can break out of; every text is set by the script as text."""
    wide = any("picture" in each["shows"] for each in data["rounds"])  # all its parts then, so that nothing jumps
    styles = [("mmgen.report", "page.css")]  # the reports' colours and type
    return web_page.render("mmgen_humaneval", "form", {"data": data, "wide": wide}, styles)


def _asked(example: Example) -> list[str]:
    return [text for text in example.targets if text.strip()]


def _draw(material: Material, count: int, draw: random.Random) -> list[Example]:
    usable = [example for example in material.examples if _asked(example)]
    if count > len(usable):
        raise RunError(f"--n {count}: there are only {len(usable)} test examples with a question of people")
    return draw.sample(usable, count)


def _human(material: Material) -> str:
    return HUMAN if HUMAN not in material.texts else f"{HUMAN} (references)"


def _criteria(material: Material, chosen: Sequence[Example], seen: bool, reason: str) -> tuple[list[str], list[str]]:
    """What can be judged of these examples, and why the rest cannot."""
    criteria, notes = [READABILITY], []
    if all(example.id in material.captions for example in chosen):
        criteria.append(CAPTION)
    else:
        notes.append("caption relevance is not judged: not every example has a caption")
    if seen:
        criteria.append(IMAGE)
    else:
        notes.append(f"image relevance is not judged: {reason or 'the examples have no pictures'}")
    return criteria, notes


def _rounds(criteria: Sequence[str], together: bool) -> list[dict[str, list[str]]]:
    """What is judged beside what, one after another."""
    beside = {READABILITY: [], CAPTION: ["caption"], IMAGE: ["picture"]}
    if together:
        return [{"criteria": list(criteria), "shows": [thing for each in criteria for thing in beside[each]]}]
    return [{"criteria": [each], "shows": beside[each]} for each in criteria]


def _lower_together(texts: Mapping[str, Mapping[str, str]], chosen: Sequence[Example]) -> dict[str, dict[str, str]]:
    """Spacing the same for all; and where one system knows no capitals nobody has any, for they would tell who
    wrote."""
    tidy = {system: {example.id: _tidy(own[example.id]) for example in chosen} for system, own in texts.items()}
    if any(all(text == text.lower() for text in own.values()) for own in tidy.values()):
        return {system: {name: text.lower() for name, text in own.items()} for system, own in tidy.items()}
    return tidy


def _tidy(text: str) -> str:
    text = " ".join(text.split())
    for mark in "?!.,":
        text = text.replace(f" {mark}", mark)
    return text


def _mix(
    asked: Mapping[str, Mapping[str, str]], chosen: Sequence[Example], draw: random.Random
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Items for the page (without names) and questions for the key (with them), each example's in an order of its
    own."""
    items, questions = [], []
    for number, example in enumerate(chosen, 1):
        systems: dict[str, list[str]] = {}
        for system, own in asked.items():
            systems.setdefault(own[example.id], []).append(system)
        texts = list(systems)
        draw.shuffle(texts)
        ids = [f"{number}-{place}" for place in range(1, len(texts) + 1)]
        items.append({"questions": [{"id": own, "text": text} for own, text in zip(ids, texts, strict=True)]})
        questions += [
            {"id": own, "example": example.id, "text": text, "systems": systems[text]}
            for own, text in zip(ids, texts, strict=True)
        ]
    return items, questions
