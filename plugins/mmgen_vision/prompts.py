"""Examples of one prompt each, for the splits of data sets that are scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mmgen.configs import PROMPT
from mmgen.examples import Example
from mmgen.prompts import prompts_of


def one_per_prompt(examples: Iterable[Example]) -> Iterator[Example]:
    """Examples of one prompt each, as a split that is scored needs them, with the prompt's kind and value as facts."""
    for example in examples:
        prompts = prompts_of(example)
        for number, prompt in enumerate(dict.fromkeys(prompts), 1):
            targets = tuple(text for text, its in zip(example.targets, prompts, strict=True) if its == prompt)
            kind, _, value = prompt.partition(": ") if ": " in prompt else ("", "", prompt)
            facts = {**example.facts, "prompt_kind": kind, "prompt_value": value}
            labels = {**example.labels, PROMPT: (prompt,) * len(targets)}
            yield replace(example, id=f"{example.id}:{number}", targets=targets, facts=facts, labels=labels)
