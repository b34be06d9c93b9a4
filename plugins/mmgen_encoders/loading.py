"""Loads encoders from a run's folder or pretrained weights, or builds them without; checks weights, sizes, memory."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import transformers
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer, PreTrainedConfig, PreTrainedModel
from transformers.activations import ACT2FN
from transformers.models.auto import CONFIG_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

from mmgen.errors import DataError, RunError, did_you_mean
from mmgen.files import not_downloaded
from mmgen.parts import has_all

from . import Encoder
from .published_weights import head_names, pooler_weights
from .vocabulary import train_tokenizer

if TYPE_CHECKING:
    from .encoder import EncoderBackbone

LIMITS = {  # above the values of any existing encoder, to refuse damaged configs
    "num_hidden_layers": 1000,
    "num_attention_heads": 10_000,
    **dict.fromkeys(("vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings"), 10_000_000),
    "num_labels": 1_000_000,  # of an unused head; transformers creates a name for each label
}
ACTIVATIONS = ("hidden_act", "activation", "hidden_activation")  # names in different families
T = TypeVar("T")
log = logging.getLogger("mmgen.learning")


def build(config: Encoder, texts: Iterable[str] | None, folder: Path | None) -> EncoderBackbone:
    """The backbone from a saved folder, from pretrained weights, or from scratch (see `BackboneConfig.build`)."""
    if folder is not None:
        if not (folder / "config.json").exists():  # otherwise transformers would take the path for a hub name
            raise RunError(f"{folder}: the encoder's config.json and tokenizer are missing; give a complete run folder")
        return _load_saved(config, folder)
    if config.weights is not None:
        return _load_pretrained(config)
    if texts is None:
        raise DataError(
            f"backbone '{config.type}' has no weights to load and no texts to train a vocabulary on; set "
            "backbone.weights"
        )
    tokenizer = train_tokenizer(texts, config.vocab_size)
    if config.special_tokens:
        tokenizer.add_special_tokens({"additional_special_tokens": [*config.special_tokens]})
    sizes = check_family(config, len(tokenizer), tokenizer.pad_token_id)
    log.info(
        "%s: built on the spot (%d layers, %d wide, %d word pieces); not pretrained",
        config.type,
        config.num_hidden_layers,
        config.hidden_size,
        len(tokenizer),
    )
    backbone = config.backbone_class()(config, _build_model(sizes), tokenizer)
    config.check_backbone(backbone)
    return backbone


def _load_saved(config: Encoder, folder: Path) -> EncoderBackbone:
    """Load what `EncoderBackbone.save` wrote. Raises RunError with the file's name if a file is damaged."""
    path = folder / "config.json"
    sizes = _load_file(path, lambda: _read_sizes(str(folder), local_files_only=True))
    tokenizer = _load_file(
        folder / "tokenizer.json",
        lambda: AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True),
    )
    if config.transformers_name not in (None, sizes.model_type):
        raise RunError(
            f"{path}: the encoder is of type '{sizes.model_type}', but the recipe's backbone is "
            f"'{config.transformers_name}'"
        )
    _load_file(path, lambda: _check_memory(sizes))
    backbone = _load_file(path, lambda: config.backbone_class()(config, _build_model(sizes), tokenizer))
    _load_file(folder / "tokenizer_config.json", lambda: _check_tokenizer(backbone))
    embeddings: Any = backbone.model.get_input_embeddings()
    words = embeddings.num_embeddings
    if max(tokenizer.get_vocab().values(), default=0) >= words:
        raise RunError(f"{folder}: damaged: tokenizer.json has more words than config.json's vocab_size of {words}")
    return backbone


def _check_tokenizer(backbone: EncoderBackbone) -> None:
    """Raise an exception unless texts can be encoded and all special tokens have ids."""
    backbone.encode_text("a word")
    for name in ("start_id", "end_id", "mask_id", "pad_id"):
        if not isinstance(getattr(backbone, name), int):
            raise ValueError(f"the tokenizer has no {name.removesuffix('_id')} token")


def _load_file(path: Path, load: Callable[[], T]) -> T:
    """Call `load`. Any exception of a library about a damaged file becomes a RunError with the file's name."""
    try:
        return load()
    except Exception as error:  # any exception of transformers and tokenizers
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RunError(
            f"{path}: damaged, or not usable by this encoder: {reason[:300]}; copy the file from the original run"
        ) from None


