"""Some of what a step wrote or predicted, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from ..data.seeds import resolve
from ..progress import padded
from ..tensors import Example, Generation, Prediction
from .rendering import StepRenderer


def samples(
    texts: Sequence[list[Generation]], examples: Sequence[Example], renderer: StepRenderer, count: int = 4
) -> str:
    """Some of the texts, beside the captions or what people wrote."""
    lines = []
    for index in range(0, len(examples), max(1, len(examples) // count)):
        example = examples[index]
        line = renderer.line(resolve(example), texts[index][0])
        lines.append(f"    {padded(line, 42)} <- {example.id}: {_caption(example)}")
    return "\n".join([*lines[:count], *renderer.notes])


def answered(
    predictions: Sequence[Prediction], examples: Sequence[Example], renderer: StepRenderer, count: int = 4
) -> str:
    """Some of the predictions, beside the texts that they are about."""
    lines = []
    for index in range(0, len(examples), max(1, len(examples) // count)):
        example = examples[index]
        line = renderer.line(resolve(example), predictions[index])
        lines.append(f"    {padded(line, 42)} <- {example.id}: {_texts(example)}")
    return "\n".join([*lines[:count], *renderer.notes])


def _texts(example: Example) -> str:
    """The texts among the inputs; keys have no spaces."""
    values = [value[0] if isinstance(value, tuple) and value else value for value in example.inputs.values()]
    return " | ".join(value for value in values if isinstance(value, str) and " " in value)


def _caption(example: Example) -> str:
    """The first text that is among the inputs, or else what people wrote."""
    captions = [value[0] for value in example.inputs.values() if isinstance(value, tuple) and value]
    return captions[0] if captions else f"(people: {example.targets[0]})" if example.targets else ""
