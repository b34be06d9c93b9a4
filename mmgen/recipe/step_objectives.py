"""Check what steps train, predict and are scored on: objectives must fit inputs, data, settings and one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..configs import PROMPT, GeneratorConfig, ObjectiveConfig
from ..errors import did_you_mean
from .mixtures import Wrong, mixture_errors
from .tables import GENERATOR, SourceConfig, Step
from .training import Training


def objective_errors(name: str, step: Step, built: Mapping[str, Any]) -> Iterator[Wrong]:
    """Errors in the objectives of a step, and in the data sets that train them."""
    place = ("steps", name, "objectives")
    known: dict[str, ObjectiveConfig | GeneratorConfig | None] = {GENERATOR: built.get("generator")}
    known |= built["objectives"] or {}
    for objective, count in Counter(step.objectives).items():
        if objective not in known:
            choices = ", ".join(known)
            yield place, f"unknown objective '{objective}'{did_you_mean(objective, [*known])}; choose from: {choices}"
        if count > 1:
            yield place, f"'{objective}' is listed twice; list each objective once"
    yield from ((place, wrong) for wrong in _init_errors(step, known))
    inputs = {key: config for key, config in (built["inputs"] or {}).items() if key in step.inputs and config}
    trained = {objective: config for objective in step.objectives if (config := known.get(objective)) is not None}
    objectives = {key: config for key, config in trained.items() if isinstance(config, ObjectiveConfig)}
    data = built.get("data")
    yield from _split_updates(name, step, objectives, built["training"])
    if isinstance(step.data, tuple):
        yield from mixture_errors(name, step, inputs, objectives, data)
    for default in [*step.data_sets[:1], *([data] if data is not None else [])][:1]:
        for number, source in enumerate(step.sources(default, inputs, objectives).values()):
            source_place = ("steps", name, "data", str(number), "objectives") if isinstance(step.data, tuple) else place
            yield from ((source_place, wrong) for wrong in _source_errors(source, inputs, objectives))
            generator = trained.get(GENERATOR) if GENERATOR in source.objectives else None
            if isinstance(generator, GeneratorConfig) and PROMPT in {*source.data.labels} - {*generator.query_labels}:
                message = f"the generator '{generator.type}' does not read the prompts of data '{source.data.type}'; "
                yield source_place, message + "use a generator that does, such as masked, or data without prompts"
    yield from _evaluate_errors(name, step, [*trained], {key: config.gives for key, config in trained.items()})


def _init_errors(step: Step, known: Mapping[str, ObjectiveConfig | GeneratorConfig | None]) -> Iterator[str]:
    """Errors in `init_from`: the objectives whose trained heads initialise the heads of a step."""
    for objective in step.objectives:
        init_from = getattr(known.get(objective), "init_from", "")
        exporter = known.get(init_from)
        if init_from and init_from not in known:
            hint = did_you_mean(init_from, [*known])
            yield f"'{objective}' has init_from = \"{init_from}\", but no objective has that name{hint}"
        elif exporter is not None and not (isinstance(exporter, ObjectiveConfig) and exporter.exports_weights):
            yield (
                f"'{objective}' has init_from = \"{init_from}\", but the head of '{init_from}' has no hidden layer to "
                "copy; name another objective"
            )


def _source_errors(
    source: SourceConfig, inputs: Mapping[str, Any], objectives: Mapping[str, ObjectiveConfig]
) -> Iterator[str]:
    """Errors in the objectives that one data set trains together."""
    source_inputs = {name: config for name, config in inputs.items() if name in source.inputs}
    trained = {name: config for name, config in objectives.items() if name in source.objectives}
    for name, config in trained.items():
        if wrong := config.errors(source_inputs):
            yield f"'{name}' {wrong}"
        if absent := [label for label in config.required_labels if label not in source.data.labels]:
            have = ", ".join(source.data.labels) or "none"
            yield f"'{name}' needs examples with the label '{absent[0]}', but data '{source.data.type}' has: {have}"
    hidden = [(part, name) for name, config in trained.items() for part in config.hidden(source_inputs)]
    for part, count in Counter(part for part, _ in hidden).items():
        if count > 1:
            both = " and ".join(f"'{name}'" for hidden_part, name in hidden if hidden_part == part)
            yield f"{both} both mask the input '{part}', but only one objective per step can; use two steps"
    makers = [name for name, config in trained.items() if config.makes_rows]
    if len(makers) > 1:
        yield (
            f"'{makers[0]}' and '{makers[1]}' both build rows from examples, but only one objective per step can; use "
            "two steps"
        )


def untrained_errors(name: str, step: Step, steps: Mapping[str, Step | None]) -> Iterator[Wrong]:
    """Errors of a step that trains nothing: it has the weights of another step."""
    start = steps.get(step.start)
    if step.train:
        return
    if step.before is None:
        yield ("steps", name, "train"), "must not be empty, unless `start` names the step whose weights this step has"
    if not step.evaluate:
        yield ("steps", name, "evaluate"), "a step that trains nothing must be evaluated; set evaluate = true"
    if start is None:
        return
    for key in ("inputs", "objectives"):
        for unknown in [value for value in getattr(step, key) if value not in getattr(start, key)]:
            message = f"'{unknown}' is not in the {key} of step '{step.start}', whose weights this step has; remove it"
            yield ("steps", name, key), message
    for key in Training.model_fields:
        if getattr(step.training, key) != getattr(start.training, key):
            yield ("steps", name, "training", key), "has no effect, because the step trains nothing; remove it"


def _evaluate_errors(
    name: str, step: Step, objectives: Sequence[str], gives: Mapping[str, str | None]
) -> Iterator[Wrong]:
    """Errors in what a step predicts and is scored on."""
    predictors = [objective for objective in objectives if gives[objective]]
    if len(predictors) > 1:
        yield (
            ("steps", name, "objectives"),
            f"'{predictors[0]}' and '{predictors[1]}' both make predictions, but only one objective per step can; use "
            "two steps",
        )
    if step.evaluate == "own" and not step.data_sets:
        yield (
            ("steps", name, "evaluate"),
            f'"own" needs a data set of the step; add [steps.{name}.data], or set evaluate = true',
        )
    if step.decoding is not None and "text" not in {gives[objective] for objective in predictors}:
        yield ("steps", name, "decoding"), "has no effect, because the step writes no texts; remove it"
    if step.evaluate and objectives and not predictors:
        what = " and ".join(f"'{objective}'" for objective in objectives)
        yield ("steps", name, "evaluate"), f"no predictions of {what} to score; set evaluate = false"


def unscored_metrics(built: Mapping[str, Any]) -> Iterator[Wrong]:
    """Metrics that score a kind of prediction which no step makes, or examples that no data set has. Both are unknown
    where the config of an objective or of a data set is wrong."""
    known = {GENERATOR: built.get("generator"), **(built["objectives"] or {})}
    steps = [step for step in (built["steps"] or {}).values() if step is not None and step.evaluate]
    used = [known.get(objective) for step in steps for objective in step.objectives]
    gives, unknown = {config.gives for config in used if config is not None}, None in used
    data = [built.get("data"), *(step_data for step in steps for step_data in step.data_sets[:1])]
    known_data = built.get("data") is not None and None not in (built["steps"] or {}).values()
    for name, config in (built["metrics"] or {}).items():
        if steps and config is not None and not unknown and not config.judges & gives:
            scored, predicted = " or ".join(sorted(config.judges)), ", ".join(sorted(filter(None, gives))) or "nothing"
            yield ("metrics", name), f"scores {scored}, but the steps predict {predicted}; remove this metric"
        elif (
            steps
            and config is not None
            and known_data
            and not any({*config.required_labels} <= {*data_set.labels} for data_set in data)
        ):
            yield (
                ("metrics", name),
                f"needs examples with {_name_labels(config.required_labels)}, but no data set has them; remove it",
            )


def _split_updates(
    name: str, step: Step, objectives: Mapping[str, ObjectiveConfig], base: Training | None
) -> Iterator[Wrong]:
    """What would split the updates of a step, if one of its objectives has `over_batch`. `base`: [training]."""
    over_batch = next((objective for objective, config in objectives.items() if config.over_batch), None)
    if over_batch is None:
        return
    size, pairs = step.training.micro_batch_size, step.training.batch_size
    if size is not None and size < pairs:
        table = ("training",) if base is not None and base.micro_batch_size == size else ("steps", name, "training")
        yield (
            (*table, "micro_batch_size"),
            f"must be at least batch_size ({pairs}), not {size}, since '{over_batch}' of step '{name}' compares all "
            "pairs of an update; raise it, or lower batch_size",
        )
    if len(step.data_sets) > 1:
        yield (
            ("steps", name, "data"),
            f"must be one data set, since '{over_batch}' compares all pairs of an update; use a step for each data set",
        )


def unsupported_training(built: Mapping[str, Any]) -> Iterator[Wrong]:
    """Training settings that an objective or the backbone does not support, once for [training] and once for each
    step's own."""
    backbone, base = built.get("backbone"), built["training"]
    if backbone is None or base is None:
        return
    if backbone.supports_gradient_checkpointing:
        return
    wrong = f"the backbone '{backbone.type}' cannot recompute its layers; remove this key"
    if base.gradient_checkpointing:
        yield ("training", "gradient_checkpointing"), wrong
    for name, step in (built["steps"] or {}).items():
        if step is not None and step.training.gradient_checkpointing and not base.gradient_checkpointing:
            yield ("steps", name, "training", "gradient_checkpointing"), wrong


def _name_labels(labels: tuple[str, ...]) -> str:
    return " and ".join(f"the label '{label}'" for label in labels)