def _read_sizes(name: str, local_files_only: bool = False) -> PreTrainedConfig:
    """transformers' config of a folder or hub name. Raises ValueError for impossible sizes, before anything is created
    for each layer or label."""
    values, _ = PreTrainedConfig.get_config_dict(name, local_files_only=local_files_only)
    for key, limit in LIMITS.items():
        if type(value := values.get(key)) is int and value > limit:
            raise ValueError(f"{key} must be a whole number from 1 to {limit}, not {value}")
    if not values:
        raise ValueError("config.json is missing or empty")
    if (family := values.get("model_type")) not in CONFIG_MAPPING and not values.get("auto_map"):
        written = values.get("transformers_version", "an unknown version")
        raise ValueError(
            f"transformers {transformers.__version__} has no family '{family}'; config.json was written by "
            f"transformers {written}, so install that version or a newer one"
        )
    sizes = AutoConfig.from_pretrained(name, trust_remote_code=False, local_files_only=local_files_only)
    sizes._attn_implementation = None  # another name than transformers' own would fetch compiled code
    sizes.chunk_size_feed_forward = 0  # chunking would refuse rows whose length is not a multiple
    return sizes


def _check_sizes(sizes: PreTrainedConfig) -> None:
    """Raise ValueError for impossible values, and AttributeError if a size of the family is missing."""
    sizes = sizes.get_text_config()
    names = {*sizes.to_dict(), *sizes.attribute_map}
    for name, limit in LIMITS.items():
        if name in names and not (type(value := getattr(sizes, name)) is int and 0 < value <= limit):
            raise ValueError(f"{name} must be a whole number from 1 to {limit}, not {value!r}")
    padding, words = sizes.pad_token_id, getattr(sizes, "vocab_size", None)
    if padding is not None and words is not None and not 0 <= padding < words:
        raise ValueError(f"pad_token_id = {padding} is outside the vocabulary of {words} words (vocab_size)")
    for name in ACTIVATIONS:
        if isinstance(value := getattr(sizes, name, None), str) and value not in ACT2FN:
            raise ValueError(f"{name} = {value!r} is not an activation of transformers{did_you_mean(value, ACT2FN)}")


def _check_memory(sizes: PreTrainedConfig) -> None:
    """Raise ValueError if the weights need more memory than this machine has; allocates no memory."""
    _check_sizes(sizes)
    with torch.device("meta"):
        weights = sum(tensor.nbytes for tensor in _build_model(sizes).parameters())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if weights > memory:
        raise ValueError(
            f"its weights need {weights / 1e9:,.0f} GB, but this machine has {memory / 1e9:,.0f} GB of memory"
        )


def _build_model(sizes: PreTrainedConfig) -> PreTrainedModel:
    return AutoModelForMaskedLM.from_config(sizes, dtype=torch.float32)


def _make_sizes(config: Encoder, vocabulary: int, padding: int) -> PreTrainedConfig:
    composite, inner = _family(config), config.intermediate_size or 4 * config.hidden_size
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
    return composite


def _family(config: Encoder) -> PreTrainedConfig:
    """transformers' config of the family. Raises DataError for a family without a masked-language model."""
    name = config.transformers_name or config.type
    if name not in CONFIG_MAPPING:
        raise DataError(
            f"backbone '{config.type}': transformers has no family '{name}'"
            f"{did_you_mean(name, CONFIG_MAPPING.keys())}; set model_type of the config class"
        )
    sizes: PreTrainedConfig = AutoConfig.for_model(name)
    if type(sizes) not in MODEL_FOR_MASKED_LM_MAPPING or sizes.is_encoder_decoder:
        what = "a decoder" if sizes.is_encoder_decoder else "no masked-language model"
        raise DataError(f"backbone '{config.type}': transformers' '{name}' has {what}; choose an encoder")
    return sizes


def _set_dropout(config: Encoder, sizes: PreTrainedConfig) -> None:
    sizes = sizes.get_text_config()
    for name in config.dropouts:
        if config.dropout is not None and hasattr(sizes, name):
            setattr(sizes, name, config.dropout)


def _check_path(name: str) -> None:
    """Raise DataError for weights that are a path where nothing is, or a hub name out of reach. `mmgen check` does not
    ask: like data, weights of one profile need not be there."""
    is_path = name.startswith((".", "~", "/")) or name.count("/") > 1
    if is_path and not Path(name).exists():
        raise DataError(
            f"backbone.weights: '{name}': no such folder; a path in a recipe is relative to the recipe's folder, a "
            "path of --set to the current folder"
        )
    if problem := not_downloaded(name):
        raise DataError(f"backbone.weights: {problem}")


def check_weights(config: Encoder) -> PreTrainedConfig:
    """transformers' config of the weights. Raises DataError if the backbone cannot use them."""
    _check_path(config.weights or "")
    sizes = _load_weights(config, _read_sizes)
    if config.transformers_name not in (None, sizes.model_type):
        raise DataError(
            f"backbone.weights: '{config.weights}' is a {sizes.model_type} checkpoint; "
            f"{config.where_to_give(sizes.model_type)}"
        )
    config.check_sizes(sizes)
    _load_weights(config, lambda _: _check_memory(sizes))
    return sizes


