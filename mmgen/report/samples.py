"""Samples of a step's texts or predictions, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..configs import EmbedderConfig
from ..data.seeds import resolve
from ..examples import Example, Generation
from ..progress import padded
from .rendering import Answer, StepRenderer


def samples(
    answers: Sequence[Answer],
    examples: Sequence[Example],
    renderer: StepRenderer,
    inputs: Iterable[EmbedderConfig],
    count: int = 4,
) -> str:
    """Some of a step's answers, one per example: predictions next to the texts that `inputs` read, texts next to the
    first of these or a reference text."""
    lines = []
    for index in range(0, len(examples), max(1, len(examples) // count)):
        example, answer = resolve(examples[index]), answers[index]
        line = renderer.line(example, answer)
        texts = list(dict.fromkeys(text for config in inputs for text in config.texts(example)))
        if isinstance(answer, Generation):
            texts = texts[:1] or [f"(people: {text})" for text in example.targets[:1]]
        lines.append(f"    {padded(line, 42)} <- {example.id}: {' | '.join(texts)}")
    return "\n".join([*lines[:count], *renderer.notes])
