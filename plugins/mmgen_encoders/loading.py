"""Encoders from where they are kept: a run's folder, pretrained weights (local or of a hub), or built on the spot."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer, PreTrainedConfig, PreTrainedModel
from transformers.activations import ACT2FN

from mmgen.errors import DataError, RunError, did_you_mean

from . import Encoder
from .names import pooler_weights
from .vocabulary import learn

if TYPE_CHECKING:
    from .encoder import EncoderBackbone

MOST = {  # more than any encoder that there is has; of words, widths and positions
    "num_hidden_layers": 1000,
    "num_attention_heads": 10_000,
    **dict.fromkeys(("vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings"), 10_000_000),
    "num_labels": 1_000_000,  # of a head that is not used; transformers makes a name for each
}
ACTIVATIONS = ("hidden_act", "activation", "hidden_activation")  # what families call theirs
T = TypeVar("T")
log = logging.getLogger("mmgen.learning")


def build(config: Encoder, texts: Iterable[str] | None, folder: Path | None) -> EncoderBackbone:
    """The backbone of a saved folder, of pretrained weights, or from scratch (see `BackboneConfig.build`)."""
    if folder is not None:
        if not (folder / "config.json").exists():  # without this, transformers would look the path up as a hub name
            raise RunError(
                f"{folder}: the encoder's config.json and tokenizer are missing; is this a whole run folder?"
            )
        return _kept(config, folder)
    if config.weights is not None:
        return _pretrained(config)
    if texts is None:
        raise DataError(
            f"backbone '{config.type}' has no weights to load and no texts to learn a vocabulary from; set "
            "backbone.weights"
        )
    tokenizer = learn(texts, config.vocabulary)
    sizes = _sizes(config, len(tokenizer), tokenizer.pad_token_id)
    try:
        _check_room(sizes)
    except ValueError as error:
        raise DataError(f"backbone '{config.type}': {error}; make backbone.layers or backbone.width smaller") from None
    log.info(
        "%s: built on the spot (%d layers, %d wide, %d word pieces); not pretrained",
        config.type,
        config.layers,
        config.width,
        len(tokenizer),
    )
    return config.backbone_class()(config, _from_sizes(sizes), tokenizer)


def _kept(config: Encoder, folder: Path) -> EncoderBackbone:
    """What `EncoderBackbone.save` wrote. Raises RunError, naming the file, for one that is damaged."""
    path = folder / "config.json"
    sizes = _damaged(path, lambda: _read_sizes(str(folder)))
    tokenizer = _damaged(
        folder / "tokenizer.json", lambda: AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    )
    if sizes.model_type != config.family:
        raise RunError(f"{path}: an encoder of type '{sizes.model_type}', and the recipe's is '{config.family}'")
    _damaged(path, lambda: _check_room(sizes))
    backbone = _damaged(path, lambda: config.backbone_class()(config, _from_sizes(sizes), tokenizer))
    _damaged(folder / "tokenizer_config.json", lambda: _usable(backbone))
    embeddings: Any = backbone.model.get_input_embeddings()
    words = embeddings.num_embeddings
    if max(tokenizer.get_vocab().values(), default=0) >= words:
        raise RunError(f"{folder}: damaged: tokenizer.json has more words than config.json's vocab_size of {words}")
    return backbone


def _usable(backbone: EncoderBackbone) -> None:
    """Raises unless texts become numbers, and every special token that is needed has one."""
    backbone.encode_text("a word")
    for name in ("start_id", "end_id", "mask_id", "pad_id"):
        if not isinstance(getattr(backbone, name), int):
            raise ValueError(f"the tokenizer has no {name.removesuffix('_id')} token")


def _damaged(path: Path, load: Callable[[], T]) -> T:
    """What `load` gives; whatever a library makes of a damaged file is a RunError that names it."""
    try:
        return load()
    except Exception as error:  # transformers' and tokenizers' own, of any kind
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RunError(
            f"{path}: damaged, or not what this encoder needs: {reason[:300]}; copy it from where the run was made"
        ) from None


def _read_sizes(name: str) -> PreTrainedConfig:
    """transformers' config of a folder or hub name. Raises ValueError for sizes that no encoder has, before it
    makes anything for each layer or label."""
    written, _ = PreTrainedConfig.get_config_dict(name)
    for key, most in MOST.items():
        if type(value := written.get(key)) is int and value > most:
            raise ValueError(f"{key} = {value} cannot be")
    sizes = AutoConfig.from_pretrained(name, trust_remote_code=False)
    sizes.chunk_size_feed_forward = 0  # it would refuse rows of other lengths than its multiples
    return sizes


def _check_sizes(sizes: PreTrainedConfig) -> None:
    """Raises ValueError for what no encoder has; AttributeError, too, where a size is missing that a family has."""
    known = {*sizes.to_dict(), *sizes.attribute_map}
    for name, most in MOST.items():
        if name in known and not (type(value := getattr(sizes, name)) is int and 0 < value <= most):
            raise ValueError(f"{name} = {value!r} cannot be")
    padding, words = sizes.pad_token_id, getattr(sizes, "vocab_size", None)
    if padding is not None and words is not None and not 0 <= padding < words:
        raise ValueError(f"pad_token_id = {padding} is not one of the {words} words (vocab_size)")
    for name in ACTIVATIONS:
        if isinstance(value := getattr(sizes, name, None), str) and value not in ACT2FN:
            raise ValueError(f"{name} = {value!r} is no activation of transformers{did_you_mean(value, ACT2FN)}")


def _check_room(sizes: PreTrainedConfig) -> None:
    """Raises ValueError when the weights are more than this machine has memory for; takes none itself."""
    _check_sizes(sizes)
    with torch.device("meta"):
        weights = sum(tensor.nbytes for tensor in _from_sizes(sizes).parameters())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if weights > memory:
        raise ValueError(
            f"its weights would take {weights / 1e9:,.0f} GB, and this machine has {memory / 1e9:,.0f} GB of memory"
        )


def _from_sizes(sizes: PreTrainedConfig) -> PreTrainedModel:
    return AutoModelForMaskedLM.from_config(sizes, dtype=torch.float32)


def _sizes(config: Encoder, vocabulary: int, padding: int) -> PreTrainedConfig:
    sizes, inner = AutoConfig.for_model(config.family), config.intermediate or 4 * config.width
    wanted = {
        "vocab_size": vocabulary,
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "pad_token_id": padding,
        "num_attention_heads": config.heads,
        "intermediate_size": inner,
        "embedding_size": config.width,
        # BERT's 0.02 is meant for 768 wide; a narrow encoder that starts so flat takes far longer to learn where to
        # look
        "initializer_range": config.width**-0.5,
        "hidden_dim": inner,
        "type_vocab_size": max(1, getattr(sizes, "type_vocab_size", 1)),
    }
    known = sizes.to_dict()
    for name, value in wanted.items():
        if name in known or name in sizes.attribute_map:
            setattr(sizes, name, value)
    for name, value in config.sizes().items():
        setattr(sizes, name, value)
    _set_dropout(config, sizes)
    return sizes


def _set_dropout(config: Encoder, sizes: PreTrainedConfig) -> None:
    for name in config.dropouts:
        if config.dropout is not None and hasattr(sizes, name):
            setattr(sizes, name, config.dropout)


def _pretrained(config: Encoder) -> EncoderBackbone:
    sizes = _load(config, _read_sizes)
    if sizes.model_type != config.family:
        raise DataError(
            f"backbone.weights: '{config.weights}' is a {sizes.model_type} checkpoint; "
            f"{config.where_to_give(sizes.model_type)}"
        )
    tokenizer = _load(config, lambda name: AutoTokenizer.from_pretrained(name, trust_remote_code=False))
    _load(config, lambda _: _check_room(sizes))
    _set_dropout(config, sizes)
    model, found = _load(
        config,
        lambda name: AutoModelForMaskedLM.from_pretrained(
            name,
            config=sizes,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # told below, with the weight's name
        ),
    )
    if unlike := sorted(str(each[0] if isinstance(each, tuple) else each) for each in found["mismatched_keys"]):
        raise DataError(
            f"backbone.weights: '{config.weights}': its config.json says another size than its weights have "
            f"({unlike[0]}); take both from one place"
        )
    model.config.name_or_path = ""  # a saved run must not remember where weights lay on this machine
    missing = [name for name in found["missing_keys"] if not name.startswith(model.base_model_prefix + ".")]
    absent = [name for name in found["missing_keys"] if name not in missing]
    if absent:
        raise DataError(
            f"backbone.weights: '{config.weights}' lacks {len(absent)} weights of a {config.type}, {absent[0]} among "
            "them"
        )
    if missing:
        start_head(model)
        log.info(
            "%s: brings no masked-LM head, which turns states into words. One is made from the word embeddings; it "
            'must be learnt (a step with learn = ["backbone"]) before the model writes well',
            config.weights,
        )
    backbone = config.backbone_class()(config, model, tokenizer)
    backbone.read_pooler = partial(read_pooler, config)
    _load(config, lambda _: _usable(backbone))
    return backbone


def read_pooler(config: Encoder) -> dict[str, torch.Tensor]:
    """The dense layer of a pretrained pooler, "weight" and "bias"; empty, and said, where the weights have none."""
    base, found = _load(
        config,
        lambda name: AutoModel.from_pretrained(
            name,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        ),
    )
    lacks_one = any("pooler." in name for name in found["missing_keys"])
    weights = {} if lacks_one else pooler_weights(base, base.state_dict())
    if not weights:
        log.info("%s: brings no pooler; it is made fresh, and learnt with the backbone", config.weights)
    return weights


def _load(config: Encoder, load):
    try:
        return load(config.weights)
    except Exception as error:  # transformers' and tokenizers' own, of any kind
        lines = [*str(error).strip().splitlines(), ""]
        told = lines[lines[0].endswith(":")].rpartition("Error: ")[2]  # what is behind a heading, without its class
        first = told if " " in told else f"{type(error).__name__}: {told}"  # a bare word says nothing
        raise DataError(
            f"backbone.weights: '{config.weights}' cannot be loaded ({' '.join(first.split())[:300]}); give a folder "
            "with config.json, tokenizer and model.safetensors, or a hub name and a connection"
        ) from None


def start_head(model: PreTrainedModel) -> None:
    """A fresh head that already reads states as words: its transform starts as the identity, so that scores are the
    products of normalised states and word embeddings, as in a head that was pretrained."""
    with torch.no_grad():
        for name, module in model.named_modules():
            outside = not name.startswith(model.base_model_prefix + ".") and name != model.base_model_prefix
            if outside and isinstance(module, nn.Linear) and module.in_features == module.out_features:
                nn.init.eye_(module.weight)
                nn.init.zeros_(module.bias)
