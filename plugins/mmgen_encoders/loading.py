"""Loads encoders from a run's folder or pretrained weights, or builds them without; checks sizes, memory, heads."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer, PreTrainedConfig, PreTrainedModel
from transformers.models.auto import CONFIG_MAPPING

from mmgen.errors import DataError, MmgenError, RunError, did_you_mean
from mmgen.files import model_folder, not_downloaded
from mmgen.parts import has_all

from . import Encoder
from .published_weights import head_names, pooler_weights
from .self_check import difference_from_source
from .vocabulary import train_tokenizer

if TYPE_CHECKING:
    from .encoder import EncoderBackbone

MOST = {"num_hidden_layers": 1000, "num_labels": 1_000_000}  # transformers makes an object for each
DROPOUTS = (  # names in different families
    *("hidden_dropout_prob", "attention_probs_dropout_prob"),
    *("dropout", "attention_dropout", "embedding_dropout", "mlp_dropout"),
)
SAFELY: dict[str, Any] = {
    "dtype": torch.float32,
    "use_safetensors": True,
    "trust_remote_code": False,
    "output_loading_info": True,
}
log = logging.getLogger("mmgen.learning")


def build(config: Encoder, texts: Iterable[str] | None, folder: Path | None) -> EncoderBackbone:
    """The backbone from a saved folder, from pretrained weights, or from scratch (see `BackboneConfig.build`)."""
    if folder is not None:
        return _load_saved(config, folder)
    backbone = _load_pretrained(config) if config.weights is not None else _build_new(config, texts)
    if config.is_tried and (reason := difference_from_source(backbone)):
        name = backbone.model.config.model_type
        raise DataError(f"{config.subject}: mmgen cannot use the encoder '{name}': {reason}; choose another encoder")
    return backbone


def _build_new(config: Encoder, texts: Iterable[str] | None) -> EncoderBackbone:
    if texts is None:
        raise DataError(
            f"backbone '{config.type}' has no weights to load and no texts to train a vocabulary on; set "
            "backbone.weights"
        )
    tokenizer = train_tokenizer(texts, config.vocab_size)
    if config.special_tokens:
        tokenizer.add_special_tokens({"additional_special_tokens": [*config.special_tokens]})
    sizes = make_sizes(config, len(tokenizer), tokenizer.pad_token_id)
    log.info("%s: built on the spot (%d word pieces); not pretrained", config.type, len(tokenizer))
    return config.backbone_class()(config, _build_model(sizes), tokenizer)


@contextmanager
def _one_line(kind: type[MmgenError], what: str, advice: str) -> Iterator[None]:
    """Any exception of a library becomes one line of this kind; errors of mmgen stay."""
    try:
        yield
    except MmgenError:
        raise
    except Exception as error:  # any exception of transformers and tokenizers
        reason = " ".join(str(error).split())
        reason = reason if " " in reason else f"{type(error).__name__}: {reason}"
        raise kind(f"{what} ({reason[:300]}); {advice}") from None


def _load_saved(config: Encoder, folder: Path) -> EncoderBackbone:
    """Load what `EncoderBackbone.save` wrote. Raises RunError with the file's name if a file is damaged."""
    if not (folder / "config.json").exists():  # otherwise transformers would take the folder for a hub name
        raise RunError(f"{folder}: the encoder's config.json and tokenizer are missing; give a complete run folder")
    with _one_line(
        RunError, f"{folder}: config.json or the tokenizer is damaged", "copy the folder from the original run"
    ):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        sizes = _read_sizes(config, str(folder), local_files_only=True)
        _check_memory(sizes)
        backbone = config.backbone_class()(config, _build_model(sizes), tokenizer)
        _check_tokenizer(backbone)
    return backbone


def _check_tokenizer(backbone: EncoderBackbone) -> None:
    """Raise an exception unless texts can be encoded, all words have embeddings, and all special tokens have ids."""
    backbone.encode_text("a word")
    embeddings: Any = backbone.model.get_input_embeddings()
    if max(backbone.tokenizer.get_vocab().values(), default=0) >= embeddings.num_embeddings:
        raise ValueError("the tokenizer has more words than its vocab_size")
    for name in ("start_id", "end_id", "mask_id", "pad_id"):
        if not isinstance(getattr(backbone, name), int):
            raise ValueError(f"the tokenizer has no {name.removesuffix('_id')} token")


