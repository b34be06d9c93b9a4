"""Correct parts of each kind, suites of changed ones, and what a suite finds."""

import json
import unittest
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from mmgen_generators import Masked
from mmgen_generators.masked import MaskedGenerator
from pydantic import Field
from torch import nn

import mmgen
import mmgen.testing
from mmgen.cards import Card
from mmgen.errors import DataError, MmgenError
from mmgen.examples import Example, Prediction, Scores
from mmgen.objectives import Objective, TargetReader
from mmgen.parts import Callback, Extractor, FailedImage, Metric, Probe, ProbeResult, Record, Renderer
from mmgen.tensors import Loss, Targets
from mmgen.testing import Tiny, TinyBackbone, Toy, ToyDataset, Words
from mmgen.testing.toy import WordsEmbedder

CAPTIONS = [Example("one", {"caption": "a red cat"}), Example("two", {"caption": "a blue boat near the water"})]


class Labels(TargetReader):
    """Whether the first target is about a red thing."""

    def collate(self, rows):
        labels = torch.tensor([float("red" in example.targets[0]) for example in rows.examples])
        return Targets({"loss": len(labels)}, {"labels": labels})


class Judge(Objective):
    """One number from the first state."""

    reads = Labels

    def __init__(self, backbone):
        super().__init__()
        self.reader, self.head = self.reads(), nn.Linear(backbone.hidden_size, 1)

    def forward(self, model, batch, targets):
        logits = self.head(model.encode(batch).first).squeeze(-1)
        return Loss({"loss": F.binary_cross_entropy_with_logits(logits, targets.labels["labels"], reduction="sum")})

    def predict(self, model, batch, targets):
        scores = self.head(model.encode(batch).first).squeeze(-1).tolist()
        return [Prediction(id_, score > 0, score) for id_, score in zip(batch.ids, scores, strict=True)]


class Counted(Metric):
    """The share of texts that are among the references."""

    def score(self, generations, examples):
        hits = [float(text.text in example.targets) for text, example in zip(generations, examples, strict=True)]
        return Scores({"hits": sum(hits) / len(hits)}, {"hits": hits})


class Mean(Extractor):
    """The mean colour of each box."""

    fingerprint = {"name": "mean"}

    def records(self, source, skip=frozenset()):
        for picture in source:
            if picture.key not in skip:
                yield self.record(picture)

    def record(self, picture):
        try:
            features = [np.asarray(picture.load(), np.float32).mean((0, 1))] * len(picture.boxes)
        except DataError as error:
            return FailedImage(picture.key, str(error))
        return Record(picture.key, np.stack(features), np.asarray(picture.boxes, np.float32))


class Sure(Probe):
    """The surest text of every step."""

    def run(self, subject, out):
        if not subject.examples:
            raise DataError("sure: there are no examples to look at")
        rows = [["step", "surest"]]
        for step in subject.steps:
            written = step.generate(step.load(), subject.examples)
            rows.append([step.name, max(text.score for (text,) in written)])
        (out / "table.json").write_text(json.dumps(rows))
        (out / "plot.svg").write_text("<svg/>")
        return ProbeResult({"How sure": rows}, {"How sure": "plot.svg"})


class Shown(Renderer):
    """A text as it is."""

    def card(self, example, prediction):
        return Card(line=prediction.text)

    def line(self, example, prediction):
        return prediction.text


class Watching(Callback):
    """Draws from a generator of its own."""

    def on_update(self, step, record):
        torch.rand(1, generator=torch.Generator())


class AnyBackbone(Tiny):
    def build(self, texts=None, folder=None):
        return self.change(super().build(texts, folder))


class AnyEmbedder(Words):
    def build(self, backbone):
        return self.change(super().build(backbone))


class AnyGenerator(Masked):
    max_tokens: int = Field(8, description="tokens of a text")

    def build(self, backbone):
        return self.change(super().build(backbone))


class AnyObjective(mmgen.ObjectiveConfig):
    type: Literal["judge"] = "judge"
    gives = "label"

    def build(self, backbone, vocabularies):
        return self.change(Judge(backbone))


def without_arguments(base, part):
    """The config class of a part that is built from nothing."""

    class Any(base):
        type: Literal["any"] = "any"

        def build(self):
            return self.change(part())

    return Any


PARTS = {  # kind -> class of the correct part, class of its config, members of its suite
    "Backbone": (TinyBackbone, AnyBackbone, {}),
    "Embedder": (WordsEmbedder, AnyEmbedder, {"examples": lambda self: CAPTIONS}),
    "Generator": (MaskedGenerator, AnyGenerator, {}),
    "Objective": (Judge, AnyObjective, {}),
    "Dataset": (ToyDataset, without_arguments(Toy, ToyDataset), {}),
    "Metric": (Counted, without_arguments(mmgen.MetricConfig, Counted), {}),
    "Extractor": (Mean, without_arguments(mmgen.ExtractorConfig, Mean), {}),
    "Probe": (Sure, without_arguments(mmgen.ProbeConfig, Sure), {}),
    "Renderer": (Shown, without_arguments(mmgen.RendererConfig, Shown), {}),
    "Callback": (Watching, without_arguments(mmgen.CallbackConfig, Watching), {}),
}


def suite(kind, config=(), reader=(), **members):
    """The suite of a part that differs from the correct one in `members`, its config in `config`, its reader in
    `reader`. `made` among the members is called with the built part."""
    part, base, more = PARTS[kind]
    cls = type("Changed", (part,), members)

    def change(self, built):
        built.__class__ = cls
        if reader:
            name = f"Reader{len(globals())}"  # of this module, so that it can be pickled
            methods = {**dict(reader), "__module__": __name__, "__qualname__": name}
            built.reader.__class__ = globals().setdefault(name, type(name, (type(built.reader),), methods))
        if "made" in members:
            built.made()
        return built

    declared = {"renders": frozenset({"text"})} if kind == "Renderer" else {}
    described = {"__doc__": "A changed one.", "change": change, "__module__": __name__}
    config_class = type("ChangedConfig", (base,), {**described, **declared, **dict(config)})
    return type(
        f"Test{kind}", (getattr(mmgen.testing, f"{kind}Suite"),), {"config": lambda self: config_class(), **more}
    )


def failures(suite):
    """What a suite finds: test -> message."""
    messages = {}
    for name in filter(lambda name: name.startswith("test_"), dir(suite)):
        try:
            getattr(suite(), name)()
        except unittest.SkipTest:
            continue
        except Exception as error:
            known = isinstance(error, AssertionError | MmgenError)
            messages[name] = str(error) if known else f"{type(error).__name__}: {error}"
    return messages
