"""Recipe in, results out: the list of what happens in a run."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from pydantic import ValidationError
from torch import Tensor

from . import processes, report
from .checkpoint import load_state, load_weights, read_table, state, write_folder, write_json
from .configs import Decoding, EmbedderConfig, ExtractorConfig
from .data import Collator
from .datasets import Datasets
from .errors import DataError, RunError
from .features import StoredEmbedder
from .model import Model, compose
from .parts import Dataset, Picture
from .progress import Progress
from .recipe import PRETRAINED, Recipe
from .registry import Registry, installed
from .runfolder import RunFolder, differences
from .stages import extract, score, train, write
from .stages.optimizer import derive
from .store import FeatureStore
from .tensors import Example, Generation


def run(recipe: Recipe, *, only: str | None = None, fresh: bool = False, progress: Progress | None = None) -> RunFolder:
    """Every step that is not done yet: learn, write, score; then the table. `only`: this step and what it starts
    from."""
    accelerator = processes.start()
    progress = progress if progress and accelerator.is_main_process else Progress()
    folder = RunFolder.of(recipe)
    began = time.monotonic()
    with processes.together(accelerator), folder.locked() if accelerator.is_main_process else contextlib.nullcontext():
        datasets = Datasets(recipe)
        if accelerator.is_main_process:
            folder.claim(recipe, datasets, fresh)
        accelerator.wait_for_everyone()
        todo = [name for name in recipe.ordered(only) if not folder.done(recipe, name)]
        if todo:
            introduce(recipe, datasets.main, folder, progress)
            recipe = fill_stores(recipe, datasets, folder, accelerator, progress)
            model = build_model(recipe, datasets)
            warn_of_cut(model, datasets, todo, progress)
            find_gaps(recipe, model, datasets, todo)
            initial = {name: tensor.clone() for name, tensor in state(model).items()}
            if accelerator.is_main_process:
                keep_parts(model, folder)
        for name in todo:
            with folder.timed(name) if accelerator.is_main_process else contextlib.nullcontext():
                run_step(recipe, name, model, initial, datasets, folder, accelerator, progress)
        if accelerator.is_main_process:
            show(
                recipe,
                folder,
                datasets.main,
                lambda step: load_run(folder.path, step).model.to(accelerator.device),
                progress,
            )
    done = f"done in {(time.monotonic() - began) / 60:.1f} minutes" if todo else "nothing to do: all steps are done"
    progress.say(f"{done}; everything is in {folder.path}")
    return folder


def show(recipe: Recipe, folder: RunFolder, dataset: Dataset, load: Callable[[str], Model], progress: Progress) -> None:
    """The tables, of this run and over its seeds, and the page."""
    own = report.gather(recipe, folder, dataset)
    if not own.steps:
        progress.say("no row of the table is finished yet, so there is no table and no page")
        return
    together = report.over_seeds(own, folder)
    report.write_tables(recipe, folder, own, together)
    report.try_page(recipe, folder, dataset, together or own, load, progress)
    progress.say(report.markdown(own))
    if together:
        progress.say(f"\n{report.markdown(together)}")


def run_step(
    recipe: Recipe,
    name: str,
    model: Model,
    initial: dict[str, Tensor],
    datasets: Datasets,
    folder: RunFolder,
    accelerator: Accelerator,
    progress: Progress,
) -> None:
    """One row of the table, from wherever it was left."""
    step, place = recipe.steps[name], folder.step(name)
    common = {"folder": place, "accelerator": accelerator, "progress": progress, "seed": recipe.seed}
    if folder.finished(name, "weights.safetensors"):
        load_weights(model, place / "weights.safetensors")
    else:
        if step.start == PRETRAINED:
            load_state(model, initial, "the model as it was built")
        else:
            load_weights(model, folder.step(step.start) / "weights.safetensors")
        train.train(model, name, step, datasets.learnt(name), datasets.validated(name), **common)
    if not step.evaluate:
        return
    test = datasets.scored
    if not folder.finished(name, "generations.jsonl"):
        write.write(model, name, step, test, recipe.decoding, **common)
    if accelerator.is_main_process:
        texts = write.read(place)
        score.score(name, texts, test, recipe.metrics, place, progress)
        progress.say(report.samples(texts, test))
    accelerator.wait_for_everyone()


def introduce(recipe: Recipe, dataset: Dataset, folder: RunFolder, progress: Progress) -> None:
    """What a person should know before it starts."""
    profile = f", profile {recipe.profile}" if recipe.profile else ""
    progress.say(f"{recipe.name}{profile}, seed {recipe.seed} -> {folder.path}")
    counts = ", ".join(f"{split} {len(dataset.split(split))}" for split in dataset.splits())
    progress.say(f"data: {recipe.data.type} ({counts})")


def warn_of_cut(model: Model, datasets: Datasets, steps: Sequence[str], progress: Progress) -> None:
    collate = Collator(model, model.inputs)
    for examples in datasets.learnt_by(steps):
        cut, total = collate.cut(examples), sum(len(example.targets) for example in examples)
        if cut:
            progress.say(
                f"{cut} of {total} targets are longer than max_tokens = {model.generator.max_tokens} (their end "
                "counts) and are cut"
            )


def build_model(recipe: Recipe, datasets: Datasets | None = None, folder: Path | None = None) -> Model:
    """The model as it is before any step: from the recipe and its seed, or from what a run keeps in `folder`."""
    texts = list(datasets.texts()) if datasets else None
    with torch.random.fork_rng():
        torch.manual_seed(derive(recipe.seed, "model"))
        return compose(
            recipe.backbone, recipe.inputs, recipe.generator, texts=texts, folder=folder, close=recipe.sequence.close
        )


def fill_stores(
    recipe: Recipe, datasets: Datasets, folder: RunFolder, accelerator: Accelerator, progress: Progress
) -> Recipe:
    """The recipe with a features file for every input that names an extractor instead of one.

    The file is kept beside the seeds' folders and is used by all of them.
    """
    inputs = dict(recipe.inputs)
    for name, config in recipe.inputs.items():
        extractor = getattr(config, "extractor", None)
        if extractor is None or config.features is not None:
            continue
        path = features_file(name, extractor, recipe, folder)
        if accelerator.is_main_process and not all_in(
            path, pictures := list(datasets.pictures())
        ):  # broken ones may have been mended
            summary = extract.extract(
                extractor.build(), pictures, path, progress=progress, wait=True
            )  # another seed may be at it
            for key, reason in summary.broken:
                progress.say(f"{name}: picture '{key}' was skipped: {reason}")
        accelerator.wait_for_everyone()
        inputs[name] = config.model_copy(update={"features": path})
    return recipe.model_copy(update={"inputs": inputs})


def all_in(path: Path, pictures: Sequence[Picture]) -> bool:
    """Whether a store is there and holds these pictures."""
    if not path.exists():
        return False
    with contextlib.closing(FeatureStore(path)) as store:
        return all(picture.key in store for picture in pictures)


def features_file(name: str, extractor: ExtractorConfig, recipe: Recipe, folder: RunFolder) -> Path:
    """Where the features of an input lie that its extractor makes of the run's pictures."""
    data = [recipe.data, *(step.data for step in recipe.steps.values() if step.data is not None)]
    fingerprint = read_table(folder.path / "data.json", fingerprint=str)["fingerprint"]
    made_from = json.dumps(
        [extractor.model_dump(mode="json"), *(config.model_dump(mode="json") for config in data), fingerprint]
    )
    return folder.path.parent / "features" / f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}.h5"


