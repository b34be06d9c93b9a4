"""Samples of a step's texts or predictions, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from ..data.seeds import resolve
from ..progress import padded
from ..tensors import Example, Generation
from .rendering import Answer, StepRenderer


def samples(answers: Sequence[Answer], examples: Sequence[Example], renderer: StepRenderer, count: int = 4) -> str:
    """Some of a step's answers, one per example: predictions next to their input texts, texts next to the captions or
    the reference texts."""
    lines = []
    for index in range(0, len(examples), max(1, len(examples) // count)):
        example, answer = examples[index], answers[index]
        line = renderer.line(resolve(example), answer)
        context = _first_text(example) if isinstance(answer, Generation) else _input_texts(example)
        lines.append(f"    {padded(line, 42)} <- {example.id}: {context}")
    return "\n".join([*lines[:count], *renderer.notes])


def _input_texts(example: Example) -> str:
    """The texts among the inputs. Keys have no spaces."""
    values = [value[0] if isinstance(value, tuple) and value else value for value in example.inputs.values()]
    return " | ".join(value for value in values if isinstance(value, str) and " " in value)


def _first_text(example: Example) -> str:
    """The first text among the inputs, or else a reference text."""
    captions = [value[0] for value in example.inputs.values() if isinstance(value, tuple) and value]
    return captions[0] if captions else f"(people: {example.targets[0]})" if example.targets else ""
