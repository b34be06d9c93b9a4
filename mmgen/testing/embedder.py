"""The conformance suite of embedders."""

from __future__ import annotations

import pickle
import random

import torch
from torch import Tensor

from ..data.seeds import resolve
from ..errors import DataError
from ..parts import Backbone, Embedder
from ..tensors import Hiding, ResolvedExample
from .devices import MixedDevices, OneDevice, plain_tensors
from .in_rows import RowSuite
from .suite import expect, expect_equal, expect_json, expect_published, skip
from .tiny import Tiny

FORWARD, READER = "mmgen.parts.Embedder.forward", "mmgen.parts.Reader"


class EmbedderSuite(RowSuite):
    """What a model relies on. `config()` returns an `EmbedderConfig`; `examples()` some inputs for it."""

    def test_shapes(self) -> None:
        backbone = self.built()
        embedder, examples = self.embedder(backbone), self.examples()
        segment = self.embedded(embedder, examples)
        expect(
            segment.states.ndim == 3 and segment.states.shape[0] == len(examples),
            f"states are {tuple(segment.states.shape)}, not (B, N, E) with B = {len(examples)}",
            FORWARD,
        )
        expect(
            segment.states.shape[-1] == backbone.input_size,
            f"states have width {segment.states.shape[-1]}; the backbone reads {backbone.input_size}, its input_size",
            FORWARD,
        )
        expect(
            segment.mask.shape == segment.states.shape[:2] and segment.mask.dtype == torch.bool,
            f"mask is {segment.mask.dtype} {tuple(segment.mask.shape)}, not bool (B, N)",
            FORWARD,
        )
        expect(bool(segment.mask.any(1).all()), "an example has no slot that is not masked", FORWARD)
        expect(bool(torch.isfinite(segment.states).all()), "states are not finite", FORWARD)

    def test_width_follows_the_backbone(self) -> None:
        if not isinstance(self.backbone_config(), Tiny):
            skip("needs the tiny backbone")
        wide = self.seeded(Tiny(embedding=28).build)
        segment = self.embedded(self.embedder(wide), self.examples())
        expect(
            segment.states.shape[-1] == 28,
            f"in front of a backbone that reads width 28, states have width {segment.states.shape[-1]}; build it for "
            "backbone.input_size",
            "mmgen.configs.EmbedderConfig.build",
        )

    def test_neighbours_and_padding_change_nothing(self) -> None:
        embedder, examples = self.embedder(), self.examples()
        expect(len(examples) > 1, "examples() must give at least two examples", "mmgen.testing.EmbedderSuite")
        items = [embedder.reader.read(resolve(example)) for example in examples]  # once: reads are compared elsewhere
        together = embedder(**embedder.reader.collate(items))
        for number, (example, item) in enumerate(zip(examples, items, strict=True)):
            alone = embedder(**embedder.reader.collate([item]))
            real, own = together.mask[number], alone.mask[0]
            expect(
                int(real.sum()) == int(own.sum()),
                f"example '{example.id}' has {int(own.sum())} slots alone and {int(real.sum())} in a batch; mask the "
                "padding",
                FORWARD,
            )
            expect_equal(
                together.states[number][real],
                alone.states[0][own],
                f"example '{example.id}' has other states in a batch; a row must not depend on the others",
                FORWARD,
            )

    def test_reads_the_same_twice(self) -> None:
        """Loader workers read in any order and number: what a read gives may depend on the example alone."""
        reader, examples = self.embedder().reader, self.examples()
        for example in (*examples, *reversed(examples)):
            first, second = (reader.collate([reader.read(resolve(example))]) for _ in range(2))
            differ = [name for name in first if not torch.equal(first[name], second[name])]
            expect(
                not differ,
                f"reads differ: example '{example.id}' read twice gives other {', '.join(differ)}; a read must depend "
                "on the example alone, or results depend on the number of loader workers",
                "mmgen.parts.Reader.read",
            )

    def test_what_it_hides(self) -> None:
        """The same draw hides the same, and leaves the item as it is; labels are of the input's own slots."""
        embedder, config = self.embedder(), self.reading()
        reader, hides = embedder.reader, "mmgen.parts.Reader.hide"
        expect(config.hides == reader.hides, f"the config hides {config.hides}, its reader {reader.hides}", hides)
        if reader.hides is None or not all(embedder.labels().values()):
            skip("hides nothing, or has nothing to choose from where something is hidden")
        for example in self.examples():
            item = reader.read(resolve(example))
            before = reader.collate([item])
            tries = [reader.hide(item, random.Random(1), Hiding(rate, (1.0, 0.0))) for rate in (0.5, 0.5, 1.0)]
            after = reader.collate([item])
            untouched = all(torch.equal(before[name], after[name]) for name in before)
            expect(untouched, "hide changes the item that it is given; copy what it hides", hides)
            (first, labels), (_, again), (_, whole) = tries
            expect(torch.equal(labels, again), "hide draws from something else than `draw`", hides)
            slots = int(embedder(**reader.collate([first])).mask.sum())
            expect(len(labels) == slots, f"hide gives labels of {len(labels)} slots, and there are {slots}", hides)
            expect(bool((whole != -100).any()), "at a rate of 1 nothing is to be predicted", hides)

    def test_the_backbone_is_not_its_own(self) -> None:
        backbone = self.built()
        shared = _shared(self.embedder(backbone), backbone)
        expect(
            not shared,
            f"the backbone's {shared[0] if shared else ''} is a parameter of the embedder too, so it would be saved "
            "twice and learn with the input; keep the backbone in a list (self._backbone = [backbone])",
            "mmgen.parts.Embedder",
        )

    def test_published_weights(self) -> None:
        expect_published(self.embedder(self.built()))

    def test_reader(self) -> None:
        embedder, examples = self.embedder(), self.examples()
        try:
            reader = pickle.loads(pickle.dumps(embedder.reader))
        except Exception as error:
            raise AssertionError(
                f"the reader cannot be pickled, which loader workers need: {error}. Read: {READER}"
            ) from None
        collated = reader.collate([reader.read(example) for example in examples])
        expect(
            isinstance(collated, dict) and all(isinstance(value, Tensor) for value in collated.values()),
            "collate must give a dict of tensors",
            READER,
        )
        slots = embedder(**collated).mask.sum(1).tolist()
        told = [reader.slots(example) for example in examples]
        expect(
            all(
                isinstance(count, int | float) and 0 <= count <= 2 * real + 8
                for count, real in zip(told, slots, strict=True)
            ),
            f"slots says {told} for inputs that take {slots} slots; tell about as many, or leave the method out",
            "mmgen.parts.Reader.slots",
        )

    def test_a_missing_input(self) -> None:
        reader = self.embedder().reader
        try:
            reader.read(ResolvedExample("the-empty-one", {}))
        except DataError as error:
            expect(
                "the-empty-one" in str(error),
                f"the error about a missing input does not name the example: '{error}'",
                READER,
            )
            return
        except Exception as error:
            raise AssertionError(
                f"without its input, read raises {type(error).__name__}: {error}; raise a DataError that names the "
                f"example. Read: {READER}"
            ) from None
        expect(False, "without its input, read says nothing; raise a DataError that names the example", READER)

    def test_gradients_reach_every_parameter(self) -> None:
        backbone = self.built()
        embedder = self.embedder(backbone)
        others = set(backbone.parameters())
        own = {name: parameter for name, parameter in embedder.named_parameters() if parameter not in others}
        if not own:
            skip("has no parameters of its own")
        torch.stack([part.square().sum() for part in self.given(embedder, backbone, self.examples())]).sum().backward()
        idle = [name for name, parameter in own.items() if parameter.requires_grad and parameter.grad is None]
        expect(not idle, f"no gradient reaches {', '.join(idle)}", FORWARD)
        expect(
            all(torch.isfinite(p.grad).all() for p in own.values() if p.grad is not None),
            "gradients are not finite",
            FORWARD,
        )

    def test_half_precision(self) -> None:
        embedder, examples = self.embedder(), self.examples()
        collated = self.collated(embedder, examples)
        with torch.autocast("cpu", torch.bfloat16):
            half = embedder(**collated)
        full = embedder(**collated)
        scale = full.states.detach().abs().max().item()
        expect_equal(
            half.states.float(),
            full.states,
            "in mixed precision states are other ones",
            FORWARD,
            tolerance=0.05 * max(scale, 1e-3),
        )

    def test_moves_to_another_device(self) -> None:
        """On torch's meta device, which every machine has."""
        backbone = self.built()
        embedder = self.embedder(backbone)
        collated = {name: value.to("meta") for name, value in self.collated(embedder, self.examples()).items()}
        backbone.to("meta")
        kept = ", ".join(plain_tensors(embedder.to("meta")))
        wrong = (
            f"{kept} is a plain tensor and stays behind when the embedder moves to a GPU; use register_buffer"
            if kept
            else "forward makes tensors on the CPU; make them on the device of its arguments"
        )
        try:
            with OneDevice():
                segment = embedder(**collated)
        except MixedDevices as error:
            raise AssertionError(f"{wrong} ({error} meets two devices). Read: {FORWARD}") from None
        except (RuntimeError, NotImplementedError) as error:
            expect("device" not in str(error) or "meta tensor" in str(error), wrong, FORWARD)
            skip("asks for values, which the meta device has not")
        expect(segment.states.is_meta and segment.mask.is_meta, wrong, FORWARD)

    def test_devices(self) -> None:
        if not torch.cuda.is_available():
            skip("needs a GPU")
        backbone = self.built().cuda()
        embedder = self.embedder(backbone).cuda()
        collated = self.collated(embedder, self.examples())
        expect(
            all(value.device.type == "cpu" for value in collated.values()),
            "collate must stay on the CPU; batches are moved by the loop",
            READER,
        )
        segment = embedder(**{name: value.cuda() for name, value in collated.items()})
        expect(segment.states.is_cuda and segment.mask.is_cuda, "on a GPU, states or mask stay behind", FORWARD)

    def test_description(self) -> None:
        embedder, example = self.embedder(), self.examples()[0]
        slots = int(self.embedded(embedder, [example]).mask.sum())
        for name, values in embedder.describe(resolve(example)).items():
            expect(
                name == "text" or len(values) in (0, slots),
                f"describe gives {len(values)} {name} for {slots} slots; give one each, or none",
                "mmgen.parts.Embedder.describe",
            )

    def test_what_a_run_keeps(self) -> None:
        embedder = self.embedder()
        kept = embedder.found_settings()
        expect_json(kept, "what found_settings() returns", "mmgen.parts.Embedder.found_settings")
        unknown = kept.keys() - type(self.config()).model_fields.keys()
        expect(
            not unknown,
            f"found_settings() names {', '.join(sorted(unknown))}, which are no fields of "
            f"{type(self.config()).__name__}",
            "mmgen.parts.Embedder.found_settings",
        )
        again = self.embedder()
        again.load_state_dict(embedder.state_dict())
        collated = self.collated(embedder, self.examples())
        before, after = (one(**collated).states for one in (embedder, again))
        expect_equal(
            before,
            after,
            "with the same weights, states are other ones; keep what counts in parameters or buffers",
            "torch.nn.Module.state_dict",
        )


def _shared(embedder: Embedder, backbone: Backbone) -> list[str]:
    """Names of the backbone's parameters that the embedder has among its own."""
    own = set(embedder.parameters())
    return [name for name, parameter in backbone.named_parameters() if parameter in own]
