"""Makes a blind sheet: draws pictures, shuffles the questions of all systems, writes the page, its data and its key.

The procedure is the paper's (section 5, "Human Evaluation"): judges see the question alone to rate readability, only
the caption to rate caption relevance, and only the picture to rate image relevance. The page names no system; the key
names them. The dimensions of QGEval that show the same things are rated on one page."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mmgen.errors import DataError, RunError
from mmgen.examples import Example
from mmgen.files import write_json, write_text
from mmgen.report import pictures, web_page

from .criteria import CRITERIA, PAPER, SETS
from .sheet import Authored, Item, Key, Question, Round, Sheet
from .systems import HUMAN, Material

ORDER: tuple[tuple[str, ...], ...] = ((), ("caption",), ("picture",), ("picture", "answer"))  # of rounds
SIDE = 640  # longer side of a picture in pixels; questions may be about small things


def make(
    material: Material,
    out: Path,
    *,
    count: int = 50,
    seed: int = 0,
    criteria: str = "paper",
) -> list[str]:
    """Write `out`, `<out>.json` and `<out>.key.json` for `count` random test examples; returns notes.

    Never overwrites a sheet, since a judge may be filling it. Raises RunError and DataError."""
    if out.suffix != ".html":
        raise RunError(f"--out {out}: file name must end in .html")
    data_path, key_path = out.with_suffix(".json"), out.with_suffix(".key.json")
    if existing := [path for path in (out, data_path, key_path) if path.exists()]:
        raise RunError(
            f"{existing[0]}: already exists, and judges may be filling it; choose another name for --out, or delete it"
        )
    draw = random.Random(seed)
    usable = [example for example in material.examples if any(map(str.strip, example.targets))]
    if count > len(usable):
        raise RunError(f"--n {count}: only {len(usable)} test examples have a question by people")
    examples = draw.sample(usable, count)
    shots, reason = _read_pictures(material, examples)
    rated, notes = _criteria_to_rate(material, examples, criteria, reason)
    human = HUMAN if HUMAN not in material.texts else f"{HUMAN} (references)"
    texts = {
        system: {example.id: _clean_text(own[example.id]) for example in examples}
        for system, own in material.texts.items()
    }
    texts[human] = {example.id: _clean_text(draw.choice([*filter(str.strip, example.targets)])) for example in examples}
    _hide_capitals(texts)
    questions = [
        question for number, example in enumerate(examples, 1) for question in _shuffle(number, example.id, texts, draw)
    ]
    key = Key(seed=seed, criteria=rated, systems=[*texts], human=human, questions=questions)
    name = hashlib.sha256(key.model_dump_json().encode()).hexdigest()[:16]
    sheet = Sheet(
        sheet=name,
        rounds=_plan_rounds(rated),
        words={name: [*CRITERIA[name].words] for name in rated},
        items=_items(material, examples, key, shots),
    )
    write_json(key_path, key.model_copy(update={"sheet": name}).model_dump())
    write_json(data_path, sheet.model_dump())
    page = {"data": sheet.model_dump(), "wide": bool(shots)}
    styles = [("mmgen.report", "page.css")]  # the reports' colours and type
    write_text(out, web_page.render("mmgen_humaneval", "form", page, styles))
    return notes


def _items(material: Material, examples: Sequence[Example], key: Key, shots: Mapping[str, pictures.Shot]) -> list[Item]:
    """What the page shows of each example."""
    shown = {thing for name in key.criteria for thing in CRITERIA[name].shows}
    return [
        Item(
            questions=[Question(id=own.id, text=own.text) for own in key.questions if own.example == example.id],
            caption=material.captions[example.id] if "caption" in shown else "",
            answer=material.answers[example.id] if "answer" in shown else "",
            shot=shots.get(example.id),
        )
        for example in examples
    ]


def _read_pictures(material: Material, examples: Sequence[Example]) -> tuple[dict[str, pictures.Shot], str]:
    """The picture of every example, or none and the reason. Raises DataError if some can be read."""
    sources, reason = pictures.find(material.dataset, examples)
    shots, broken = pictures.thumbnails(sources, SIDE)
    reason = reason or broken
    for example in examples if shots else ():
        if example.id not in shots:
            raise DataError(f"{reason or f'{example.id}: has no picture'}; fix the picture, or draw others with --seed")
    return {name: first for name, (first, *_) in shots.items()}, "" if shots else reason or "there are no pictures"


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
    reasons = {name: next(filter(None, map(missing.get, CRITERIA[name].shows)), "") for name in SETS[criteria]}
    notes = [f"{name.replace('_', ' ')} is not judged: {reason}" for name, reason in reasons.items() if reason]
    return [name for name, reason in reasons.items() if not reason], notes


def _plan_rounds(rated: Sequence[str]) -> list[Round]:
    """The rounds of a sheet. Nobody sees a picture before what is judged without it. A criterion of the paper has a
    round of its own."""
    rounds: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for name in sorted(rated, key=lambda name: ORDER.index(CRITERIA[name].shows)):  # stable
        rounds.setdefault((CRITERIA[name].shows, name if name in PAPER else ""), []).append(name)
    return [Round(criteria=names, shows=[*shows]) for (shows, _), names in rounds.items()]


def _hide_capitals(texts: dict[str, dict[str, str]]) -> None:
    """Make all texts lower-case if one system writes no capitals, since capitals would reveal the others."""
    if any(all(text == text.lower() for text in by_example.values()) for by_example in texts.values()):
        for by_example in texts.values():
            by_example.update({name: text.lower() for name, text in by_example.items()})


def _clean_text(text: str) -> str:
    return re.sub(" ([?!.,])", r"\1", " ".join(text.split()))


def _shuffle(
    number: int, example: str, texts_by_system: Mapping[str, Mapping[str, str]], draw: random.Random
) -> list[Authored]:
    """The different questions about one example in random order, with the systems that wrote them."""
    systems: dict[str, list[str]] = {}
    for system, texts in texts_by_system.items():
        systems.setdefault(texts[example], []).append(system)
    shuffled = draw.sample([*systems], len(systems))
    return [
        Authored(id=f"{number}-{place}", text=text, example=example, systems=systems[text])
        for place, text in enumerate(shuffled, 1)
    ]
