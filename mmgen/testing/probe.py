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

from ..configs import BackboneConfig, EmbedderConfig, GeneratorConfig, ProbeConfig
from ..data.collate import Collator
from ..data.seeds import resolve
from ..errors import MmgenError
from ..examples import Example, Generation
from ..model import compose
from ..parts import Picture, Probe, ProbeInput, ProbeResult, TrainedStep
from .greedy import Greedy
from .suite import Suite, assert_json, explained, skip
from .tiny import Tiny
from .toy import TEXTS, Toy, Words


class ProbeSuite(Suite[ProbeConfig]):
    """What a report relies on. `config()` returns a `ProbeConfig`. The probe gets a run of two steps with random
    weights: the tiny backbone and the toy data set's captions, unless `inputs`, `backbone_config`, `generator_config`,
    `examples` or `pictures` are overridden."""

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

    def pictures(self) -> dict[str, Picture]:
        """Raw images by key."""
        return {picture.key: picture for picture in Toy().build().pictures()}

    def probe(self) -> Probe:
        return self.config().build()

    def model(self, seed: int = 0) -> Any:
        """A `mmgen.model.Model` in eval mode, with the same random weights every time."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return compose(self.backbone_config(), self.inputs(), self.generator_config(), texts=TEXTS).eval()

    def subject(
        self, models: Sequence[Any] = (), examples: Sequence[Example] | None = None, written: bool = True
    ) -> ProbeInput:
        """A run of two steps that read all inputs. `written`: whether the steps have written texts."""
        models = models or (self.model(0), self.model(1))
        examples = self.examples() if examples is None else examples
        steps = []
        for place, model in enumerate(models):
            texts = self.seeded(_generate_texts, model, examples) if written and examples else []
            by_id = {text[0].id: text[0] for text in texts}
            steps.append(
                TrainedStep(f"step{place}", lambda model=model: model, model.inputs, by_id, place, _generate_texts)
            )
        return ProbeInput(steps, [resolve(example) for example in examples], lambda: self.model(2), self.pictures())

    def run(self, out: Path, subject: ProbeInput | None = None) -> ProbeResult:
        return self.seeded(self.probe().run, subject or self.subject(), out)

    def test_result(self) -> None:
        with tempfile.TemporaryDirectory() as out:
            result = self.run(Path(out))
            is_result = isinstance(result, ProbeResult)
            assert is_result, f"run returns {result!r:.60}; expected a ProbeResult"
            assert result.tables or result.plots, "run returns neither tables nor plots"
            assert_json(asdict(result), "the result of run")
            files = [path for path in Path(out).rglob("*") if path.is_file()]
            assert files, "run leaves no file in `out`; write the tables and pictures there"
            empty = ", ".join(path.name for path in files if not path.stat().st_size)
            assert not empty, f"{empty} is empty"
            movable = out not in str(result)
            assert movable, "the result of run has the path of `out`, which may move; name files relative to `out`"
            for title, rows in result.tables.items():
                even = len({len(row) for row in rows}) == 1 and len(rows) > 1
                assert even, f"the table '{title}' needs a header and rows of the same length"
            for name in result.plots.values():
                drawn = name.endswith(".svg") and (Path(out) / name).is_file()
                assert drawn, f"the plot '{name}' is not an SVG file in `out`"

    def test_a_step_without_texts(self) -> None:
        with tempfile.TemporaryDirectory() as out:
            result = self.run(Path(out), self.subject(written=False))
        assert isinstance(result, ProbeResult), (
            "without texts of the steps, run returns no result; write texts with step.generate(model, examples)"
        )

    def test_writes_only_into_its_folder(self) -> None:
        with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as out:
            with contextlib.chdir(here):
                self.run(Path(out))
            strays = ", ".join(sorted(path.name for path in Path(here).rglob("*"))[:3])
            assert not strays, f"run writes {strays} into the current folder; write only into `out`"

    def test_is_deterministic(self) -> None:
        with tempfile.TemporaryDirectory() as first_folder, tempfile.TemporaryDirectory() as second_folder:
            subject = self.subject()
            first, second = self.run(Path(first_folder), subject), self.run(Path(second_folder), subject)
        assert first == second, "with the same seed of torch, run returns a different result the second time"

    def test_models_stay_unchanged(self) -> None:
        models = (self.model(0), self.model(1))
        states = [{name: tensor.clone() for name, tensor in model.state_dict().items()} for model in models]
        trainable = [_trainable_parameters(model) for model in models]
        with tempfile.TemporaryDirectory() as first_folder, tempfile.TemporaryDirectory() as second_folder:
            self.run(Path(first_folder), self.subject(models))
            hooked = [_count_hooks(model) for model in models]  # transformers registers its own hooks once
            self.run(Path(second_folder), self.subject(models))
        for model, before, was_trainable, known in zip(models, states, trainable, hooked, strict=True):
            changed = [name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])]
            assert not changed, f"run changes {', '.join(changed[:3])}"
            assert not model.training, "run leaves the model in training mode; restore eval mode"
            same = was_trainable == _trainable_parameters(model)
            assert same, "run changes requires_grad of parameters; restore it"
            left = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
            assert not left, f"run leaves gradients on {', '.join(left[:3])}; clear them"
            hooks = [name or "the model" for name, count in _count_hooks(model).items() if count > known[name]]
            assert not hooks, f"run leaves hooks on {', '.join(hooks[:3])}; remove them"

    def test_without_examples(self) -> None:
        """Without examples: a result, or an error of one line."""
        message = (
            "without examples, run must return a result, or raise a DataError or an UnavailableError that says why"
        )
        with tempfile.TemporaryDirectory() as out, explained(message):
            try:
                self.run(Path(out), self.subject(examples=()))
            except MmgenError as error:
                reason = str(error).strip()
                assert reason and "\n" not in reason, f"the reason is not one line: '{error}'"

    def test_devices(self) -> None:
        if not torch.cuda.is_available():
            skip("needs a GPU")
        with tempfile.TemporaryDirectory() as out:
            self.run(Path(out), self.subject((self.model(0).cuda(), self.model(1).cuda())))


def _trainable_parameters(model: Any) -> dict[str, bool]:
    return {name: parameter.requires_grad for name, parameter in model.named_parameters()}


def _count_hooks(model: Any) -> dict[str, int]:
    return {name: len(part._forward_hooks) + len(part._forward_pre_hooks) for name, part in model.named_modules()}


def _generate_texts(model: Any, examples: Sequence[Example]) -> list[list[Generation]]:
    """The texts of a model, in one batch: the suites' models are tiny."""
    batch = Collator(model, model.inputs, objectives=())(examples)
    with torch.inference_mode():
        return model.generator.generate(model, batch.to(model.device), model.decoding)
