"""python -m tools.ways runs/writing: one encoder, trained and written with in several ways, as a table and a plot.

RUNS has a folder per profile of recipes/writing.toml, each with folders of seeds. Every way of writing writes for the
test examples. The files are RUNS/ways.json, ways.md and ways.svg; rows that ways.json has are kept.

    bound      training loss per token on the test examples: exact from left to right, else an upper bound, the mean
               over draws of noise
    passes     of the encoder per text, the inputs' included, and ms per text on one thread, for texts one at a time
    restored   of the words that were left out, with half of the words given: the share that was written again
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import torch
from mmgen_any_order import AnyOrder
from mmgen_any_order.generator import BlocksOfOneGenerator

from mmgen.data.collate import Collator
from mmgen.evaluation import score
from mmgen.inference.load import load_run
from mmgen.inference.predictor import Predictor
from mmgen.plotting import colour, figure, save
from mmgen.scoring.intervals import bootstrap, groups_of, interval, means_over_examples
from mmgen.tensors import Example, Generation

DRAWS, TIMED, BATCH = 4, 48, 32
WAYS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {  # profile -> way -> options of [decoding]
    "left_to_right": {"left to right": {}},
    "causal": {"causal": {}},
    "any_order": {
        **{f"mask-predict, {n} step{'s' * (n > 1)}": {"steps": n, "remask": True} for n in (1, 2, 4, 10)},
        "any order": {},
        **{f"any order, {n} steps": {"steps": n} for n in (2, 4)},
        "any order, threshold 0.9": {"threshold": 0.9},
        "any order, threshold 0.5": {"threshold": 0.5},
        "any order, from the left": {"order": "left_to_right"},
        "any order, random": {"order": "random"},
    },
    "blocks": {
        "blocks of 4": {},
        "blocks of 4, 2 steps": {"steps": 2},
        "blocks of 4, threshold 0.9": {"threshold": 0.9},
    },
}
INFILLED = {  # profile -> its row of infilling, with the defaults of [decoding]
    "left_to_right": "infilling, left to right",
    "any_order": "infilling, any order",
    "blocks": "infilling, blocks of 4",
}
COLUMNS = ("relevance", "discovery", "BLEU-4", "CIDEr", "distinct", "restored", "bound", "passes", "ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--step", default="both")
    runs, step = (arguments := parser.parse_args()).runs, arguments.step
    torch.set_num_threads(1)
    file = runs / "ways.json"
    rows: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    for profile in WAYS:
        for folder in sorted((runs / profile).glob("seed-*")):
            if not (folder / "steps" / step / "scores.json").exists():
                continue
            for way, row in measure(load_run(folder, step), profile, {*rows.get(folder.name, {})}):
                rows.setdefault(folder.name, {})[way] = row
                file.write_text(json.dumps(rows, indent=1))
                print(
                    f"{folder.name}  {way}  " + "  ".join(f"{k} {v:.2f}" for k, v in row["values"].items()), flush=True
                )
    (runs / "ways.md").write_text(table(rows))
    plot(rows, runs / "ways")
    print(table(rows), end="")


def measure(run: Predictor, profile: str, known: set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of one trained step that are not known yet."""
    data = run.recipe.data.build()
    examples = list(data.split(run.recipe.data.test_split))
    metrics = {name: score.build_metric(name, config, [data]) for name, config in run.recipe.metrics.items()}
    bound = None

    def judged(texts: Sequence[Generation]) -> dict[str, Any]:
        scores = score.merge_metrics({name: metric.score(texts, examples) for name, metric in metrics.items()})
        columns = means_over_examples(scores)
        groups = groups_of(examples)
        intervals = {name: interval(means) for name, means in bootstrap(columns, groups, 1000, 0).items()}
        values = {name: scores.values[name] for name in COLUMNS if scores.values.get(name) is not None}
        return {"values": values, "intervals": {name: intervals[name] for name in values if name in intervals}}

    for way, options in WAYS[profile].items():
        if way in known:
            continue
        bound = loss_per_token(run, examples) if bound is None else bound
        decoding = type(run.recipe.decoding)(**options)
        row = judged([texts[0] for texts in run.generate(examples, decoding)])
        row["values"] |= {"bound": bound, **cost(run, examples[:TIMED], decoding)}
        yield way, row
    way = INFILLED.get(profile)
    if way is not None and way not in known:
        gapped = half_given(run, examples)
        fill = from_the_left(run) if profile == "left_to_right" else run
        options = AnyOrder.decoding() if profile == "left_to_right" else type(run.recipe.decoding)()
        texts = [answer.texts[0] for answer in fill.answers([example for example, _ in gapped], options, BATCH)]
        row = judged(texts)
        hits = [
            word == expected
            for text, (_, gaps) in zip(texts, gapped, strict=True)
            for word, expected in restored(text, gaps, run.model.backbone)
        ]
        row["values"] |= {
            "restored": 100 * statistics.fmean(hits),
            **cost(fill, [e for e, _ in gapped[:TIMED]], options),
        }
        yield way, row


def cost(run: Predictor, examples: Sequence[Example], decoding: Any) -> dict[str, float]:
    """Passes and milliseconds per text, one text at a time; the median of the texts' times."""
    passes = 0

    def count(*_: object) -> None:
        nonlocal passes
        passes += 1

    seconds = []
    fast = decoding.model_copy(update={"trace": False}) if hasattr(decoding, "trace") else decoding
    hook = run.model.backbone.model.base_model.register_forward_hook(count)
    try:
        for example in examples:
            begin = time.perf_counter()
            list(run.answers([example], fast, 1))
            seconds.append(time.perf_counter() - begin)
    finally:
        hook.remove()
    return {"passes": passes / len(examples), "ms": 1000 * statistics.median(seconds)}


