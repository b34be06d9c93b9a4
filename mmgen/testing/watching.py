"""The conformance suites of what shows and watches a run: probes, renderers, callbacks, commands. The contract is in
`mmgen.parts.Probe`, `mmgen.parts.ProbeInput`, `mmgen.parts.ProbeResult`; `mmgen.parts.Renderer`, `mmgen.cards.Card`;
`mmgen.parts.Callback`; `mmgen.configs.CommandConfig`."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest import mock

import click
import torch
from click.testing import CliRunner

from ..cards import Card
from ..configs import CallbackConfig, CommandConfig, GeneratorConfig, ProbeConfig, RendererConfig
from ..data.seeds import resolve
from ..errors import MmgenError
from ..evaluation.answers import generate
from ..examples import Example, Generation
from ..model import compose
from ..parts import Callback, Picture, ProbeInput, ProbeResult, RunInfo, TrainedStep
from .objective import ModelSuite
from .suite import Suite, assert_json, assert_type, explained
from .toy import TEXTS, Greedy, Toy

RECORD = {"update": 1, "epoch": 0.5, "loss": 2.5, "losses": {"a.loss": 2.0}, "lr": 1e-4, "grad_norm": 0.7}
RECIPE = {"name": "suite", "seed": 0, "training": {"epochs": 2, "betas": [0.9, 0.999], "keep": None}}


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
        """The result, which is checked, and the files of the probe."""
        with tempfile.TemporaryDirectory() as out:
            result = self.seeded(self.buildable().build().run, subject, Path(out))
            assert_type(result, ProbeResult, "run")
            assert_json(asdict(result), "the result of run")
            assert result.tables or result.plots, "run returns neither tables nor plots"
            assert out not in str(result), (
                "the result of run has the path of `out`, which may move; name files relative"
            )
            for name in result.plots.values():
                drawn = name.endswith(".svg") and Path(out, name).is_file()
                assert drawn, f"the plot '{name}' is not an SVG file in `out`"
        return result

    def test_result(self) -> None:
        """It is the same every time, and the models stay as they are."""
        subject = self.subject(self.examples())
        models = [step.load() for step in subject.steps]
        before, first = [*map(state, models)], self.run(subject)
        for model, known in zip(models, before, strict=True):
            changed = [name for name, values in state(model).items() if values != known[name]]
            assert not changed, (
                f"run changes weights, gradients or requires_grad of {', '.join(changed[:3])}; restore them"
            )
            assert not model.training, "run leaves the model in training mode; restore eval mode"
        assert first == self.run(subject), "with the same seed of torch, run returns a different result the second time"

    def test_without_texts_or_examples(self) -> None:
        with explained("without texts of the steps, run fails; write texts with step.generate(model, examples)"):
            self.run(self.subject(self.examples(), written=False))
        message = (
            "without examples, run must return a result, or raise a DataError or an UnavailableError that says why"
        )
        with explained(message), contextlib.suppress(MmgenError):
            self.run(self.subject(()))


def state(model: Any) -> dict[str, Any]:
    """What a probe must not change, by parameter."""
    named = model.named_parameters()
    return {name: (weights.tolist(), weights.requires_grad, weights.grad is None) for name, weights in named}


class RendererSuite(Suite[RendererConfig]):
    """What the page and the terminal rely on. `config()` returns a `RendererConfig`, `predictions()` the predictions of
    `examples()`."""

    def examples(self) -> Sequence[Example]:
        """Examples with the labels that the renderer reads; by default the toy data set's, which have texts."""
        return Toy().build().split("train")

    def predictions(self, examples: Sequence[Example]) -> Sequence[Any]:
        """One prediction for each example, some right and some wrong; by default texts."""
        return [Generation(example.id, " ".join(example.targets[:1]) or "a text", (), -1.0) for example in examples]

    def test_cards_and_lines(self) -> None:
        """Pieces are the example's texts; without labels nothing is right or wrong."""
        renderer, examples = self.buildable().build(), self.examples()
        for example, prediction in zip(examples, self.predictions(examples), strict=True):
            line = renderer.line(resolve(example), prediction)
            plain = isinstance(line, str) and line.strip() and "\n" not in line
            assert plain, f"line of '{example.id}' is {line!r:.60}; expected one line of text"
            resolved, blank = resolve(example), resolve(replace(example, labels={}, targets=()))
            card, again, unknown = (renderer.card(e, prediction) for e in (resolved, resolved, blank))
            assert_type(card, Card, "card")
            place = f"card of '{example.id}'"
            assert card == again, f"{place} differs the second time"
            for field, shown in card.texts.items():
                text, read = "".join(piece.text for piece in shown), resolved.inputs.get(field)
                assert text == read, f"{place}: the pieces of '{field}' are {text!r:.60}; the example has {read!r:.60}"
            marked = any(bar.right for bar in unknown.bars) or any(choice.right for choice in unknown.choices)
            silent = not marked and unknown.right is None and unknown.right_box is None and not unknown.answers
            assert silent, f"{place}, which has no labels, says what is right"


class CallbackSuite(Suite[CallbackConfig]):
    """Plays the events of a small run, and of a run that resumes. `config()` returns a `CallbackConfig` that needs no
    network."""

    def play(self, callback: Callback, folder: Path, done: int = 0) -> None:
        """The events of a run with one step of two updates, from update `done` on. `folder` exists."""
        record = {**RECORD, "validation_loss": 2.25}
        callback.on_run_begin(RunInfo("suite", "default", 0, folder, RECIPE, ("first",)))
        callback.on_step_begin("first", done, 2)
        for number in range(done, 2):
            callback.on_update("first", {**RECORD, "update": number})
        callback.on_validation("first", {"update": 1, "validation_loss": 2.25})
        callback.on_epoch_end("first", record)
        callback.on_step_end("first", {"cider": 0.5, "no_value": None})
        callback.on_run_end(["| | cider |\n|---|---|\n| first | 50.0 |"])
        callback.close()
        same = record == {**RECORD, "validation_loss": 2.25}
        assert same, f"on_epoch_end changed its record to {record}; copy a record before you change it"

    def test_it_watches_a_run(self) -> None:
        """None, a whole one, and one that resumes."""
        before, build = torch.get_rng_state(), self.buildable().build
        build().close()
        with tempfile.TemporaryDirectory() as folder:
            for done in (0, 1):
                self.play(build(), Path(folder), done)
        assert torch.equal(before, torch.get_rng_state()), (
            "the callback draws from torch's global generator, from which training draws dropout at the same time; use "
            "a torch.Generator or random.Random"
        )


class CommandSuite(Suite[CommandConfig]):
    """Checks of a command: the click command, its help, and that help imports nothing heavy."""

    def test_help_describes_the_command(self) -> None:
        config = self.buildable()
        message = f"building the command '{config.type}' fails, or imports torch; import it inside the function"
        with explained(message), mock.patch.dict(sys.modules, torch=None):
            command = config.build()
        wrong = f"{type(config).__name__} returned {command!r}; it must return a click.Command"
        assert isinstance(command, click.Command), wrong
        result = CliRunner().invoke(command, ["--help"])
        assert result.exit_code == 0, f"`mmgen {config.type} --help` ends with {result.exit_code}: {result.output}"
        assert command.help, f"`mmgen {config.type} --help` does not describe the command; give it a docstring"