def keep_parts(model: Model, folder: RunFolder) -> None:
    """What a run needs to be loaded without the files it was made from."""
    write_folder(folder.backbone, model.backbone.save)
    kept = {name: embedder.keep() for name, embedder in model.embedders.items()}
    if any(folder.path.glob("steps/*/*.safetensors")):
        for name, before in read_table(folder.path / "inputs.json", **dict.fromkeys(kept, dict)).items():
            if before != json.loads(json.dumps(kept.get(name))):
                changes = "; ".join(differences(before, kept.get(name)))
                raise RunError(
                    f"{folder.path}: the features of '{name}' are not those its steps have learnt from ({changes}); "
                    "give those back, or use --fresh"
                )
    write_json(folder.path / "inputs.json", kept)


def find_gaps(recipe: Recipe, model: Model, datasets: Datasets, steps: Sequence[str]) -> None:
    """Raises DataError now for what a later step would stumble over: examples that lack an input, images without
    features."""
    for name in steps:
        step = recipe.steps[name]
        for wanted in step.inputs:
            embedder, fields = model.embedders[wanted], recipe.inputs[wanted].reads
            for examples in (datasets.learnt(name), datasets.validated(name), datasets.scored if step.evaluate else ()):
                lacking = [example for example in examples if any(example.lacks(field) for field in fields)]
                try:
                    if lacking:
                        embedder.reader.read(lacking[0])  # a reader may do without
                    if isinstance(embedder, StoredEmbedder):
                        embedder.reader.find_gaps(examples)
                except DataError as error:
                    count = f" ({len(lacking)} of {len(examples)} examples are like that)" if lacking else ""
                    raise DataError(f"step '{name}': {error}{count}") from None


