"""The conformance suite of embedders: reading, segments, hiding, and terms that are added to rows. The contract is in
`mmgen.parts.Embedder`, `mmgen.parts.Reader` and `mmgen.tensors.Segment`."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ..configs import BackboneConfig, EmbedderConfig
from ..data.seeds import resolve
from ..examples import Example, ResolvedExample
from ..parts import Backbone, Embedder, Picture
from ..sequence import lay_out
from ..tensors import Hiding, Segment, Slots
from .devices import MixedDevices, OneDevice, plain_tensors
from .rows import some_ids
from .suite import Suite, assert_close, assert_json, assert_published, assert_refused, assert_tensors, explained, skip
from .tiny import Tiny
from .toy import TEXTS


class EmbedderSuite(Suite[EmbedderConfig]):
    """What a model relies on. `config()` returns an `EmbedderConfig`; `examples()` some inputs for it."""

    def examples(self) -> Sequence[Example]:
        """At least two, whose inputs have different numbers of slots where that is possible."""
        raise NotImplementedError(
            f"{type(self).__name__} must define examples(), which returns at least two examples to embed"
        )

    def backbone_config(self) -> BackboneConfig:
        return Tiny()

    def reading(self) -> EmbedderConfig:
        """The config; without `fields`, it reads the first input of the first example."""
        config = self.config()
        return (
            config if config.fields else config.model_copy(update={"fields": (next(iter(self.examples()[0].inputs)),)})
        )

    def pictures(self) -> Mapping[str, Picture]:
        """The pictures of the examples by key, for an embedder whose config `takes` pictures."""
        return {}

    def embedder(self, backbone: Backbone | None = None) -> Embedder:
        """A new embedder for a backbone, in eval mode."""
        config = self.reading()
        embedder = self.seeded(config.build, backbone or self.built()).eval()
        if config.takes == "picture":
            embedder.prepare(self.pictures())
        return embedder

    def built(self) -> Backbone:
        config = self.reading()
        texts = [text for example in self.examples() for text in config.texts(example)]
        return self.seeded(self.backbone_config().build, texts=texts or TEXTS).eval()

    def collated(self, embedder: Embedder, examples: Sequence[Example]) -> Mapping[str, Tensor]:
        collated = embedder.reader.collate([embedder.reader.read(resolve(example)) for example in examples])
        assert_tensors("collate returns", collated)
        return collated

    def embedded(self, embedder: Embedder, examples: Sequence[Example]) -> Segment:
        return embedder(**self.collated(embedder, examples))

    def added(
        self, embedder: Embedder, backbone: Backbone, examples: Sequence[Example], present: bool = True
    ) -> tuple[Slots, Tensor | None, Tensor | None]:
        """Rows `[CLS] two words [SEP]`, followed by the input if `present`; the terms that the input adds to these rows
        and to the tokens after them."""
        collated = self.collated(embedder, examples) if present else None
        ids = torch.tensor([[backbone.start_id, *some_ids(backbone, 2), backbone.end_id]]).expand(len(examples), -1)
        parts = [("words of the suite", Segment(backbone.embed(ids), torch.ones_like(ids, dtype=torch.bool)))]
        slots, _ = lay_out(parts if collated is None else [*parts, ("input", embedder(**collated))])
        return slots, embedder.add(slots, collated, "input"), embedder.tail_term(slots, collated)

    def test_shapes(self) -> None:
        """Tried with backbones of two widths if the suite uses the tiny backbone."""
        wide = [self.seeded(Tiny(embedding=28).build)] if isinstance(self.backbone_config(), Tiny) else []
        examples = self.examples()
        for backbone in (self.built(), *wide):
            segment = self.embedded(self.embedder(backbone), examples)
            assert isinstance(segment, Segment), f"forward returns {segment!r:.60}; expected a mmgen.tensors.Segment"
            shape, width = tuple(segment.states.shape), backbone.input_size
            assert shape[0] == len(examples), f"states must have shape (B, N, E) with B = {len(examples)}, not {shape}"
            assert shape[2] == width, f"states have width {shape[2]}, but input_size of the backbone is {width}"
            assert segment.mask.any(1).all(), "an example has only masked slots"
            assert segment.states.isfinite().all(), "states are not finite"

    def test_reads_are_deterministic(self) -> None:
        """Loader workers read in any order and number, so a read may depend only on the example."""
        embedder, examples = self.embedder(), self.examples()
        reads = [self.collated(embedder, [example]) for example in [*examples, *reversed(examples)]]
        for example, first, second in zip(examples, reads, reads[::-1], strict=False):
            changed = ", ".join(name for name in first if not torch.equal(first[name], second[name]))
            assert not changed, f"example '{example.id}' read twice gives different {changed}"

    def test_neighbours_and_padding_change_nothing(self) -> None:
        embedder, examples = self.embedder(), self.examples()
        assert len(examples) > 1, "examples() must return at least two examples"
        together = self.embedded(embedder, examples)
        for number, example in enumerate(examples):
            alone = self.embedded(embedder, [example])
            slots, batched = int(alone.mask.sum()), int(together.mask[number].sum())
            same = slots == batched
            assert same, f"example '{example.id}' has {slots} slots alone and {batched} in a batch; mask the padding"
            assert_close(
                together.states[number][together.mask[number]],
                alone.states[0][alone.mask[0]],
                f"example '{example.id}' has different states in a batch; a row must not depend on other rows",
            )

    def test_types_and_positions(self) -> None:
        embedder, examples = self.embedder(), self.examples()
        segment = self.embedded(embedder, examples)
        for name in ("types", "positions"):
            column: Tensor | None = getattr(segment, name)
            if column is None:
                continue
            for number, example in enumerate(examples):
                alone = self.embedded(embedder, [example])
                same = torch.equal(column[number][segment.mask[number]], getattr(alone, name)[0][alone.mask[0]])
                assert same, f"example '{example.id}' has different {name} in a batch than alone"
        lowest = 0 if segment.types is None else int(segment.types.masked_fill(~segment.mask, 0).min())
        assert lowest >= 0, f"the smallest token type is {lowest}; token types start at 0"

    def test_added_terms(self) -> None:
        backbone = self.built()
        embedder, examples = self.embedder(backbone), self.examples()
        for present in (False, True):
            slots, added, term = self.added(embedder, backbone, examples, present)
            rows, length, width = slots.states.shape
            expected = (("add", added, (rows, length, width)), ("tail_term", term, (rows, width)))
            for name, value, shape in expected:
                assert value is None or getattr(value, "shape", None) == shape, (
                    f"{name} must return a tensor of shape {shape} or None, not {value!r:.60}; also for rows without "
                    "the input (collated is None)"
                )
            finite = all(value.isfinite().all() for value in (added, term) if value is not None)
            assert finite, "add and tail_term must return finite numbers"
        for number, example in enumerate(examples):
            single, alone, behind = self.added(embedder, backbone, [example])
            message = f"example '{example.id}': the added terms differ in a batch; a row must not depend on other rows"
            if added is not None and alone is not None:
                assert_close(added[number][slots.layout.real[number]], alone[0][single.layout.real[0]], message)
            if term is not None and behind is not None:
                assert_close(term[number], behind[0], message)

    def test_hiding(self) -> None:
        """Equal draws hide equal parts and do not change the item; labels are of the input's own slots."""
        embedder, config = self.embedder(), self.reading()
        reader = embedder.reader
        assert config.hides == reader.hides, f"the config hides {config.hides}, but its reader hides {reader.hides}"
        if reader.hides is None or not all(embedder.vocabularies().values()):
            skip("hides nothing, or has no vocabulary for what is hidden")
        for example in self.examples():
            item = reader.read(resolve(example))
            before = reader.collate([item])
            tries = [reader.hide(item, random.Random(1), Hiding(rate, (1.0, 0.0))) for rate in (0.5, 0.5, 1.0)]
            after = reader.collate([item])
            untouched = all(torch.equal(before[name], after[name]) for name in before)
            assert untouched, "hide changes its item; copy the item before hiding parts"
            (hidden, labels), (_, repeated), (_, all_labels) = tries
            assert torch.equal(labels, repeated), "hide must draw only from `draw`"
            slots = int(embedder(**reader.collate([hidden])).mask.sum())
            assert len(labels) == slots, f"hide returns labels of {len(labels)} slots, but the input has {slots}"
            assert (all_labels != -100).any(), "hide must hide something at a rate of 1"

    def test_does_not_own_the_backbone(self) -> None:
        backbone = self.built()
        parameters = set(self.embedder(backbone).parameters())
        shared = [name for name, parameter in backbone.named_parameters() if parameter in parameters]
        assert not shared, (
            f"contains the backbone's {shared[0]} as a parameter, which would be saved twice and trained with the "
            "input; write self._backbone = [backbone], a list"
        )

    def test_published_weights(self) -> None:
        assert_published(self.embedder())

    def test_reader(self) -> None:
        embedder, examples = self.embedder(), self.examples()
        with explained("the reader cannot be pickled, which loader workers need"):
            reader = pickle.loads(pickle.dumps(embedder.reader))  # noqa: S301
        collated = reader.collate([reader.read(resolve(example)) for example in examples])
        for example, slots in zip(examples, embedder(**collated).mask.sum(1).tolist(), strict=True):
            count = sum(
                reader.slots(value) for field in self.reading().fields for value in resolve(example).shown(field)
            )
            assert isinstance(count, int | float) and 0 <= count <= 2 * slots + 8, (
                f"Reader.slots returns {count} for an input of {slots} slots; return about as many, or remove it"
            )

    def test_a_missing_input(self) -> None:
        message = "without its input, read must raise a DataError that names the example"
        reader = self.embedder().reader
        assert_refused(lambda: reader.read(ResolvedExample("the-empty-one", {})), "the-empty-one", message)

    def test_gradients_reach_every_parameter(self) -> None:
        backbone = self.built()
        embedder, examples = self.embedder(backbone), self.examples()
        rest = set(backbone.parameters())
        trained = {name: p for name, p in embedder.named_parameters() if p not in rest and p.requires_grad}
        if not trained:
            skip("has no trainable parameters besides the backbone's")
        segment = self.embedded(embedder, examples)
        terms = [term for present in (True, False) for term in self.added(embedder, backbone, examples, present)[1:]]
        outputs = [segment.states[segment.mask], *(term for term in terms if term is not None)]
        torch.stack([output.square().sum() for output in outputs]).sum().backward()
        idle = [name for name, parameter in trained.items() if parameter.grad is None]
        assert not idle, f"no gradient reaches {', '.join(idle)}"
        assert all(p.grad.isfinite().all() for p in trained.values() if p.grad is not None), "gradients are not finite"

    def test_half_precision(self) -> None:
        embedder = self.embedder()
        collated = self.collated(embedder, self.examples())
        with torch.autocast("cpu", torch.bfloat16):
            half = embedder(**collated).states
        full = embedder(**collated).states
        tolerance = 0.05 * max(full.detach().abs().max().item(), 1e-3)
        assert_close(half.float(), full, "in mixed precision, states differ", tolerance)

    def test_moves_to_another_device(self) -> None:
        """On torch's meta device, which every machine has."""
        backbone = self.built()
        embedder = self.embedder(backbone)
        collated = {name: value.to("meta") for name, value in self.collated(embedder, self.examples()).items()}
        backbone.to("meta")
        plain = ", ".join(plain_tensors(embedder.to("meta")))
        message = (
            f"{plain} is a plain tensor and stays on the CPU when the embedder moves to a GPU; use register_buffer"
            if plain
            else "forward creates tensors on the CPU; create them on the device of its arguments"
        )
        try:
            with OneDevice():
                segment = embedder(**collated)
        except MixedDevices as error:
            raise AssertionError(f"{message} ({error} gets two devices)") from None
        except (RuntimeError, NotImplementedError) as error:
            assert "device" not in str(error) or "meta tensor" in str(error), message
            skip("needs values, which the meta device does not have")
        assert segment.states.is_meta and segment.mask.is_meta, message

    def test_devices(self) -> None:
        if not torch.cuda.is_available():
            skip("needs a GPU")
        backbone = self.built().cuda()
        embedder = self.embedder(backbone).cuda()
        collated = self.collated(embedder, self.examples())
        on_cpu = all(value.device.type == "cpu" for value in collated.values())
        assert on_cpu, "collate must stay on the CPU; batches are moved by the loop"
        segment = embedder(**{name: value.cuda() for name, value in collated.items()})
        assert segment.states.is_cuda and segment.mask.is_cuda, "on a GPU, states or mask stay on the CPU"

    def test_description(self) -> None:
        embedder, example = self.embedder(), self.examples()[0]
        slots = int(self.embedded(embedder, [example]).mask.sum())
        for name, values in embedder.describe(resolve(example)).items():
            fits = name == "text" or len(values) in (0, slots)
            assert fits, f"describe returns {len(values)} {name} for {slots} slots; give one per slot, or none"

    def test_settings_and_weights_restore_it(self) -> None:
        embedder, restored = self.embedder(), self.embedder()
        settings = embedder.inferred_settings()
        assert_json(settings, "the result of inferred_settings()")
        unknown = ", ".join(sorted(settings.keys() - type(self.config()).model_fields.keys()))
        assert not unknown, (
            f"inferred_settings() names {unknown}, which are not fields of {type(self.config()).__name__}"
        )
        restored.load_state_dict(embedder.state_dict())
        collated = self.collated(embedder, self.examples())
        message = "with the same weights, states differ; store everything that changes states in parameters or buffers"
        assert_close(embedder(**collated).states, restored(**collated).states, message)
