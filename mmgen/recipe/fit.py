"""What does not fit together in a recipe whose tables are right: backbone, inputs, objectives, data, metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..configs import PROMPT, FeaturesConfig, GeneratorConfig, ObjectiveConfig
from ..errors import did_you_mean
from .names import Wrong
from .tables import GENERATOR, Recipe, SourceConfig
from .toml_lines import Key
from .training import Training

ONLY_ONE = "but only one objective per step can; use two steps"


def fit_problems(recipe: Recipe, stored: bool) -> Iterator[Wrong]:
    """All that does not fit. `stored`: the recipe of a finished run or an export, which has trained already."""
    if recipe.generator:
        if wrong := recipe.generator.backbone_problem(recipe.backbone):
            yield ("generator", "type"), wrong
        steps = [(("steps", name, "decoding"), step.decoding) for name, step in recipe.steps.items() if step.decoding]
        for place, options in [(("decoding",), recipe.decoding), *steps]:
            for option, wrong in recipe.generator.option_errors(options).items():
                yield (*place, option), wrong
    for name, config in recipe.inputs.items():
        if wrong := config.backbone_problem(recipe.backbone):
            yield ("inputs", name, "type"), wrong
    if not stored:
        yield from _feature_problems(recipe)
        yield from _metric_problems(recipe)
        yield from _unsupported_training(recipe)
        for name, step in recipe.steps.items():
            for place, wrong in _StepProblems(recipe, name).all():
                size = recipe.training.micro_batch_size
                inherited = place[-1] == "micro_batch_size" and step.train and size == step.training.micro_batch_size
                yield (place if inherited else ("steps", name, *place)), wrong


def _feature_problems(recipe: Recipe) -> Iterator[Wrong]:
    """Inputs of steps without features, and without an extractor to compute them."""
    for name in dict.fromkeys(name for step in recipe.steps.values() for name in step.inputs):
        config = recipe.inputs[name]
        if not isinstance(config, FeaturesConfig) or config.features is not None:
            continue
        if config.extractor is None:
            message = f'has no features; set features = "FILE", or add [inputs.{name}.extractor] to compute them'
            yield ("inputs", name), message
        elif config.extractor.source == "file":
            kind = config.extractor.type
            yield (
                ("inputs", name, "extractor"),
                f"{kind} reads published files, not images; create a feature file with `mmgen features import --type "
                f"{kind}`, and set inputs.{name}.features to it",
            )


def _metric_problems(recipe: Recipe) -> Iterator[Wrong]:
    """Metrics that score a kind of predictions which no step makes, or examples that no data set has."""
    steps = {name: step for name, step in recipe.steps.items() if step.evaluate}
    gives = {predicts[1] for name in steps if (predicts := recipe.predicts(name))}
    data_sets = [recipe.data, *(data for step in steps.values() for data in step.data_sets[:1])]
    for name, config in recipe.metrics.items() if steps else ():
        if not config.judges & gives:
            scored, predicted = " or ".join(sorted(config.judges)), ", ".join(sorted(gives)) or "nothing"
            yield ("metrics", name), f"scores {scored}, but the steps predict {predicted}; remove this metric"
        elif not any({*config.required_labels} <= {*data.labels} for data in data_sets):
            needed = " and ".join(f"the label '{label}'" for label in config.required_labels)
            yield ("metrics", name), f"needs examples with {needed}, but no data set has them; remove it"


def _unsupported_training(recipe: Recipe) -> Iterator[Wrong]:
    """Training settings that the backbone does not support, once for [training] or once for each step's own."""
    tables: list[tuple[Key, Training]] = [(("training",), recipe.training)]
    if not recipe.training.gradient_checkpointing:
        tables = [(("steps", name, "training"), step.training) for name, step in recipe.steps.items()]
    for place, training in tables:
        if training.gradient_checkpointing and not recipe.backbone.supports_gradient_checkpointing:
            message = f"the backbone '{recipe.backbone.type}' cannot recompute its layers; remove this key"
            yield (*place, "gradient_checkpointing"), message