@dataclass
class Run:
    """A finished run (or one that goes on), loaded: its recipe, and the model of one of its steps."""

    folder: RunFolder
    recipe: Recipe
    step: str
    model: Model

    def generate(self, examples: Sequence[Example], options: Decoding | None = None) -> list[list[Generation]]:
        """Texts for examples as this step reads them, best first. `options` default to the recipe's."""
        return self.model.generate(examples, options or self.recipe.decoding, self.recipe.steps[self.step].inputs)


def load_run(path: str | Path, step: str | None = None, registry: Registry | None = None) -> Run:
    """The model of a run's step (by default the last one that has weights), in eval mode. Raises RunError."""
    folder = RunFolder(Path(path))
    recipe = folder.recipe(registry or installed())
    trained = [name for name in recipe.steps if folder.finished(name, "weights.safetensors")]
    if not trained:
        raise RunError(f"{path}: no step has been learnt yet; go on with `mmgen run`")
    chosen = step or ([name for name in trained if recipe.steps[name].evaluate] or trained)[-1]
    if chosen not in trained:
        raise RunError(f"{path}: no weights of a step '{chosen}'; there are: {', '.join(trained)}")
    path_kept = folder.path / "inputs.json"
    kept = read_table(path_kept, **dict.fromkeys(recipe.inputs, dict))
    inputs: dict[str, EmbedderConfig] = {}
    for name, config in recipe.inputs.items():
        extractor = getattr(config, "extractor", None)
        made = extractor is not None and config.features is None and features_file(name, extractor, recipe, folder)
        features = {"features": made} if made and made.exists() else {}
        inputs[name] = as_kept(config, kept[name], path_kept, name).model_copy(update=features)
    model = build_model(recipe.model_copy(update={"inputs": inputs}), folder=folder.backbone)
    for name, embedder in model.embedders.items():
        if json.loads(json.dumps(embedder.keep())) != kept[name]:
            raise RunError(
                f"{path_kept}: damaged: it does not hold all that '{name}' was learnt with; copy it from where the run "
                "was made"
            )
    load_weights(model, folder.step(chosen) / "weights.safetensors")
    return Run(folder, recipe, chosen, model.eval())


def as_kept(config: EmbedderConfig, kept: Mapping[str, Any], path: Path, name: str) -> EmbedderConfig:
    """An embedder's config with what its run keeps of it. Raises RunError when that cannot be."""
    try:
        return type(config).model_validate({**dict(config), **kept})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (name, *first["loc"])))
        raise RunError(f"{path}: damaged: {place}: {first['msg']}") from None


def report_on(path: Path, progress: Progress, shown: int = report.SHOWN) -> Path:
    """`report.html` of a run that is finished, or goes on; of the first of its seeds where `path` holds several. Raises
    RunError where there is nothing to show."""
    folder = next(iter(RunFolder.found_in(path)), RunFolder(path))
    recipe = folder.recipe(installed())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dataset = recipe.data.build()
    own = report.gather(recipe, folder, dataset)
    found = report.over_seeds(own, folder) or own
    return report.write_page(
        recipe, folder, dataset, found, lambda step: load_run(folder.path, step).model.to(device), progress, shown
    )
