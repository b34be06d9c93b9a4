"""python -m tools.data_pass: how long a run walks through made-up examples before its first update, and their size.

    python -m tools.data_pass --examples 1000000 --alternatives 1

It prints the seconds of processor time to make every example once and tokenise its texts, of a first start, and of a
second start with the files that the first has written; and the bytes of an example and epoch.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Literal

from mmgen_encoders import Bert
from mmgen_masked import Masked
from mmgen_text import Text

from mmgen.configs import DatasetConfig
from mmgen.data.collate import Collator
from mmgen.data.datasets import Datasets
from mmgen.data.example_sizes import chunks
from mmgen.data.plan import DataStream, Plan, PlanOptions
from mmgen.data.unread_text import warn_of_unread_text
from mmgen.parts import Dataset
from mmgen.progress import Progress
from mmgen.recipe.tables import Recipe, Step
from mmgen.runs.data_pass import DataPass
from mmgen.storage.data_cache import DataCache
from mmgen.storage.model_files import build_model
from mmgen.storage.plan_file import make_plan
from mmgen.storage.run_folder import RunFolder
from mmgen.tensors import Example

WORDS = "red blue small large round old ball box dog cat house tree left right near behind of the a what where".split()


class MadeUp(DatasetConfig):
    """Examples of a caption and a question, each made when it is asked for."""

    type: Literal["made_up"] = "made_up"
    examples: int
    alternatives: int = 1

    def build(self) -> Dataset:
        return MadeUpDataset(self)


class MadeUpDataset(Dataset):
    def __init__(self, config: MadeUp) -> None:
        self.config = config

    def splits(self) -> tuple[str, ...]:
        return ("train", "val", "test")

    def split(self, name: str) -> Sequence[Example]:
        return MadeUpExamples(name, self.config.examples if name == "train" else 100, self.config.alternatives)

    def describe(self) -> dict[str, str]:
        return {"name": "made up", "licence": "free", "source": "tools/data_pass.py"}

    def fingerprint(self) -> str:
        return self.config.model_dump_json()


class MadeUpExamples(Sequence[Example]):
    def __init__(self, split: str, count: int, alternatives: int) -> None:
        self.split, self.count, self.alternatives = split, count, alternatives

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        captions = tuple(self._text(index, 7 + number + index % 5) for number in range(self.alternatives))
        shown = captions[0] if self.alternatives == 1 else captions
        return Example(f"{self.split}-{index}", {"caption": shown}, (f"{self._text(index, 5)} ?",))

    def _text(self, index: int, length: int) -> str:
        return " ".join([WORDS[(index * (place + 3) + place) % len(WORDS)] for place in range(length)])


class Spoken(Progress):
    def say(self, text: str) -> None:
        print(f"  {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=1_000_000)
    parser.add_argument("--alternatives", type=int, default=1, help="captions of an example")
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recipe = Recipe(
            name="made_up",
            output=folder,
            backbone=Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=2),
            inputs={"caption": Text(fields=("caption",))},
            generator=Masked(max_tokens=20),
            steps={"first": Step(inputs=("caption",), train=("backbone",))},
            data=MadeUp(examples=options.examples, alternatives=options.alternatives),
        )
        small = recipe.model_copy(update={"data": MadeUp(examples=1000)})
        model = build_model(small, Datasets(small))
        with timed("making every example and tokenising its texts") as baseline:
            tokenise(model, recipe)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with timed("first start") as first:
            start(model, recipe, options.epochs)
        with timed("second start") as second:
            plan = start(model, recipe, options.epochs)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        updates = plan.updates
        columns = (updates.indices, updates.epochs, updates.sources, updates.micro_ends, updates.ends, updates.pairs)
        held = sum(column.itemsize * len(column) for column in columns) / len(updates.indices)
        print(f"first start: {first[0] / baseline[0]:.2f} times as long; second start: {second[0]:.1f} s")
        print(
            f"a plan holds {held:.1f} bytes for each example and epoch; the process grew by {grown >> 10:,} MB at most"
        )


@contextmanager
def timed(what: str):
    seconds: list[float] = []
    began = time.process_time()
    yield seconds
    seconds.append(time.process_time() - began)
    print(f"{what}: {seconds[0]:.1f} s")


def tokenise(model, recipe: Recipe) -> None:
    """Make every example once and tokenise its texts, some thousand at a time."""
    for chunk in chunks(recipe.data.build().split("train")):
        texts = [text for example in chunk for text in (*example.targets, *recipe.inputs["caption"].texts(example))]
        model.backbone.tokenizer(texts, add_special_tokens=False, verbose=False)


def start(model, recipe: Recipe, epochs: int) -> Plan:
    """What a run does with its data before its first update."""
    datasets, folder = Datasets(recipe), RunFolder.of(recipe)
    cache = DataCache(folder, Spoken())
    cache.recall_examples(datasets)
    datasets.fingerprint()
    cache.keep_examples(datasets)
    DataPass(recipe, model, datasets, cache, Spoken()).run(["first"])
    warn_of_unread_text(recipe, model, datasets, ["first"], Spoken())
    (source,) = datasets.sources("first").values()
    options = PlanOptions(seed=0, step="first", epochs=epochs, batch_size=128, micro_batch_size=128, length_bucket=16)
    return make_plan(folder.step("first"), [DataStream(source, Collator(model, ["caption"]))], options, writes=True)


if __name__ == "__main__":
    main()