class _StepProblems:
    """What does not fit in one step, each with its place in the step's table."""

    def __init__(self, recipe: Recipe, name: str) -> None:
        self.recipe, self.name, self.step = recipe, name, recipe.steps[name]
        self.inputs = {name: recipe.inputs[name] for name in self.step.inputs}
        self.heads: dict[str, ObjectiveConfig | GeneratorConfig] = {**recipe.objectives}
        if recipe.generator:
            self.heads[GENERATOR] = recipe.generator
        self.objectives = {name: recipe.objectives[name] for name in self.step.objectives if name != GENERATOR}
        self.sources = [*recipe.sources(name).values()]

    def all(self) -> Iterator[Wrong]:
        yield from self._init_problems()
        yield from self._split_updates()
        if len(self.sources) > 1:
            yield from self._mixture_problems()
        for number, source in enumerate(self.sources):
            of_source = ("data", str(number)) if len(self.sources) > 1 else ()
            yield from (((*of_source, "objectives"), message) for message in self._source_problems(source))
        yield from self._evaluate_problems()
        if not self.step.train:
            yield from self._untrained_problems()

    def _init_problems(self) -> Iterator[Wrong]:
        """Problems of `init_from`: the objectives whose trained heads initialise the heads of a step."""
        for name in self.step.objectives:
            if init_from := getattr(self.heads[name], "init_from", ""):
                problem = f"'{name}' has init_from = \"{init_from}\", but "
                if init_from not in self.heads:
                    hint = did_you_mean(init_from, self.heads)
                    yield ("objectives",), f"{problem}no objective has that name{hint}"
                elif not getattr(self.heads[init_from], "exports_weights", False):
                    message = f"{problem}the head of '{init_from}' has no hidden layer to copy; name another objective"
                    yield ("objectives",), message

    def _split_updates(self) -> Iterator[Wrong]:
        """What would split the updates of a step, if one of its objectives has `over_batch`."""
        over_batch = next((name for name, config in self.objectives.items() if config.over_batch), None)
        size, pairs = self.step.training.micro_batch_size, self.step.training.batch_size
        if over_batch and size is not None and size < pairs:
            yield (
                ("training", "micro_batch_size"),
                f"must be at least batch_size ({pairs}), not {size}, since '{over_batch}' of step '{self.name}' "
                "compares all pairs of an update; raise it, or lower batch_size",
            )
        if over_batch and len(self.step.data) > 1:
            why = f"since '{over_batch}' compares all pairs of an update; use a step for each data set"
            yield ("data",), f"must be one data set, {why}"

    def _mixture_problems(self) -> Iterator[Wrong]:
        """Problems of several data sets that train together."""
        first, data_sets = self.sources[0], self.step.data_sets
        for number, source in enumerate(self.sources):
            place: Key = ("data", str(number))
            if (same := data_sets.index(source.data)) < number:
                message = "so the ids of examples collide; keep one of the two, with the sum of both shares"
                yield place, f"duplicate of data.{same}, {message}"
            if not source.objectives:
                read = ", ".join(source.inputs)
                yield place, f"no objective of the step fits the inputs of this data set ({read}); remove the data set"
        for name, config in self.objectives.items():
            if not any(name in source.objectives for source in self.sources):
                why = config.errors(self.inputs) or "no data set has all inputs that it reads"
                yield ("objectives",), f"no data set of the step trains '{name}': {why}"
        pairs = self.step.training.batch_size
        expected = pairs * first.share / sum(source.share for source in self.sources)
        if expected < 1:  # every update takes at least one pair of the first
            yield (
                ("data", "0", "share"),
                f"this share gives the first data set only {expected:.2g} of {pairs} pairs per update, and every "
                "update needs at least one; raise the share or training.batch_size, or put another data set first",
            )
        if self.step.evaluate and self.recipe.scored_data(self.name):
            needed = [label for config in self.objectives.values() if config.gives for label in config.required_labels]
            absent = [f"input '{name}'" for name in self.inputs if name not in first.inputs]
            absent += [f"label '{label}'" for label in needed if label not in first.data.labels]
            if absent:
                yield (
                    ("evaluate",),
                    f"the step is scored on its first data set, '{first.data.type}', which has no {absent[0]}; list "
                    "another data set first, or set evaluate = false",
                )

    def _source_problems(self, source: SourceConfig) -> Iterator[str]:
        """Problems of the objectives that one data set trains together."""
        inputs, data = {name: self.inputs[name] for name in source.inputs}, source.data
        trained = {name: config for name, config in self.objectives.items() if name in source.objectives}
        for name, config in trained.items():
            if wrong := config.errors(inputs):
                yield f"'{name}' {wrong}"
            if absent := [label for label in config.required_labels if label not in data.labels]:
                have = ", ".join(data.labels) or "none"
                yield f"'{name}' needs examples with the label '{absent[0]}', but data '{data.type}' has: {have}"
        hidden = [(part, f"'{name}'") for name, config in trained.items() for part in config.hidden(inputs)]
        for part, count in Counter(part for part, _ in hidden).items():
            if count > 1:
                both = " and ".join(name for hidden_part, name in hidden if hidden_part == part)
                yield f"{both} both mask the input '{part}', {ONLY_ONE}"
        makers = [name for name, config in trained.items() if config.makes_rows]
        if len(makers) > 1:
            yield f"'{makers[0]}' and '{makers[1]}' both build rows from examples, {ONLY_ONE}"
        generator = self.recipe.generator if GENERATOR in source.objectives else None
        if generator and PROMPT in {*data.labels} - {*generator.query_labels}:
            yield (
                f"the generator '{generator.type}' does not read the prompts of data '{data.type}'; use a generator "
                "that does, such as masked, or data without prompts"
            )

    def _evaluate_problems(self) -> Iterator[Wrong]:
        """Problems of what a step predicts and is scored on."""
        step, gives = self.step, {name: self.heads[name].gives for name in self.step.objectives}
        predictors = [f"'{name}'" for name in gives if gives[name]]
        if len(predictors) > 1:
            yield ("objectives",), f"{predictors[0]} and {predictors[1]} both make predictions, {ONLY_ONE}"
        if step.evaluate == "own" and not step.data:
            add = f"add [steps.{self.name}.data], or set evaluate = true"
            yield ("evaluate",), f'"own" needs a data set of the step; {add}'
        if step.decoding is not None and "text" not in gives.values():
            yield ("decoding",), "has no effect, because the step writes no texts; remove it"
        if step.evaluate and not predictors:
            what = " and ".join(f"'{name}'" for name in gives)
            yield ("evaluate",), f"no predictions of {what} to score; set evaluate = false"

    def _untrained_problems(self) -> Iterator[Wrong]:
        """Problems of a step that trains nothing: it has the weights of another step."""
        step, start = self.step, self.recipe.steps[self.step.start]
        if not step.evaluate:
            yield ("evaluate",), "a step that trains nothing must be evaluated; set evaluate = true"
        for key in ("inputs", "objectives"):
            for name in [name for name in getattr(step, key) if name not in getattr(start, key)]:
                message = f"is not in the {key} of step '{step.start}', whose weights this step has; remove it"
                yield (key,), f"'{name}' {message}"
        for key in Training.model_fields:
            if getattr(step.training, key) != getattr(start.training, key):
                yield ("training", key), "has no effect, because the step trains nothing; remove it"
