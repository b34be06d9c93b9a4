"""The one walk through the data before training: which of `step_checks` examples need, targets cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from ..data.datasets import Datasets
from ..model import Model
from ..progress import Progress
from ..recipe.tables import GENERATOR, Recipe
from ..tensors import Example
from .step_checks import check_examples, check_targets, check_training_patterns, check_validation, try_inputs

CHUNK = 4096  # examples in memory at a time
Visit = Callable[[Sequence[Example]], object]


@dataclass
class DataPass:
    """Checks the data of steps before the first is trained."""

    recipe: Recipe
    model: Model
    datasets: Datasets
    progress: Progress
    _visits: dict[int, dict[object, Visit]] = field(default_factory=dict)  # examples' identity -> what visits them
    _examples: dict[int, Sequence[Example]] = field(default_factory=dict)
    _cut: dict[int, list[int]] = field(default_factory=dict)  # examples' identity -> targets that are cut, and all

    def run(self, steps: Sequence[str]) -> None:
        """Raises DataError for examples without an input, images without features, and training examples without a
        target; PluginError for an input that reads differently twice, or depends on padding; DataError for a pattern
        of [training] that matches no parameter."""
        cut: dict[int, tuple[int, int]] = {}
        for step in steps:
            check_training_patterns(step, self.recipe, self.model)
            check_validation(step, self.recipe, self.datasets)
            self._plan_visits(step)
        for key, visits in self._visits.items():
            examples = iter(self._examples[key])
            while chunk := list(islice(examples, CHUNK)):
                for visit in visits.values():
                    visit(chunk)
        for step in steps:
            sources = self.datasets.sources(step)
            by_name = {name: id(source.examples) for name, source in sources.items()}
            counts = {name: self._cut[key] for name, key in by_name.items() if key in self._cut}
            cut |= {by_name[name]: (count, total) for name, (count, total) in counts.items()}
        self._say_cut(cut)
        for step in steps:
            try_inputs(self.recipe, step, self.model, self.datasets)

    def _plan_visits(self, step: str) -> None:
        """What a step asks of its examples, of each only once."""
        recipe, sources = self.recipe, self.datasets.sources(step)
        for source in sources.values():
            place, owner = f"step '{step}'", "the step's"
            if len(sources) > 1:
                place, owner = f"step '{step}', data '{source.name}'", "its"
            for examples in (source.examples, source.validation):
                for name in recipe.required_inputs(source.inputs, source.objectives):
                    self._check_input(place, f"'{name}' from {owner} inputs", name, examples)
                if GENERATOR in source.objectives:
                    remedy = f"'{GENERATOR}' from {owner} objectives"
                    self._add_visit(examples, GENERATOR, partial(check_targets, place, remedy, examples))
            if GENERATOR in source.objectives:
                counts = self._cut.setdefault(id(source.examples), [0, 0])
                self._add_visit(source.examples, "cut", partial(self._count_cut, counts))
        settings = recipe.steps[step]
        for name in recipe.required_inputs(settings.inputs, settings.objectives) if settings.evaluate else ():
            remedy = f"'{name}' from the step's inputs"
            self._check_input(f"step '{step}'", remedy, name, self.datasets.scored_by(step))

    def _check_input(self, place: str, remedy: str, name: str, examples: Sequence[Example]) -> None:
        reader, fields = self.model.embedders[name].reader, self.recipe.inputs[name].fields
        self._add_visit(examples, ("input", name), partial(check_examples, place, remedy, reader, fields, examples))

    def _add_visit(self, examples: Sequence[Example], key: object, visit: Visit) -> None:
        self._examples[id(examples)] = examples
        self._visits.setdefault(id(examples), {}).setdefault(key, visit)

    def _count_cut(self, counts: list[int], examples: Sequence[Example]) -> None:
        counts[0] += self.model.generator.reader.cut(examples)
        counts[1] += sum(len(example.targets) for example in examples)

    def _say_cut(self, cut: Mapping[int, tuple[int, int]]) -> None:
        for count, total in cut.values():
            if count:
                self.progress.say(
                    f"{count} of {total} targets are longer than max_tokens = {self.model.generator.max_tokens} (with "
                    "the end token) and are cut"
                )