def _read_sizes(config: Encoder, name: str, local_files_only: bool = False) -> PreTrainedConfig:
    """transformers' config of a folder or hub name. Raises ValueError for impossible numbers of layers or labels,
    before anything is created for each, and DataError for another family than the backbone's."""
    values, _ = PreTrainedConfig.get_config_dict(name, local_files_only=local_files_only)
    for key, limit in MOST.items():
        if type(value := values.get(key)) is int and value > limit:
            raise ValueError(f"{key} must be a whole number from 1 to {limit}, not {value}")
    sizes = AutoConfig.from_pretrained(name, trust_remote_code=False, local_files_only=local_files_only)
    if config.transformers_name not in (None, sizes.model_type):
        raise DataError(
            f"backbone '{config.type}': '{name}' is a {sizes.model_type} checkpoint; use weights of the backbone's "
            'family, or backbone.type = "encoder"'
        )
    sizes._attn_implementation = None  # another name than transformers' own would fetch compiled code
    sizes.chunk_size_feed_forward = 0  # chunking would refuse rows whose length is not a multiple
    return sizes


def _check_memory(sizes: PreTrainedConfig) -> None:
    """Raise ValueError if the weights need more memory than this machine has; allocates no memory."""
    with torch.device("meta"):
        weights = sum(tensor.nbytes for tensor in _build_model(sizes).parameters())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if weights > memory:
        raise ValueError(
            f"its weights need {weights / 1e9:,.0f} GB, but this machine has {memory / 1e9:,.0f} GB of memory"
        )


def _build_model(sizes: PreTrainedConfig) -> PreTrainedModel:
    return AutoModelForMaskedLM.from_config(sizes, dtype=torch.float32)


def make_sizes(config: Encoder, vocabulary: int, padding: int) -> PreTrainedConfig:
    """transformers' config of an encoder without weights. Raises DataError if the backbone cannot use it."""
    if (family := config.transformers_name or config.type) not in CONFIG_MAPPING:
        similar = did_you_mean(family, CONFIG_MAPPING.keys())
        raise DataError(f"{config.subject}: transformers has no family '{family}'{similar}; choose another")
    composite, inner = AutoConfig.for_model(family), config.intermediate_size or 4 * config.hidden_size
    sizes = composite.get_text_config()  # a part of the config of an encoder that sees
    layers = getattr(sizes, "num_hidden_layers", 0)
    values = {
        "vocab_size": vocabulary,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_hidden_layers,
        "pad_token_id": padding,
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": inner,
        "embedding_size": config.hidden_size,
        # BERT's 0.02 suits a width of 768; with it, a narrow encoder takes far longer to train its attention
        "initializer_range": config.hidden_size**-0.5,
        "hidden_dim": inner,
        "num_key_value_heads": config.num_attention_heads,
        "head_dim": config.hidden_size // config.num_attention_heads,
        "type_vocab_size": max(1, getattr(sizes, "type_vocab_size", 1)),
    }
    names = sizes.to_dict()
    for name, value in values.items():
        if name in names or name in sizes.attribute_map:
            setattr(sizes, name, value)
    for name, value in names.items():  # one value for each published layer, such as layer_types
        if isinstance(value, list) and layers and len(value) == layers:
            setattr(sizes, name, (value * config.num_hidden_layers)[: config.num_hidden_layers])
    for name, value in config.sizes().items():
        setattr(composite, name, value)
    _set_dropout(config, composite)
    config.check_sizes(composite)
    what = f"{config.subject}: transformers cannot build a '{composite.model_type}' of these sizes"
    with _one_line(DataError, what, "change backbone.num_hidden_layers, hidden_size or num_attention_heads"):
        _check_memory(composite)
    return composite


def _set_dropout(config: Encoder, sizes: PreTrainedConfig) -> None:
    sizes = sizes.get_text_config()
    for name in DROPOUTS:
        if config.dropout is not None and hasattr(sizes, name):
            setattr(sizes, name, config.dropout)


