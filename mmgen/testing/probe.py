"""The conformance suite of probes. The contract is in `mmgen.parts.Probe`, `mmgen.parts.ProbeInput` and
`mmgen.parts.ProbeResult`."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..configs import GeneratorConfig, ProbeConfig
from ..data.seeds import resolve
from ..errors import MmgenError
from ..evaluation.answers import generate
from ..examples import Example
from ..model import compose
from ..parts import Picture, ProbeInput, ProbeResult, TrainedStep
from .greedy import Greedy
from .objective import ModelSuite
from .suite import assert_json, assert_type, explained
from .toy import TEXTS, Toy


class ProbeSuite(ModelSuite[ProbeConfig]):
    """What a report relies on. `config()` returns a `ProbeConfig`. The probe gets a run of two steps with random
    weights: the tiny backbone and the toy data set's captions, unless `inputs`, `backbone_config`, `generator_config`,
    `examples` or `pictures` are overridden."""

    def generator_config(self) -> GeneratorConfig:
        return Greedy()

    def pictures(self) -> dict[str, Picture]:
        """Raw images by key."""
        return {picture.key: picture for picture in Toy().build().pictures()}

    def model(self, seed: int = 0) -> Any:
        """A `mmgen.model.Model` in eval mode, with the same random weights every time."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return compose(self.backbone_config(), self.inputs(), self.generator_config(), texts=TEXTS).eval()

    def subject(self, examples: Sequence[Example], written: bool = True) -> ProbeInput:
        """A run of two steps that read all inputs. `written`: whether the steps have written texts."""
        steps = []
        for place in range(2):
            model = self.model(place)
            texts = {text.id: text for text, *_ in generate(model, examples)} if written else {}
            steps.append(TrainedStep(f"step{place}", lambda model=model: model, model.inputs, texts, place, generate))
        return ProbeInput(steps, [*map(resolve, examples)], lambda: self.model(2), self.pictures())

    def run(self, subject: ProbeInput) -> ProbeResult:
        """The result, which is checked, with the files of the probe and those that it leaves elsewhere."""
        with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as out:
            with contextlib.chdir(here):
                result = self.seeded(self.buildable().build().run, subject, Path(out))
            strays = [path.name for path in Path(here).iterdir()]
            assert not strays, f"run writes {strays} into the current folder; write only into `out`"
            assert_type(result, ProbeResult, "run")
            assert_json(asdict(result), "the result of run")
            assert result.tables or result.plots, "run returns neither tables nor plots"
            sizes = [path.stat().st_size for path in Path(out).rglob("*")]
            assert sizes and all(sizes), "run leaves no file in `out`, or an empty one; write tables and pictures there"
            assert out not in str(result), (
                "the result of run has the path of `out`, which may move; name files relative"
            )
            for title, rows in result.tables.items():
                even = len({len(row) for row in rows}) == 1 and len(rows) > 1
                assert even, f"the table '{title}' needs a header and rows of the same length"
            for name in result.plots.values():
                drawn = name.endswith(".svg") and Path(out, name).is_file()
                assert drawn, f"the plot '{name}' is not an SVG file in `out`"
        return result

    def test_result(self) -> None:
        """It is the same every time, and the models stay as they are."""
        subject = self.subject(self.examples())
        models = [step.load() for step in subject.steps]
        before, first = [*map(state, models)], self.run(subject)
        hooks = [*map(count_hooks, models)]  # transformers registers its own hooks once
        second = self.run(subject)
        for model, known, had in zip(models, before, hooks, strict=True):
            changed = [name for name, values in state(model).items() if values != known[name]]
            assert not changed, (
                f"run changes weights, gradients or requires_grad of {', '.join(changed[:3])}; restore them"
            )
            assert not model.training, "run leaves the model in training mode; restore eval mode"
            left = [name for name, count in count_hooks(model).items() if count > had[name]]
            assert not left, f"run leaves hooks on {', '.join(left[:3])}; remove them"
        assert first == second, "with the same seed of torch, run returns a different result the second time"

    def test_a_step_without_texts(self) -> None:
        with explained("without texts of the steps, run fails; write texts with step.generate(model, examples)"):
            self.run(self.subject(self.examples(), written=False))

    def test_without_examples(self) -> None:
        message = (
            "without examples, run must return a result, or raise a DataError or an UnavailableError that says why"
        )
        with explained(message), contextlib.suppress(MmgenError):
            self.run(self.subject(()))


def state(model: Any) -> dict[str, Any]:
    """What a probe must not change, by parameter."""
    named = model.named_parameters()
    return {name: (weights.tolist(), weights.requires_grad, weights.grad is None) for name, weights in named}


def count_hooks(model: Any) -> dict[str, int]:
    return {name: len(part._forward_hooks) + len(part._forward_pre_hooks) for name, part in model.named_modules()}
