"""Renamed keys: `mmgen check` names the new key, and finished runs with old keys can still be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..configs import Config

RENAMED: Mapping[str, tuple[str, ...]] = {  # old key -> its new names; the config's fields decide between several
    # training
    "bucket": ("length_bucket",),
    "decay": ("lr_scheduler",),
    "decay_at": ("lr_milestones",),
    "decay_factor": ("lr_gamma",),
    "micro_batch": ("micro_batch_size",),
    "warmup": ("warmup_ratio",),
    "workers": ("num_workers",),
    # backbones
    "extra_types": ("extra_token_types",),
    "heads": ("num_attention_heads",),
    "intermediate": ("intermediate_size",),
    "layers": ("num_hidden_layers",),
    "vocabulary": ("vocab_size",),
    "width": ("hidden_size",),
    # steps
    "learn": ("train",),
    "written_type": ("target_token_type",),
    # inputs
    "blind": ("zero_features",),
    "reads": ("fields",),
    "normalise": ("normalize",),
    "whole": ("whole_image",),
    # objectives
    "begins_as": ("init_from",),
    "mask": ("mask_replace_prob",),
    "other": ("negative_ratio",),
    "random": ("random_replace_prob",),
    "rate": ("mlm_probability", "mask_probability"),
    "told": ("top_k",),
    "whole_words": ("whole_word_mask",),
    # extractors
    "labels": ("class_names",),
    # data sets
    "answers": ("num_answers",),
    "asks": ("subtask",),
    "between": ("separator",),
    "evaluate": ("test_split",),
    "items": ("num_questions",),
    "learn_from": ("train_targets",),
    "train": ("train_split",),
    "unlike": ("same_kind",),
    "validate_on": ("validation_split",),
    "without": ("exclude_images",),
    "write": ("targets",),
    # metrics and probes
    "active": ("active_threshold",),
    "best": ("top_heads",),
    "iou": ("iou_threshold",),
    "patience": ("timeout", "early_stopping_patience"),
    "question_types": ("by_question_type",),
    "types": ("by_phrase_type",),
}

OLD_NAMES = {new: old for old, names in RENAMED.items() for new in names}


def new_name(key: str, fields: Iterable[str]) -> str | None:
    """The new name of a key in a config with these fields, or None."""
    names = set(fields)
    return next((new for new in RENAMED.get(key, ()) if new in names and key not in names), None)


def with_new_names(cls: type[Config], table: Mapping[str, Any]) -> dict[str, Any]:
    """A config's table with the new keys, in the same order."""
    return {new_name(key, cls.model_fields) or key: value for key, value in table.items()}


def with_old_names(table: Mapping[str, Any]) -> dict[str, Any]:
    """A config's table with the keys of commit 3fc204f. The names of feature files follow from such tables, so finished
    runs find theirs."""
    return {OLD_NAMES.get(key, key): value for key, value in table.items()}
