"""What does not fit together in a recipe whose tables are right: backbone, inputs, objectives, data, metrics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ..configs import PROMPT, BackboneConfig, DatasetConfig, ExtractorConfig, FeaturesConfig
from ..errors import did_you_mean, unknown
from .tables import GENERATOR, Recipe, Step, placed_parts
from .toml_lines import Key

Wrong = tuple[Key, str]  # place in the recipe, what is wrong and what to do
ONLY_ONE = "but only one objective per step can; use two steps"


def fit_problems(recipe: Recipe, stored: bool, lacking: bool = False) -> Iterator[Wrong]:
    """All that does not fit. `stored`: the recipe of a finished run or an export, which has trained already. `lacking`:
    the recipe lacks its wrong parts (a wrong table is False); a check ends where it reads one of them."""
    checks = [_decoding_problems(recipe), _backbone_problems(recipe)]
    if not stored:
        checks += [_data_keys(recipe), _feature_problems(recipe), _random_problems(recipe), _metric_problems(recipe)]
        checks += [_step_problems(recipe, name) for name in recipe.steps or ()]
    for problems in checks:
        with contextlib.suppress(*(AttributeError, KeyError, TypeError) * lacking):
            for key, wrong in problems:
                lacking |= key == (GENERATOR,)  # missing
                yield key, wrong


def _decoding_problems(recipe: Recipe) -> Iterator[Wrong]:
    """A missing generator, or options that it refuses."""
    for name, step in recipe.steps.items():
        if recipe.generator:
            for option, wrong in recipe.generator.refuses(recipe.decoding_of(name)).items():
                yield ("steps", name, "decoding", option), wrong
        elif recipe.generator is None and any(
            head == GENERATOR or recipe.objectives[head].asks_generator for head in step.objectives
        ):
            message = f"is missing, and step '{name}' needs it: add a table [generator], or name other objectives"
            yield (GENERATOR,), message
            return


def _backbone_problems(recipe: Recipe) -> Iterator[Wrong]:
    """Parts that do not work with the backbone."""
    for name, config in recipe.inputs.items():
        if wrong := config.backbone_problem(recipe.backbone):
            yield ("inputs", name, "type"), wrong
    if recipe.generator and (wrong := recipe.generator.backbone_problem(recipe.backbone)):
        yield (GENERATOR, "type"), wrong


def _data_keys(recipe: Recipe) -> Iterator[Wrong]:
    for key in ("inputs", "objectives"):
        if getattr(recipe.data, key):
            yield ("data", key), "is a key of the data of a step; remove it"


def _feature_problems(recipe: Recipe) -> Iterator[Wrong]:
    """Inputs of steps without features, and without an extractor to compute them."""
    read = {name for step in recipe.steps.values() for name in step.inputs}
    for name, config in recipe.inputs.items():
        if name not in read or not isinstance(config, FeaturesConfig) or config.features is not None:
            continue
        if config.extractor is None or config.extractor.source == "file":
            message = (
                f"has no features; set features to a store (`mmgen features import` writes one from published files), "
                f"or add [inputs.{name}.extractor] to compute them from pictures"
            )
            yield ("inputs", name), message


def _random_problems(recipe: Recipe) -> Iterator[Wrong]:
    """Parts with random weights, in a recipe that refuses them."""
    for path, part in placed_parts(recipe) if recipe.pretrained else ():
        random = isinstance(part, ExtractorConfig) and part.is_random()
        if random or (isinstance(part, BackboneConfig) and part.base_model() is None):
            yield (
                (*path, "weights"),
                "random weights, which this recipe refuses (pretrained = true); name published ones",
            )


def _metric_problems(recipe: Recipe) -> Iterator[Wrong]:
    """Metrics that score no step, because of the kind of predictions or of the labels of the data."""
    steps = [name for name, step in recipe.steps.items() if step.evaluate]
    judging = {name for step in steps for name in recipe.judging(step)}
    for name, config in recipe.metrics.items() if steps else ():
        if name not in judging:
            needed = " and ".join(
                [" or ".join(sorted(config.judges)), *map("the label '{}'".format, config.required_labels)]
            )
            yield ("metrics", name), f"scores no step: it needs predictions of the kind {needed}; remove it"


def _step_problems(recipe: Recipe, name: str) -> Iterator[Wrong]:
    of_training = _training_problems if recipe.steps[name].train else _untrained_problems
    for problems in (_evaluation_problems, of_training):
        yield from ((("steps", name, *key), wrong) for key, wrong in problems(recipe, name))


def _untrained_problems(recipe: Recipe, name: str) -> Iterator[Wrong]:
    """Problems of a step that trains nothing: it has the weights of another step."""
    step = recipe.steps[name]
    if not step.evaluate:
        yield ("evaluate",), "a step that trains nothing must be evaluated; set evaluate = true"
    if recipe.training and step.training != recipe.training:
        yield ("training",), "has no effect, because the step trains nothing; remove it"
    for key in ("inputs", "objectives"):
        before = {*getattr(recipe.steps[step.start], key)}
        if GENERATOR in before:
            before |= {name for name, head in recipe.objectives.items() if head.asks_generator}
        for listed in sorted({*getattr(step, key)} - before):
            message = f"is not in the {key} of step '{step.start}', whose weights this step has; remove it"
            yield (key,), f"'{listed}' {message}"


def _training_problems(recipe: Recipe, name: str) -> Iterator[Wrong]:
    """Problems of what a step trains on which data."""
    step = recipe.steps[name]
    unlisted = [
        (("data", str(number), key), problem)
        for number, data in enumerate(step.data)
        for key in ("inputs", "objectives")
        for listed in getattr(data, key) or ()
        if (problem := unknown(listed, getattr(step, key)))
    ]
    yield from unlisted or _data_problems(recipe, step, [*recipe.sources(name).values()])
    for head in step.objectives:
        init_from = getattr(recipe.heads[head], "init_from", "")
        if init_from and not getattr(recipe.heads.get(init_from), "exports_weights", False):
            hint = "" if init_from in recipe.heads else did_you_mean(init_from, recipe.heads)
            message = f'init_from = "{init_from}" names no objective with a hidden layer to copy{hint}'
            yield ("objectives",), f"'{head}': {message}"
    comparing = (head for head in step.objectives if recipe.heads[head].over_batch)
    reasons = [f"since '{head}' of step '{name}' compares all pairs of an update" for head in comparing]
    for why in reasons if step.data[1:] else ():
        yield ("data",), f"must be one data set, {why}; use a step for each data set"
    training = recipe.training and step.training
    size, pairs = training.micro_batch_size, training.batch_size
    for why in reasons if size is not None and size < pairs else ():
        message = f"must be at least batch_size ({pairs}), not {size}, {why}; raise it, or lower batch_size"
        yield ("training", "micro_batch_size"), message
    if training.gradient_checkpointing and not recipe.backbone.supports_gradient_checkpointing:
        message = f"the backbone '{recipe.backbone.type}' cannot recompute its layers; remove this key"
        yield ("training", "gradient_checkpointing"), message


def _data_problems(recipe: Recipe, step: Step, sources: Sequence[DatasetConfig]) -> Iterator[Wrong]:
    """Problems of the data sets that a step trains on together."""
    for number, data in enumerate(sources):
        several = ("data", str(number)) if len(sources) > 1 else ()
        if not data.objectives:
            message = f"no objective of the step fits the inputs of this data set ({', '.join(data.inputs or ())})"
            yield several, f"{message}; remove the data set"
        yield from (((*several, "objectives"), wrong) for wrong in _together(recipe, data))
    for name in step.objectives:
        if not any(name in (data.objectives or ()) for data in sources):
            yield ("objectives",), f"no data set of the step trains '{name}': none has all inputs that it reads"


def _together(recipe: Recipe, data: DatasetConfig) -> Iterator[str]:
    """Problems of the objectives that one data set trains together."""
    inputs = {name: recipe.inputs[name] for name in data.inputs or ()}
    masked_by, maker = dict[str, str](), ""
    for name in data.objectives or ():
        config = recipe.heads[name]
        if wrong := config.errors(inputs):
            yield f"'{name}' {wrong}"
        if absent := [label for label in config.required_labels if label not in data.labels]:
            have = ", ".join(data.labels) or "none"
            yield f"'{name}' needs examples with the label '{absent[0]}', but data '{data.type}' has: {have}"
        for part in config.hidden(inputs):
            if (first := masked_by.setdefault(part, name)) != name:
                yield f"'{first}' and '{name}' both mask the input '{part}', {ONLY_ONE}"
        if config.makes_rows and maker:
            yield f"'{maker}' and '{name}' both build rows from examples, {ONLY_ONE}"
        maker = name if config.makes_rows else maker
        if config.kind == GENERATOR and PROMPT in {*data.labels} - {*config.query_labels}:
            yield (
                f"the generator '{config.type}' does not read the prompts of data '{data.type}'; use a generator "
                "that does, such as masked, or data without prompts"
            )


def _evaluation_problems(recipe: Recipe, name: str) -> Iterator[Wrong]:
    """Problems of what a step predicts and is scored on."""
    step = recipe.steps[name]
    if step.evaluate == "own" and not step.data:
        yield ("evaluate",), f'"own" needs a data set of the step; add [steps.{name}.data], or set evaluate = true'
    predicting = {head: gives for head in step.objectives if (gives := recipe.heads[head].gives)}
    if len(predicting) > 1:
        yield ("objectives",), f"{' and '.join(map(repr, predicting))} make predictions, {ONLY_ONE}"
    if step.evaluate and not predicting:
        what = " and ".join(map(repr, step.objectives))
        yield ("evaluate",), f"no predictions of {what} to score; set evaluate = false"
