"""The conformance suite of probes."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..configs import BackboneConfig, EmbedderConfig, GeneratorConfig, ProbeConfig
from ..errors import MmgenError
from ..parts import Probe
from ..tensors import Example
from .greedy import Greedy
from .suite import Suite, expect, expect_json, skip
from .tiny import Tiny
from .toy import TEXTS, Toy, Words

RUN = "mmgen.parts.Probe.run"


class ProbeSuite(Suite):
    """What a report relies on. `config()` returns a `ProbeConfig`. The model it looks into is the tiny backbone behind the
    toy data set's captions, unless `inputs`, `backbone_config`, `generator_config` or `examples` say otherwise."""

    def config(self) -> ProbeConfig:
        return super().config()

    def backbone_config(self) -> BackboneConfig:
        return Tiny()

    def generator_config(self) -> GeneratorConfig:
        return Greedy()

    def inputs(self) -> dict[str, EmbedderConfig]:
        """Embedders by the names of their inputs."""
        return {"caption": Words()}

    def examples(self) -> Sequence[Example]:
        """At least three that the inputs can read."""
        return Toy().build().split("train")[:5]

    def probe(self) -> Probe:
        return self.config().build()

    def model(self) -> Any:
        """A `mmgen.model.Model` in eval mode, with the same random weights every time."""
        from ..model import compose

        return self.seeded(compose, self.backbone_config(), self.inputs(), self.generator_config(), texts=TEXTS).eval()

    def told(self, model: Any, out: Path, examples: Sequence[Example] | None = None) -> dict[str, Any]:
        return self.seeded(self.probe().run, model, self.examples() if examples is None else examples, out)

    def test_what_it_tells(self) -> None:
        with tempfile.TemporaryDirectory() as out:
            told = self.told(self.model(), Path(out))
            expect(
                isinstance(told, dict) and told,
                f"run returns {told!r:.60}; it must be a dict of what a report shows",
                RUN,
            )
            expect_json(told, "what run returns", RUN)
            files = [path for path in Path(out).rglob("*") if path.is_file()]
            expect(files, "run leaves no file in `out`; write the tables and pictures there", RUN)
            empty = [path.name for path in files if not path.stat().st_size]
            expect(not empty, f"{', '.join(empty)} is empty", RUN)
            expect(
                out not in str(told),
                "what run returns names the folder `out`, which may move; name files relative to it",
                RUN,
            )

    def test_it_writes_into_its_folder_alone(self) -> None:
        with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as out:
            with contextlib.chdir(here):
                self.told(self.model(), Path(out))
            strays = sorted(path.name for path in Path(here).rglob("*"))
            expect(
                not strays, f"run writes {', '.join(strays[:3])} into the current folder; write into `out` alone", RUN
            )

    def test_the_same_twice(self) -> None:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            model = self.model()
            first, second = self.told(model, Path(one)), self.told(model, Path(other))
        expect(first == second, "with torch's generator seeded alike, run tells something else the second time", RUN)

    def test_the_model_stays_as_it_was(self) -> None:
        model = self.model()
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        learning = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
        with tempfile.TemporaryDirectory() as out:
            self.told(model, Path(out))
        changed = [name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])]
        expect(not changed, f"run changes {', '.join(changed[:3])}", RUN)
        expect(not model.training, "run leaves the model in training mode; put it back as it was", RUN)
        same = learning == {name: parameter.requires_grad for name, parameter in model.named_parameters()}
        expect(same, "run changes which parameters learn (requires_grad); put them back as they were", RUN)
        left = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
        expect(not left, f"run leaves gradients, of {', '.join(left[:3])} among others; clear them", RUN)
        hooked = [
            name or "the model"
            for name, module in model.named_modules()
            if module._forward_hooks or module._forward_pre_hooks
        ]
        expect(not hooked, f"run leaves hooks on {', '.join(hooked[:3])}; remove them", RUN)

    def test_what_cannot_be_had_is_said(self) -> None:
        """With nothing to look at: a result, or one line that says why not."""
        with tempfile.TemporaryDirectory() as out:
            try:
                self.told(self.model(), Path(out), examples=())
            except MmgenError as error:
                expect(
                    "\n" not in str(error).strip() and str(error).strip(),
                    f"the reason is not one line: '{error}'",
                    "mmgen.errors",
                )
            except Exception as error:
                raise AssertionError(
                    f"without examples, run raises {type(error).__name__}: {error}; raise a DataError or an UnavailableError that says why. Read: {RUN}"
                ) from None

    def test_devices(self) -> None:
        if not torch.cuda.is_available():
            skip("needs a GPU")
        with tempfile.TemporaryDirectory() as out:
            self.told(self.model().cuda(), Path(out))