def check_family(config: Encoder, vocabulary: int, padding: int) -> PreTrainedConfig:
    """transformers' config of an encoder without weights. Raises DataError if the backbone cannot use it."""
    sizes = _make_sizes(config, vocabulary, padding)
    config.check_sizes(sizes)
    try:
        _check_memory(sizes)
    except ValueError as error:
        raise DataError(
            f"backbone '{config.type}': {error}; make backbone.num_hidden_layers or backbone.hidden_size smaller"
        ) from None
    except Exception:  # of a family's own code
        raise DataError(
            f"backbone '{config.type}': transformers cannot build a '{sizes.model_type}' of these sizes; change "
            "backbone.num_hidden_layers, hidden_size or num_attention_heads"
        ) from None
    return sizes


def _load_pretrained(config: Encoder) -> EncoderBackbone:
    sizes = check_weights(config)
    tokenizer = _load_weights(config, lambda name: AutoTokenizer.from_pretrained(name, trust_remote_code=False))
    _set_dropout(config, sizes)
    model, report = _load_weights(
        config,
        lambda name: AutoModelForMaskedLM.from_pretrained(
            name,
            config=sizes,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported below, with the weight's name
        ),
    )
    if mismatched := sorted(str(key[0] if isinstance(key, tuple) else key) for key in report["mismatched_keys"]):
        raise DataError(
            f"backbone.weights: '{config.weights}': the sizes in config.json and of the weights differ "
            f"({mismatched[0]}); use a config and weights that belong together"
        )
    model.config.name_or_path = ""  # a saved run must not contain a path of this machine
    missing = [name for name in report["missing_keys"] if not name.startswith(model.base_model_prefix + ".")]
    absent = [name for name in report["missing_keys"] if name not in missing]
    if absent:
        raise DataError(
            f"backbone.weights: '{config.weights}' lacks {len(absent)} weights that its config.json expects, such as "
            f"{absent[0]}; use complete weights with their own config.json"
        )
    for name, tensor in model.named_parameters():
        if not tensor.sum().isfinite() and not tensor.isfinite().all():
            raise DataError(f"backbone.weights: '{config.weights}': {name} is not finite (NaN or infinite)")
    prefix, layers = f"{model.base_model_prefix}.", model.base_model.state_dict()
    if unused := [n for n in report["unexpected_keys"] if re.sub(r"\d+", "0", n.removeprefix(prefix)) in layers]:
        more = "%s: has more layers than its config.json says; %s and others are left out"
        log.info(more, config.weights, min(unused))
    head = head_names(model)
    if not has_all({*head} - {*missing}, head, f"backbone.weights: '{config.weights}': the masked-LM head"):
        start_head(model)
        log.info(
            "%s: has no masked-LM head, which turns states into words. A new head is created from the word embeddings; "
            'train it (a step with train = ["backbone"]) before the model generates good texts',
            config.weights,
        )
    for first, second in untie(model):
        log.info(
            "%s: %s and %s should be one tensor, but differ in these weights; both are trained and saved",
            config.weights,
            first,
            second,
        )
    backbone = config.backbone_class()(config, model, tokenizer)
    backbone.read_pooler = partial(read_pooler, config)
    _load_weights(config, lambda _: _check_tokenizer(backbone))
    config.check_backbone(backbone)
    return backbone


def read_pooler(config: Encoder) -> dict[str, torch.Tensor]:
    """The dense layer of a pretrained pooler, "weight" and "bias"; empty, with a log line, if there is none. Raises
    DataError for half a pooler."""
    base, report = _load_weights(
        config,
        lambda name: AutoModel.from_pretrained(
            name,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        ),
    )
    present = {name: tensor for name, tensor in base.state_dict().items() if name not in report["missing_keys"]}
    weights = pooler_weights(base, present, f"backbone.weights: '{config.weights}': the pooler")
    if not weights:
        log.info("%s: has no pooler; a new pooler is created and trained with the backbone", config.weights)
    return weights


def _load_weights(config: Encoder, load):
    try:
        return load(config.weights)
    except Exception as error:  # any exception of transformers and tokenizers
        lines = [*str(error).strip().splitlines(), ""]
        line = lines[lines[0].endswith(":")]  # the line after a heading
        reason = line.rpartition("Error: ")[2]  # without the error class
        first = reason if " " in reason else f"{type(error).__name__}: {reason}"  # a single word needs its error class
        raise DataError(
            f"backbone.weights: '{config.weights}' cannot be loaded ({' '.join(first.split())[:300]}); give a folder "
            "with config.json, tokenizer and model.safetensors, or a hub name and a connection"
        ) from None


def start_head(model: PreTrainedModel) -> None:
    """Initialise a new head so that it already maps states to words: its transform is the identity, and scores are the
    products of normalised states and word embeddings, as in a pretrained head."""
    with torch.no_grad():
        for name, module in model.named_modules():
            outside = not name.startswith(model.base_model_prefix + ".") and name != model.base_model_prefix
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
