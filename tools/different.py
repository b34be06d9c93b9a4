"""python -m tools.different RUNS --step STEP: n questions about each drawn scene, written in several ways, as a table.

different   of the n questions, those that no earlier one equals, but for case
relevant    of the n: different, and about things of the scene (`mmgen_scenes.grammar`)
discovered  of the n: relevant, and about a thing that the first caption does not mention
things      kinds of things that the relevant questions name
distance    mean distance of two of the questions, 1 less the overlap of their tokens and pairs of neighbours
ms          per scene, on one thread
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from mmgen_scenes.grammar import discovers, is_relevant, mentions

from mmgen.data.different_texts import distance, token_pairs
from mmgen.inference.load import load_run
from mmgen.inference.predictor import Predictor
from mmgen.tensors import Example, Generation

BATCH = 16
COLUMNS = ("different", "relevant", "discovered", "things", "distance", "ms")


def ways_of(n: int) -> Mapping[str, Mapping[str, Any]]:
    """Way -> options of [decoding] for n texts."""
    beams = {"num_beams": 2 * n, "num_beam_groups": n}
    chosen = {f"chosen of {c}, difference {w}": {"candidates": c, "difference": w} for c, w in CHOSEN}
    return {
        "beams": {"num_beams": n},
        **{f"diverse beams, penalty {penalty}": {**beams, "diversity_penalty": penalty} for penalty in (0.5, 1.0, 3.0)},
        "samples": {"do_sample": True},
        "samples, top_p 0.9": {"do_sample": True, "top_p": 0.9},
        **chosen,
    }


CHOSEN = ((20, 0.1), (20, 0.25), (20, 0.5), (50, 0.1))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--step")
    parser.add_argument("--n", type=int, default=5)
    parser.add_argument("--scenes", type=int, default=80)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows: dict[str, list[dict[str, float]]] = {}
    for folder in arguments.runs:
        run = load_run(folder, arguments.step)
        for way, options in ways_of(arguments.n).items():
            rows.setdefault(way, []).append(measure(run, scenes_of(run, arguments.scenes), arguments.n, options))
            print(f"{folder}  {way}  {rows[way][-1]}", flush=True)
    print(table(rows))


def scenes_of(run: Predictor, count: int) -> list[Example]:
    """One example per scene, without prompts."""
    data = (run.recipe.scored_data(run.step) or run.recipe.data).build()
    by_scene = {example.inputs["image"]: example for example in data.split(run.recipe.data.test_split)}
    return [Example(e.id, e.inputs, facts=e.facts) for e in by_scene.values()][:count]


def measure(run: Predictor, examples: Sequence[Example], n: int, options: Mapping[str, Any]) -> dict[str, float]:
    torch.manual_seed(0)
    decoding, before = run.decoding(n, options), time.perf_counter()
    texts = [
        text
        for first in range(0, len(examples), BATCH)
        for text in write(run, examples[first : first + BATCH], decoding)
    ]
    seconds = time.perf_counter() - before
    judged = [judge(row, example, run) for row, example in zip(texts, examples, strict=True)]
    return {name: fmean(row[name] for row in judged) for name in COLUMNS[:-1]} | {"ms": 1000 * seconds / len(examples)}


def write(run: Predictor, examples: Sequence[Example], decoding: Any) -> list[list[Generation]]:
    return run.generate(examples, decoding)


def judge(texts: Sequence[Generation], example: Example, run: Predictor) -> dict[str, float]:
    things, caption, end = (
        example.facts["things"],
        example.facts["captions"][0],
        run.model.backbone.end_id,
    )
    different = list(dict.fromkeys(text.text.casefold() for text in texts))
    relevant = [text for text in different if is_relevant(text, things)]
    pairs = combinations([token_pairs(text.tokens, end) for text in texts], 2)
    return {
        "different": len(different),
        "relevant": len(relevant),
        "discovered": sum(discovers(text, things, caption) for text in relevant),
        "things": len({mention.kind for text in relevant for mention in mentions(text)}),
        "distance": fmean(distance(*pair) for pair in pairs),
    }


def table(rows: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """The means over runs, in Markdown."""
    lines = [f"| way | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    for way, values in rows.items():
        cells = [f"{fmean(row[name] for row in values):.{0 if name == 'ms' else 2}f}" for name in COLUMNS]
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
