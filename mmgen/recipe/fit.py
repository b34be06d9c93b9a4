"""What does not fit together in a recipe whose tables are right: parts and backbone, steps, objectives, data, metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..configs import PROMPT, EmbedderConfig, FeaturesConfig, GeneratorConfig, ObjectiveConfig
from ..errors import did_you_mean
from .names import Wrong
from .tables import GENERATOR, Recipe, SourceConfig
from .toml_lines import Key
from .training import Training


def fit_problems(recipe: Recipe, stored: bool) -> Iterator[Wrong]:
    """All that does not fit. `stored`: the recipe of a finished run or an export, which has trained already."""
    if recipe.generator and (wrong := recipe.generator.backbone_problem(recipe.backbone)):
        yield ("generator", "type"), wrong
    for name, config in recipe.inputs.items():
        if wrong := config.backbone_problem(recipe.backbone):
            yield ("inputs", name, "type"), wrong
    decodings = {("steps", name, "decoding"): step.decoding for name, step in recipe.steps.items()}
    for place, options in ({("decoding",): recipe.decoding} | decodings).items():
        for option, reason in recipe.generator.option_errors(options).items() if recipe.generator and options else ():
            yield (*place, option), reason
    if stored:
        return
    yield from _feature_problems(recipe)
    yield from _metric_problems(recipe)
    yield from _unsupported_training(recipe)
    for name in recipe.steps:
        yield from _StepProblems(recipe, name).all()


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
    labels = [{*data.labels} for step in steps.values() for data in (recipe.data, *step.data_sets[:1])]
    for name, config in recipe.metrics.items() if steps else ():
        if not config.judges & gives:
            scored, predicted = " or ".join(sorted(config.judges)), ", ".join(sorted(gives)) or "nothing"
            yield ("metrics", name), f"scores {scored}, but the steps predict {predicted}; remove this metric"
        elif not any({*config.required_labels} <= known for known in labels):
            needed = " and ".join(f"the label '{label}'" for label in config.required_labels)
            yield ("metrics", name), f"needs examples with {needed}, but no data set has them; remove it"


def _unsupported_training(recipe: Recipe) -> Iterator[Wrong]:
    """Training settings that the backbone does not support, once for [training] and once for each step's own."""
    own = {("steps", name, "training"): step.training for name, step in recipe.steps.items()}
    for key, verb in (("gradient_checkpointing", "recompute"), ("torch_compile", "compile")):
        of_all = getattr(recipe.training, key)
        for place, training in ({("training",): recipe.training} if of_all else own).items():
            if getattr(training, key) and not getattr(recipe.backbone, f"supports_{key}"):
                message = f"the backbone '{recipe.backbone.type}' cannot {verb} its layers; remove this key"
                yield (*place, key), message


