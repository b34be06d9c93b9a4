"""Compare ways to write with trained runs: a table in Markdown, of means over runs with the lowest and highest.

    python -m tools.writing runs/writing [--step both]
    python -m tools.writing runs/writing/left_to_right/seed-* --n 5 [--scenes 80]

The first writes a text for every test example of all runs in the folder, in ways that depend on their profiles of
recipes/writing.toml. Beside scores of the recipe:

    bound       training loss per token on the test examples: exact from left to right, else an upper bound, the mean
                over draws of noise
    passes, ms  of the encoder per text, the inputs' included, and time per text; one text at a time, on one thread
    restored    of the words that were left out, with half of the words given: the share that was written again

The second writes n questions about every drawn scene:

    different   of the n questions, those that no earlier one equals, but for case
    relevant    of the n: different, and about things of the scene (`mmgen_scenes.grammar`)
    discovered  of the n: relevant, and about a thing that the first caption does not mention
    things      kinds of things that the relevant questions name
    distance    mean distance of two of the questions, 1 less the overlap of their tokens and pairs of neighbours
    ms          per scene, on one thread
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from mmgen_generators import AnyOrder
from mmgen_generators.any_order import BlocksOfOneGenerator
from mmgen_scenes.grammar import discovers, is_relevant, mentions

import mmgen
from mmgen.data.collate import Collator
from mmgen.data.part_checks import distance, token_pairs
from mmgen.evaluation.score import build_metric, merge_metrics
from mmgen.examples import Example, Generation
from mmgen.inference.predictor import Predictor

Row = dict[str, float]  # column -> value of one run

SCORES = ("relevance", "discovery", "BLEU-4", "CIDEr", "distinct")
DRAWS, TIMED, BATCH = 4, 48, 32
WAYS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {  # profile -> way -> options of [decoding]
    "any_order": {
        **{f"mask-predict, steps: {steps}": {"steps": steps, "remask": True} for steps in (1, 2, 4, 10)},
        "any order": {},
        **{f"any order, steps: {steps}": {"steps": steps} for steps in (2, 4)},
        **{f"any order, threshold {threshold}": {"threshold": threshold} for threshold in (0.9, 0.5)},
        **{f"any order, {order}": {"order": order} for order in ("left_to_right", "random")},
    },
    "blocks": {"blocks": {}, "blocks, steps: 2": {"steps": 2}, "blocks, threshold 0.9": {"threshold": 0.9}},
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.writing", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--step", default="both")
    parser.add_argument("--n", type=int, default=1, help="questions about every scene; 1: a text for every example")
    parser.add_argument("--scenes", type=int, default=80)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows: dict[str, list[Row]] = {}
    for folder in [run for path in options.runs for run in sorted(path.glob("*/seed-*")) or [path]]:
        run, profile = mmgen.load(folder, options.step), folder.resolve().parent.name.removeprefix("vqg_coco_")
        measured = measure_different(run, options.n, options.scenes) if options.n > 1 else measure_ways(run, profile)
        for way, row in measured:
            rows.setdefault(way, []).append(row)
            print(folder, way, *(f"{name} {value:.2f}" for name, value in row.items()), sep="  ", flush=True)
    print(table(rows))


def table(rows: Mapping[str, Sequence[Row]]) -> str:
    """A line per way."""
    columns = list(dict.fromkeys(name for measured in rows.values() for row in measured for name in row))
    lines = [f"| way | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    for way, measured in rows.items():
        lines.append(f"| {way} | {' | '.join(cell([row[n] for row in measured if n in row]) for n in columns)} |")
    return "\n".join(lines)


def cell(values: Sequence[float]) -> str:
    if not values:
        return "-"
    digits = 1 if fmean(values) >= 10 else 2
    mean, low, high = (f"{value:.{digits}f}" for value in (fmean(values), min(values), max(values)))
    return mean if low == high else f"{mean} ({low}-{high})"


def measure_ways(run: Predictor, profile: str) -> Iterator[tuple[str, Row]]:
    """A row for every way to write of a profile, and one for filling gaps."""
    data = run.recipe.data.build()
    examples = list(data.split(run.recipe.data.test_split))
    metrics = {name: build_metric(name, config, [data]) for name, config in run.recipe.metrics.items()}

    def scores(texts: Sequence[Generation]) -> Row:
        values = merge_metrics({name: metric.score(texts, examples) for name, metric in metrics.items()}).values
        return {name: values[name] for name in SCORES if values.get(name) is not None}

    bound = loss_per_token(run, examples)
    for way, options in WAYS.get(profile, {profile: {}}).items():
        decoding = type(run.recipe.decoding)(**options)
        texts = [texts[0] for texts in mmgen.generate(run.model, examples, decoding, run.names.inputs)]
        yield way, {**scores(texts), "bound": bound, **cost(run, examples[:TIMED], decoding)}
    if profile == "causal":  # it does not see what follows a gap
        return
    gapped = [leave_out_half(example, run.model.backbone) for example in examples]
    run = from_the_left(run) if profile == "left_to_right" else run
    partial, decoding = [example for example, _ in gapped], run.recipe.decoding
    texts = [answer.texts[0] for answer in run.answers(partial, decoding, BATCH)]
    hits = [
        tuple(text.tokens[place : place + len(ids)]) == ids
        for text, (_, gaps) in zip(texts, gapped, strict=True)
        for place, ids in gaps
    ]
    yield (
        f"infilling, {profile}",
        {**scores(texts), "restored": 100 * fmean(hits), **cost(run, partial[:TIMED], decoding)},
    )


def cost(run: Predictor, examples: Sequence[Example], decoding: Any) -> Row:
    """Passes and milliseconds per text, one text at a time; the median of the texts' times."""
    passes, seconds = 0, []

    def count(*_: object) -> None:
        nonlocal passes
        passes += 1

    hook = run.model.backbone.model.base_model.register_forward_hook(count)
    for example in examples:
        begin = time.perf_counter()
        list(run.answers([example], decoding, 1))
        seconds.append(time.perf_counter() - begin)
    hook.remove()
    return {"passes": passes / len(examples), "ms": 1000 * median(seconds)}


