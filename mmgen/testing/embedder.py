"""The conformance suite of embedders: reading, segments, hiding, and terms that are added to rows. The contract is in
`mmgen.parts.Embedder`, `mmgen.parts.Reader` and `mmgen.tensors.Segment`."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from ..configs import BackboneConfig, EmbedderConfig
from ..data.collate import Collator
from ..data.seeds import resolve
from ..examples import Example, ResolvedExample
from ..model import Model, compose
from ..parts import Picture
from ..sequence import Prefix
from ..tensors import Hiding, Segment
from .suite import Suite, assert_close, assert_refused, assert_type, explained, skip
from .tiny import Tiny
from .toy import TEXTS, Words


class EmbedderSuite(Suite[EmbedderConfig]):
    """What a model relies on. `config()` returns an `EmbedderConfig`; `examples()` some inputs for it."""

    def examples(self) -> Sequence[Example]:
        """At least two, whose inputs have different numbers of slots where that is possible."""
        raise NotImplementedError("define examples(), which returns at least two examples to embed")

    def backbone_config(self) -> BackboneConfig:
        return Tiny()

    def pictures(self) -> Mapping[str, Picture]:
        """The pictures of the examples by key, for an embedder whose config `takes` pictures."""
        return {}

    def model(self) -> Model:
        """The words of the suite and the embedder, in eval mode. Without `fields`, it reads the first input."""
        config = self.buildable().named(next(iter(self.examples()[0].inputs)))
        texts = [text for example in self.examples() for text in config.texts(example)]
        inputs = {"suite": Words(), "input": config}
        model: Model = self.seeded(compose, self.backbone_config(), inputs, None, texts=texts or TEXTS)
        if config.takes == "picture":
            model.embedders["input"].prepare(self.pictures())
        return model.eval()

    def collated(self, reader: Any, examples: Sequence[Example]) -> Any:
        return reader.collate([reader.read(resolve(example)) for example in examples])

    def prefix(self, model: Model, examples: Sequence[Example], inputs: Sequence[str] = ("suite", "input")) -> Prefix:
        """Two words of the suite and the input, with the terms that the input adds to whole rows."""
        worded = [replace(example, inputs={**example.inputs, "suite": "a cat"}) for example in examples]
        return model.prefix(Collator(model, inputs, objectives=())(worded))

    def test_neighbours_and_padding_change_nothing(self) -> None:
        model, examples = self.model(), self.examples()
        embedder, width = model.embedders["input"], model.backbone.input_size
        assert len(examples) > 1, "examples() must return at least two examples"
        segment = embedder(**self.collated(embedder.reader, examples))
        assert_type(segment, Segment, "forward")
        shape = tuple(segment.states.shape)
        right = (shape[0], shape[2]) == (len(examples), width)
        assert right, f"states are {shape}; expected {len(examples)} rows, and input_size of the backbone, {width}"
        together = self.prefix(model, examples)
        for number, example in enumerate(examples):
            alone, real = self.prefix(model, [example]), together.slots.layout.real[number]
            message = f"example '{example.id}' has different {{}} in a batch; mask padding, and do not use other rows"
            for name in ("states", "types", "positions"):
                batch, row = getattr(together.slots, name)[number], getattr(alone.slots, name)[0]
                assert_close(batch[real], row, message.format(name))
            if together.term is not None and alone.term is not None:
                assert_close(together.term[number], alone.term[0], message.format("tail_term"))

    def test_hiding(self) -> None:
        """Equal draws hide equal parts and do not change the item; labels are of the input's own slots."""
        embedder, config = self.model().embedders["input"], self.config()
        reader = embedder.reader
        assert config.hides == reader.hides, f"the config hides {config.hides}, but its reader hides {reader.hides}"
        if reader.hides is None or not all(embedder.vocabularies().values()):
            skip("hides nothing, or has no vocabulary for what is hidden")
        for example in self.examples():
            item = reader.read(resolve(example))
            before = pickle.dumps(item)
            (hidden, labels), (_, again) = (
                reader.hide(item, random.Random(1), Hiding(1.0, (1.0, 0.0))) for _ in range(2)
            )
            assert pickle.dumps(item) == before, "hide changes its item; copy the item before hiding parts"
            assert torch.equal(labels, again), "hide must draw only from `draw`"
            slots = int(embedder(**reader.collate([hidden])).mask.sum())
            right = len(labels) == slots and (labels != -100).any()
            assert right, f"hide returns labels of {len(labels)} slots for {slots}, or hides nothing at a rate of 1"

    def test_reader(self) -> None:
        """Loader workers get copies and read in any order and number, so a read may depend only on the example."""
        embedder = self.model().embedders["input"]
        with explained("the reader cannot be pickled, which loader workers need"):
            reader = pickle.loads(pickle.dumps(embedder.reader))  # noqa: S301
        for example in map(resolve, self.examples()):
            visits = [reader.augment(example, "input", random.Random(1)) for _ in range(2)]
            assert visits[0] == visits[1], "augment must draw only from `draw`"
            reader.read(visits[0].seen_by("input"))
            first, second = self.collated(reader, [example]), self.collated(embedder.reader, [example])
            changed = ", ".join(name for name in first if not torch.equal(first[name], second[name]))
            assert not changed, f"example '{example.id}' read twice gives different {changed}"
            slots = int(embedder(**first).mask.sum())
            for name, values in embedder.describe(example).items():
                fits = name == "text" or len(values) in (0, slots)
                assert fits, f"describe returns {len(values)} {name} for {slots} slots; give one per slot, or none"
        assert_refused("without its input, read", reader.read, ResolvedExample("the-empty-one", {}), "the-empty-one")

    def test_parameters(self) -> None:
        """None is the backbone's, all are trained, and with the settings they are all there is to save."""
        model, examples = self.model(), self.examples()
        embedder = model.embedders["input"]
        parameters, rest = dict(embedder.named_parameters()), {*model.backbone.parameters()}
        shared = [name for name, parameter in parameters.items() if parameter in rest]
        assert not shared, (
            f"{shared[0]} is the backbone's, and would be saved twice and trained with the input; write "
            "self._backbone = [backbone], a list"
        )
        prefixes = self.prefix(model, examples), self.prefix(model, examples, ["suite"])
        outputs = [output for prefix in prefixes for output in (prefix.slots.states, prefix.term) if output is not None]
        torch.stack([output.square().sum() for output in outputs]).sum().backward()
        idle = [name for name, parameter in parameters.items() if parameter.requires_grad and parameter.grad is None]
        assert not idle, f"no gradient reaches {', '.join(idle)}"
        unknown = embedder.inferred_settings().keys() - type(self.config()).model_fields.keys()
        assert not unknown, f"inferred_settings() names {unknown}, which are not fields of the config"
        self.seed = 1
        restored = self.model()
        restored.load_state_dict(model.state_dict())
        message = "with the same weights, states differ; store everything that changes states in parameters or buffers"
        assert_close(self.prefix(restored, examples).slots.states, prefixes[0].slots.states, message)