class _StepProblems:
    """What does not fit in one step."""

    def __init__(self, recipe: Recipe, name: str) -> None:
        self.recipe, self.step, self.place = recipe, recipe.steps[name], ("steps", name)
        self.inputs = {name: recipe.inputs[name] for name in self.step.inputs}
        named: dict[str, ObjectiveConfig | GeneratorConfig | None] = {GENERATOR: recipe.generator, **recipe.objectives}
        self.known = {name: config for name, config in named.items() if config is not None}
        self.objectives = {name: recipe.objectives[name] for name in self.step.objectives if name != GENERATOR}
        self.sources = [*recipe.sources(name).values()]

    def all(self) -> Iterator[Wrong]:
        for message in self._init_problems():
            yield (*self.place, "objectives"), message
        yield from self._split_updates()
        if len(self.sources) > 1:
            yield from self._mixture_problems()
        for number, source in enumerate(self.sources):
            written = bool(self.step.data and self.step.data[number].objectives)
            place = (*self.place, "data", str(number), "objectives") if written else (*self.place, "objectives")
            yield from ((place, message) for message in self._source_problems(source))
        yield from self._evaluate_problems()
        if not self.step.train:
            yield from self._untrained_problems()

    def _init_problems(self) -> Iterator[str]:
        """Problems of `init_from`: the objectives whose trained heads initialise the heads of a step."""
        for name in self.step.objectives:
            if not (init_from := getattr(self.known[name], "init_from", "")):
                continue
            exporter, problem = self.known.get(init_from), f"'{name}' has init_from = \"{init_from}\", but "
            if exporter is None:
                yield f"{problem}no objective has that name{did_you_mean(init_from, self.known)}"
            elif not getattr(exporter, "exports_weights", False):
                yield f"{problem}the head of '{init_from}' has no hidden layer to copy; name another objective"

    def _split_updates(self) -> Iterator[Wrong]:
        """What would split the updates of a step, if one of its objectives has `over_batch`."""
        over_batch = next((name for name, config in self.objectives.items() if config.over_batch), None)
        if over_batch is None:
            return
        training, base = self.step.training, self.recipe.training
        size, pairs = training.micro_batch_size, training.batch_size
        if size is not None and size < pairs:
            table: Key = ("training",) if base.micro_batch_size == size else (*self.place, "training")
            yield (
                (*table, "micro_batch_size"),
                f"must be at least batch_size ({pairs}), not {size}, since '{over_batch}' of step '{self.place[1]}' "
                "compares all pairs of an update; raise it, or lower batch_size",
            )
        if len(self.step.data) > 1:
            yield (
                (*self.place, "data"),
                f"must be one data set, since '{over_batch}' compares all pairs of an update; use a step for each data "
                "set",
            )

    def _mixture_problems(self) -> Iterator[Wrong]:
        """Problems of several data sets that train together."""
        place, data_sets = (*self.place, "data"), self.step.data_sets
        for number, source in enumerate(self.sources):
            if (same := data_sets.index(data_sets[number])) < number:
                yield (
                    (*place, str(number)),
                    f"duplicate of data.{same}, so the ids of examples collide; keep one of the two, with the sum of "
                    "both shares",
                )
            if not source.objectives:
                yield (
                    (*place, str(number)),
                    f"no objective of the step fits the inputs of this data set ({', '.join(source.inputs)}); remove "
                    "the data set",
                )
        for name, config in self.objectives.items():
            if not any(name in source.objectives for source in self.sources):
                why = config.errors(self.inputs) or "no data set has all inputs that it reads"
                yield (*self.place, "objectives"), f"no data set of the step trains '{name}': {why}"
        shares, pairs = [source.share for source in self.sources], self.step.training.batch_size
        if (expected := pairs * shares[0] / sum(shares)) < 1:  # every update takes at least one pair of the first
            yield (
                (*place, "0", "share"),
                f"this share gives the first data set only {expected:.2g} of {pairs} pairs per update, and every "
                "update needs at least one; raise the share or training.batch_size, or put another data set first",
            )
        first = self.sources[0]
        if self.step.evaluate and self.recipe.scored_data(self.place[1]):
            needed = [label for config in self.objectives.values() if config.gives for label in config.required_labels]
            absent = [f"input '{name}'" for name in self.inputs if name not in first.inputs]
            absent += [f"label '{label}'" for label in needed if label not in first.data.labels]
            if absent:
                yield (
                    (*self.place, "evaluate"),
                    f"the step is scored on its first data set, '{first.data.type}', which has no {absent[0]}; list "
                    "another data set first, or set evaluate = false",
                )

    def _source_problems(self, source: SourceConfig) -> Iterator[str]:
        """Problems of the objectives that one data set trains together."""
        inputs: dict[str, EmbedderConfig] = {name: self.inputs[name] for name in source.inputs}
        trained = {name: config for name, config in self.objectives.items() if name in source.objectives}
        data, only_one = source.data, "but only one objective per step can; use two steps"
        for name, config in trained.items():
            if wrong := config.errors(inputs):
                yield f"'{name}' {wrong}"
            if absent := [label for label in config.required_labels if label not in data.labels]:
                have = ", ".join(data.labels) or "none"
                yield f"'{name}' needs examples with the label '{absent[0]}', but data '{data.type}' has: {have}"
        hidden = [(part, name) for name, config in trained.items() for part in config.hidden(inputs)]
        for part, count in Counter(part for part, _ in hidden).items():
            if count > 1:
                both = " and ".join(f"'{name}'" for hidden_part, name in hidden if hidden_part == part)
                yield f"{both} both mask the input '{part}', {only_one}"
        makers = [name for name, config in trained.items() if config.makes_rows]
        if len(makers) > 1:
            yield f"'{makers[0]}' and '{makers[1]}' both build rows from examples, {only_one}"
        generator = self.recipe.generator if GENERATOR in source.objectives else None
        if generator and PROMPT in data.labels and PROMPT not in generator.query_labels:
            yield (
                f"the generator '{generator.type}' does not read the prompts of data '{data.type}'; use a generator "
                "that does, such as masked, or data without prompts"
            )

    def _evaluate_problems(self) -> Iterator[Wrong]:
        """Problems of what a step predicts and is scored on."""
        step, evaluate = self.step, (*self.place, "evaluate")
        predictors = [name for name in step.objectives if self.known[name].gives]
        if len(predictors) > 1:
            message = "both make predictions, but only one objective per step can; use two steps"
            yield (*self.place, "objectives"), f"'{predictors[0]}' and '{predictors[1]}' {message}"
        if step.evaluate == "own" and not step.data:
            add = f"add [{'.'.join(self.place)}.data], or set evaluate = true"
            yield evaluate, f'"own" needs a data set of the step; {add}'
        if step.decoding is not None and not any(self.known[name].gives == "text" for name in predictors):
            yield (*self.place, "decoding"), "has no effect, because the step writes no texts; remove it"
        if step.evaluate and not predictors:
            what = " and ".join(f"'{name}'" for name in step.objectives)
            yield evaluate, f"no predictions of {what} to score; set evaluate = false"

    def _untrained_problems(self) -> Iterator[Wrong]:
        """Problems of a step that trains nothing: it has the weights of another step."""
        step, start = self.step, self.recipe.steps[self.step.start]
        if not step.evaluate:
            yield (*self.place, "evaluate"), "a step that trains nothing must be evaluated; set evaluate = true"
        for key in ("inputs", "objectives"):
            for name in [name for name in getattr(step, key) if name not in getattr(start, key)]:
                message = f"is not in the {key} of step '{step.start}', whose weights this step has; remove it"
                yield (*self.place, key), f"'{name}' {message}"
        for key in Training.model_fields:
            if getattr(step.training, key) != getattr(start.training, key):
                yield (*self.place, "training", key), "has no effect, because the step trains nothing; remove it"