@torch.inference_mode()
def loss_per_token(run: Predictor, examples: Sequence[Example]) -> float:
    collate = Collator(run.model, tuple(run.names.inputs))
    total = count = 0.0
    for draw in range(DRAWS if run.recipe.generator.type == "any_order" else 1):
        for first in range(0, len(examples), BATCH):
            batch = examples[first : first + BATCH]
            loss = run.model(collate(batch, [f"draw {draw}"] * len(batch)))
            total, count = total + float(loss.sums["generator.loss"]), count + loss.counts["generator.loss"]
    return total / count


def leave_out_half(example: Example, backbone: Any) -> tuple[Example, list[tuple[int, tuple[int, ...]]]]:
    """An example whose first reference is given with half of its words left out; and the place and tokens of each."""
    words, gaps, place = example.targets[0].split(), [], 0
    missing = random.Random(example.id).sample(range(len(words)), (len(words) + 1) // 2)
    for number, ids in enumerate([tuple(backbone.encode_text(word)) for word in words]):
        if number in missing:
            gaps.append((place, ids))
            words[number] = " ".join(["[MASK]"] * len(ids))
        place += len(ids)
    return Example(example.id, example.inputs, (), example.facts, {"text": " ".join(words)}), gaps


def from_the_left(run: Predictor) -> Predictor:
    """The same weights, filling gaps from left to right."""
    config = AnyOrder(block=1, length="end", max_tokens=run.recipe.generator.max_tokens)
    model = mmgen.load(run.folder.path, run.step).model
    model.generator = BlocksOfOneGenerator(config, model.backbone)
    recipe = run.recipe.model_copy(update={"generator": config, "decoding": config.decoding()})
    return Predictor(model, recipe, run.step, run.folder)


def measure_different(run: Predictor, n: int, scenes: int) -> Iterator[tuple[str, Row]]:
    """A row for every way to write n different questions about a scene, without prompts."""
    data = (run.recipe.scored_data(run.step) or run.recipe.data).build()
    by_scene = {example.inputs["image"]: example for example in data.split(run.recipe.data.test_split)}
    examples = [Example(e.id, e.inputs, facts=e.facts) for e in by_scene.values()][:scenes]
    ways: dict[str, dict[str, Any]] = {"beams": {"num_beams": n}}
    ways |= {"samples": {"do_sample": True}, "samples, top_p 0.9": {"do_sample": True, "top_p": 0.9}}
    for candidates, weight in ((20, 0.1), (20, 0.25), (20, 0.5), (50, 0.1)):
        ways[f"chosen of {candidates}, difference {weight}"] = {"candidates": candidates, "difference": weight}
    for way, options in ways.items():
        torch.manual_seed(0)
        begin = time.perf_counter()
        texts = mmgen.generate(run.model, examples, run.decoding(n, options), run.names.inputs)
        seconds = time.perf_counter() - begin
        judged = [judge(row, example, run.model.backbone.end_id) for row, example in zip(texts, examples, strict=True)]
        means = {name: fmean(row[name] for row in judged) for name in judged[0]}
        yield way, {**means, "ms": 1000 * seconds / len(examples)}


def judge(texts: Sequence[Generation], example: Example, end_id: int) -> Row:
    """What is counted of the questions about one scene."""
    things, caption = example.facts["things"], example.facts["captions"][0]
    different = list(dict.fromkeys(text.text.casefold() for text in texts))
    relevant = [text for text in different if is_relevant(text, things)]
    pairs = combinations([token_pairs(text.tokens, end_id) for text in texts], 2)
    return {
        "different": len(different),
        "relevant": len(relevant),
        "discovered": sum(discovers(text, things, caption) for text in relevant),
        "things": len({mention.kind for text in relevant for mention in mentions(text)}),
        "distance": fmean(distance(*pair) for pair in pairs),
    }


if __name__ == "__main__":
    main()