def _load_pretrained(config: Encoder) -> EncoderBackbone:
    weights: Any = config.weights
    if problem := not_downloaded(weights):
        raise DataError(f"backbone.weights: {problem}")
    with _unless_loaded(config):
        folder = model_folder(weights)
        sizes = _read_sizes(config, folder)
        config.check_sizes(sizes)
        _check_memory(sizes)
        _set_dropout(config, sizes)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        model, report = AutoModelForMaskedLM.from_pretrained(
            folder,
            config=sizes,
            ignore_mismatched_sizes=True,  # reported below, with the weight's name
            **SAFELY,
        )
    _check_report(config, model, report)
    model.config.name_or_path = ""  # a saved run must not contain a path of this machine
    for pair in untie(model):
        log.info("%s: %s and %s should be one tensor, but differ in these weights; both are trained", weights, *pair)
    with _unless_loaded(config):
        backbone = config.backbone_class()(config, model, tokenizer)
        _check_tokenizer(backbone)
    backbone.read_pooler = partial(read_pooler, config)
    return backbone


def _unless_loaded(config: Encoder) -> Any:
    advice = "give a folder with config.json, tokenizer and model.safetensors, or a hub name and a connection"
    return _one_line(DataError, f"{config.subject} cannot be loaded", advice)


def _check_report(config: Encoder, model: PreTrainedModel, report: dict[str, Any]) -> None:
    """Raise DataError for weights that the encoder lacks, or whose sizes are not those of its config; start a head that
    is missing."""
    inside = f"{model.base_model_prefix}."
    wrong = [str(key[0] if isinstance(key, tuple) else key) for key in report["mismatched_keys"]]
    if wrong := sorted(wrong) + [name for name in report["missing_keys"] if name.startswith(inside)]:
        raise DataError(
            f"{config.subject}: the weights are not those of config.json: {wrong[0]} is missing or has another size; "
            "use a config and complete weights that belong together"
        )
    head = head_names(model)
    if not has_all({*head} - {*report["missing_keys"]}, head, f"{config.subject}: the masked-LM head"):
        start_head(model)
        log.info(
            "%s: has no masked-LM head, which turns states into words. A new head is created from the word embeddings; "
            'train it (a step with train = ["backbone"]) before the model generates good texts',
            config.weights,
        )


def read_pooler(config: Encoder) -> Mapping[str, Tensor]:
    """The dense layer of a pretrained pooler, "weight" and "bias"; empty, with a log line, if there is none. Raises
    DataError for half a pooler."""
    with _unless_loaded(config):
        base, report = AutoModel.from_pretrained(model_folder(str(config.weights)), **SAFELY)
    present = {name: tensor for name, tensor in base.state_dict().items() if name not in report["missing_keys"]}
    weights = pooler_weights(base, present, f"{config.subject}: the pooler")
    if not weights:
        log.info("%s: has no pooler; a new pooler is created and trained with the backbone", config.weights)
    return weights


def start_head(model: PreTrainedModel) -> None:
    """Initialise a new head so that it already maps states to words: its transform is the identity, and scores are the
    products of normalised states and word embeddings, as in a pretrained head."""
    with torch.no_grad():
        for name, module in model.named_modules():
            outside = not f"{name}.".startswith(f"{model.base_model_prefix}.")
            if outside and isinstance(module, nn.Linear) and module.in_features == module.out_features:
                nn.init.eye_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)


def untie(model: PreTrainedModel) -> list[tuple[str, str]]:
    """The pairs of parameters that the model's config ties, but whose loaded weights differ. If there are any, no pair
    is tied from now on, in the config neither, so that a saved model is built again as it is."""
    pairs = [(source, target) for target, source in model.get_expanded_tied_weights_keys(all_submodels=True).items()]
    parted = [pair for pair in pairs if model.get_parameter(pair[0]) is not model.get_parameter(pair[1])]
    if parted:
        for sizes in (model.config, model.config.get_text_config()):
            sizes.tie_word_embeddings = False
        for pair in (pair for pair in pairs if pair not in parted):
            owner, _, name = pair[1].rpartition(".")
            setattr(model.get_submodule(owner), name, nn.Parameter(model.get_parameter(pair[1]).detach().clone()))
    return parted
