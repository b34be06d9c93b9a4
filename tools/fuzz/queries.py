"""Fuzzing of queries with conditions: texts with gaps to fill, prompts, texts to avoid, decoding options. The given
words must stay, and every prompt must have its texts."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from random import Random
from typing import Any

from kit import toys

from . import mutations
from .harness import Surface

WORDS = ["a red dog barks", "two blue cats sleep on the grass", "what is the man doing"]
GAP = "[MASK]"
TEXTS = [
    f"what {GAP} the dog",
    f"{GAP} {GAP} cats?",
    f"a {GAP}",
    GAP,
    f"the man {GAP} {GAP} on the grass",
    f"what{GAP}dog",
]
PROMPTS: list[Any] = ["answer: red", ["form: what"], ["answer: red", "thing: 2 4 3 6"], ["a", "a"]]
ODD = [
    *TEXTS,
    GAP * 40,
    f"{GAP} [SEP]",
    "[CLS]",
    "[PAD]",
    "[UNK] [MASK]",
    "zebra [MASK]",
    [GAP],
    " ",
    "\u200d",
    "dog " * 30,
]
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "infilling": [{}, {"steps": 2}, {"order": "left_to_right"}, {"threshold": 0.5}, {"guidance": 2.0}, {"lengths": 1}],
    "conditions": [
        {},
        {"num_beams": 2},
        {"candidates": 4, "num_return_sequences": 2},
        {"num_beams": 3, "num_return_sequences": 2},
    ],
}
MOST_ASKED = 8  # of the numbers among decoding options, so that an answer takes milliseconds


def surfaces() -> list[Surface]:
    return [
        Surface(name, functools.partial(_prepare, name), functools.partial(_spoil, name), _answer, check, named=".")
        for name, check in (("infilling", _check_filled), ("conditions", _check_prompts))
    ]


def _prepare(name: str, folder: Path) -> Any:
    import torch

    from mmgen.inference.predictor import Predictor
    from mmgen.model import compose
    from mmgen.recipe.load import load
    from mmgen.registry import installed

    generator = {"type": "any_order" if name == "infilling" else "masked", "max_tokens": 8}
    (folder / "toy.toml").write_text(toys.recipe(generator=generator))
    recipe = load(folder / "toy.toml", installed())[0]
    torch.manual_seed(0)
    model = compose(recipe.backbone, recipe.inputs, recipe.generator, texts=WORDS * 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return {"predictor": Predictor(model, recipe, "second")}


def _spoil(name: str, draw: Random, folder: Path, prepared: Any) -> Path:
    query: dict[str, Any] = {"caption": draw.choice(WORDS)}
    if name == "infilling":
        query["text"] = draw.choice(TEXTS)
    else:
        query |= {"prompt": draw.choice(PROMPTS)} if draw.random() < 0.8 else {}
        query |= {"avoid": draw.choice((WORDS[0], WORDS))} if draw.random() < 0.4 else {}
    body = {"query": query, "options": draw.choice(OPTIONS[name])}
    path = folder / "query.json"
    mutations.write(path, mutations.json_(draw, body, ODD) if draw.random() < 0.8 else json.dumps(body))
    return path


def _answer(path: Path, prepared: Any) -> Any:
    """The answer of `mmgen.load(...).ask(query, **options)`."""
    from mmgen.errors import DataError

    try:
        body = json.loads(path.read_bytes())
        query, options = dict(body["query"]), dict(body["options"])
        numbers = [value for value in options.values() if isinstance(value, int | float) and value == value]
        if any(abs(value) > MOST_ASKED for value in numbers):
            raise DataError("more than is asked here")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DataError("no query") from None
    predictor = prepared["predictor"]
    fields = type(predictor.recipe.decoding).model_fields
    if unknown := [name for name in options if name not in fields]:
        raise DataError(f"no option {unknown[0]!r}")
    return predictor, query, predictor.ask(query, options=predictor.decoding(None, options) if options else None)


def _check_filled(path: Path, content: Any, prepared: Any) -> None:
    """The tokens of the given words are where they were, and each gap has one token."""
    predictor, query, answer = content
    tokenizer = predictor.model.backbone.tokenizer
    assert isinstance(query.get("caption"), str) and {*query} <= {"caption", "text"}, f"{query} was answered"
    if (text := query.get("text")) is None:
        return
    expected: list[int | None] = []
    for number, piece in enumerate(text.split(GAP)):
        expected += [None] * bool(number) + tokenizer(piece.rstrip(), add_special_tokens=False)["input_ids"]
    assert None in expected and tokenizer.unk_token_id not in expected, f"{text!r} was filled"
    for written in answer.texts:
        tokens = list(written.tokens)
        end = predictor.model.backbone.end_id
        tokens = tokens[:-1] if tokens[-1:] == [end] else tokens
        pairs = list(zip(tokens, expected, strict=False))
        assert len(tokens) == len(expected) and all(b in (None, a) for a, b in pairs), f"{written} of {text!r}"


def _check_prompts(path: Path, content: Any, prepared: Any) -> None:
    """Every prompt has its texts, in their order."""
    _, query, answer = content
    assert isinstance(query.get("caption"), str) and {*query} <= {"caption", "prompt", "avoid"}, f"{query} was answered"
    prompts = query.get("prompt")
    prompts = [prompts] if isinstance(prompts, str) else prompts or []
    written = list(dict.fromkeys(text.prompt for text in answer.texts if text.prompt))
    assert written == list(dict.fromkeys(filter(None, prompts))), f"prompts {written} of {prompts}"
    assert answer.texts and all(isinstance(text.text, str) for text in answer.texts)