@torch.inference_mode()
def loss_per_token(run: Predictor, examples: Sequence[Example]) -> float:
    collate = Collator(run.model, tuple(run.names.inputs))
    draws = DRAWS if run.recipe.generator.type == "any_order" else 1
    total = count = 0.0
    for draw in range(draws):
        for first in range(0, len(examples), BATCH):
            chosen = examples[first : first + BATCH]
            loss = run.model(collate(chosen, [f"draw {draw}"] * len(chosen)))
            total, count = total + float(loss.sums["generator.loss"]), count + loss.counts["generator.loss"]
    return total / count


def half_given(run: Predictor, examples: Sequence[Example]) -> list[tuple[Example, list[list[int]]]]:
    """Examples whose first reference is given with half of its words left out, and the tokens of each word: those of a
    gap, or none for a word that is given."""
    gapped = []
    for example in examples:
        words = example.targets[0].split()
        missing = {*random.Random(example.id).sample(range(len(words)), (len(words) + 1) // 2)}
        tokens = [run.model.backbone.encode_text(word) for word in words]
        texts = [" ".join(["[MASK]"] * len(tokens[n])) if n in missing else word for n, word in enumerate(words)]
        partial = Example(example.id, example.inputs, (), example.facts, {"text": " ".join(texts)})
        gapped.append((partial, [ids if n in missing else [-1] * len(ids) for n, ids in enumerate(tokens)]))
    return gapped


def restored(text: Generation, gaps: Sequence[Sequence[int]], backbone: Any) -> Iterator[tuple[list[int], list[int]]]:
    """The tokens at each gap, and the tokens that were left out."""
    place = 0
    for ids in gaps:
        if ids[0] >= 0:
            yield [*text.tokens[place : place + len(ids)]], [*ids]
        place += len(ids)


def from_the_left(run: Predictor) -> Predictor:
    """The same weights, filling gaps from left to right."""
    tokens = run.recipe.generator.max_tokens
    config = AnyOrder(block=1, length="end", max_tokens=tokens)
    model = load_run(run.folder.path, run.step).model
    model.generator = BlocksOfOneGenerator(config, model.backbone)
    recipe = run.recipe.model_copy(update={"generator": config, "decoding": config.decoding()})
    return Predictor(model, recipe, run.step, run.folder)


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """A row per way: of one seed, the value and its 95 % interval over the test pictures; of several, the mean over
    seeds and the lowest and highest."""
    seeds = [*rows.values()]
    ways = [way for profile in WAYS for way in WAYS[profile]] + [*INFILLED.values()]
    ways = [way for way in ways if any(way in seed for seed in seeds)]
    columns = [name for name in COLUMNS if any(name in row["values"] for seed in seeds for row in seed.values())]
    lines = [f"| way | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    for way in ways:
        measured = [seed[way] for seed in seeds if way in seed]
        lines.append(f"| {way} | {' | '.join(cell(name, measured) for name in columns)} |")
    return "\n".join(lines) + "\n"


def cell(name: str, measured: Sequence[Mapping[str, Any]]) -> str:
    values = [row["values"][name] for row in measured if name in row["values"]]
    if not values:
        return "-"
    digits = 2 if name == "bound" else 1
    mean = f"{statistics.fmean(values):.{digits}f}"
    if name in ("passes", "ms"):
        return mean
    low, high = (min(values), max(values)) if len(values) > 1 else measured[0]["intervals"].get(name, (0, 0))
    return f"{mean} ({low:.{digits}f}-{high:.{digits}f})" if high > low else mean


def plot(rows: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Quality over passes, a point per way: relevance where the truth is known, else CIDEr."""
    known = {name for seed in rows.values() for row in seed.values() for name in row["values"]}
    quality = "relevance" if "relevance" in known else "CIDEr"
    with figure(6.4, 4.2, salt="ways") as drawing:
        axes = drawing.add_subplot()
        labels: list[tuple[str, tuple[float, float]]] = []
        for number, profile in enumerate(WAYS):
            points = {
                way: tuple(
                    statistics.fmean(row["values"][name] for row in measured) for name in ("passes", "relevance")
                )
                for way in WAYS[profile]
                if (measured := [seed[way] for seed in rows.values() if way in seed])
            }
            labels += [(way, (point[0], point[1])) for way, point in points.items()]
            if points:
                axes.plot(
                    *zip(*points.values(), strict=True), "o", color=colour(number), label=profile.replace("_", " ")
                )
        axes.set_xlabel("passes per text")
        axes.set_ylabel("relevance, %" if quality == "relevance" else quality)
        axes.legend(frameon=False, fontsize=8)
        place_labels(axes, labels)
        save(drawing, path)


def place_labels(axes: Any, labels: Sequence[tuple[str, tuple[float, float]]]) -> None:
    """Write each label beside its point, at the first of some places where it covers neither a point nor a label."""
    from matplotlib.transforms import Bbox

    axes.get_figure().draw_without_rendering()  # the layout of the axes is known afterwards
    points = axes.transData.transform([point for _, point in labels])
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in points]
    for label, point in labels:
        for rise, side in product((0, 8, -8, 16, -16, 24, -24), (1, -1)):
            text = axes.annotate(
                label,
                point,
                xytext=(7 * side, rise - 2),
                textcoords="offset points",
                fontsize=6,
                ha="left" if side > 0 else "right",
            )
            box = text.get_window_extent()
            if (
                axes.bbox.x0 <= box.x0
                and box.x1 <= axes.bbox.x1
                and not any(box.overlaps(neighbour) for neighbour in taken)
            ):
                taken.append(box)
                break
            text.remove()


if __name__ == "__main__":
    main()
