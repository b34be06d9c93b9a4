"""Some of what a step wrote or predicted, for the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..progress import padded
from ..tensors import Example, Generation, Prediction
from .predicted import truth_of


def samples(texts: Sequence[list[Generation]], examples: Sequence[Example], count: int = 4) -> str:
    """Some of the texts, beside the captions or what people wrote."""
    lines = []
    for index in range(0, len(examples), max(1, len(examples) // count)):
        example = examples[index]
        lines.append(f"    {padded(texts[index][0].text, 42)} <- {example.id}: {_caption(example)}")
    return "\n".join(lines[:count])


def answered(made: Sequence[Prediction], examples: Sequence[Example], count: int = 4) -> str:
    """Some of the predictions, beside the texts that they are about."""
    lines = []
    for index in range(0, len(examples), max(1, len(examples) // count)):
        value, example = made[index].value, examples[index]
        choices = truth_of(example.labels, "choice").choices if isinstance(value, dict) and "choice" in value else ()
        shown = choices[value["choice"]] if choices else brief(value)
        lines.append(f"    {padded(shown, 42)} <- {example.id}: {_texts(example)}")
    return "\n".join(lines[:count])


def brief(value: Any) -> str:
    """A prediction without its probabilities: a label, a choice, or where the first box is."""
    if isinstance(value, list) and value:
        return corners(value[0]) + (f" and {len(value) - 1} more" if len(value) > 1 else "")
    if isinstance(value, dict) and "box" in value:
        return corners(value["box"])
    named = [value[name] for name in ("label", "choice") if isinstance(value, dict) and name in value]
    return named[0] if named and isinstance(named[0], str) else json.dumps((named or [value])[0], ensure_ascii=False)


def corners(box: Sequence[float]) -> str:
    """A box: its left, upper, right and lower side, as shares of the picture."""
    return f"[{', '.join(f'{corner:.3f}' for corner in box)}]"


def _texts(example: Example) -> str:
    """The texts among the inputs; keys have no spaces."""
    values = [value[0] if isinstance(value, tuple) and value else value for value in example.inputs.values()]
    return " | ".join(value for value in values if isinstance(value, str) and " " in value)


def _caption(example: Example) -> str:
    """The first text that is among the inputs, or else what people wrote."""
    captions = [value[0] for value in example.inputs.values() if isinstance(value, tuple) and value]
    return captions[0] if captions else f"(people: {example.targets[0]})" if example.targets else ""
