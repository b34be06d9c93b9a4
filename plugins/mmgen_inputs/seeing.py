"""The backbone around an encoder that sees: its vision tower turns pixels into tokens, which stand among others.

The text encoder attends through mmgen's function, the vision tower through transformers' own. Which pixels it gets, and
which tokens stand around them, is what the encoder's own processor says (Idefics3's)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from mmgen_encoders.encoder import EncoderBackbone
from torch import Tensor
from transformers import AutoImageProcessor, Idefics3ImageProcessor, PreTrainedModel, SiglipVisionConfig

from mmgen.errors import DataError, RunError
from mmgen.files import model_folder

from . import ModernVBert

IMAGE = ModernVBert.special_tokens[2]


class SeeingBackbone(EncoderBackbone):
    """An encoder whose `picture_states` are states of pictures, beside the word embeddings of texts.

    processor        transformers' image processor: resizes pictures, and cuts them into tiles
    tokens_per_tile  K, the tokens that one tile becomes
    """

    processor: Any
    model: Any

    def __init__(self, config: ModernVBert, model: PreTrainedModel, tokenizer: Any) -> None:
        super().__init__(config, model, tokenizer)
        sizes: Any = model.config
        self.image_id = tokenizer.convert_tokens_to_ids(IMAGE)
        self.tokens_per_tile = (sizes.vision_config.image_size // sizes.vision_config.patch_size) ** 2 // (
            sizes.pixel_shuffle_factor**2
        )
        sizes.image_token_id = self.image_id
        tower = self.model.base_model.vision_model
        for name, parameter in tower.named_parameters():
            if name.startswith("head."):  # pools a picture for SigLIP; the connector reads the patches
                parameter.requires_grad_(False)

    def picture_states(self, pixels: Tensor) -> Tensor:
        """The states (T, K, E) of T tiles, normalised pixels (T, 3, S, S)."""
        base = self.model.base_model
        patch = self.model.config.vision_config.patch_size
        seen = torch.ones(len(pixels), *(side // patch for side in pixels.shape[2:]), dtype=torch.bool)
        states = base.vision_model(pixel_values=pixels, patch_attention_mask=seen.to(pixels.device))
        return base.connector(states.last_hidden_state)

    def logits(self, states: Tensor) -> Tensor:
        return self.model.lm_head(self.model.projection_head(states))

    def save(self, folder: Path) -> None:
        super().save(folder)
        self.processor.save_pretrained(folder)

    def _set_attention(self, name: str) -> None:
        """The vision tower keeps transformers' attention."""
        self.model.base_model.text_model.set_attn_implementation(name)


def sizes(config: ModernVBert) -> dict[str, Any]:
    """Fields of transformers' config of an encoder without weights, besides those of its text encoder."""
    vision = SiglipVisionConfig(
        image_size=config.image_size,
        patch_size=config.patch_size,
        num_hidden_layers=config.vision_layers,
        hidden_size=config.vision_size,
        num_attention_heads=config.vision_heads,
        intermediate_size=4 * config.vision_size,
        vision_use_head=False,
    )
    return {
        "vision_config": vision,
        "pixel_shuffle_factor": config.pixel_shuffle_factor,
        "tie_word_embeddings": True,
        "initializer_range": config.hidden_size**-0.5,
    }


def load_processor(config: ModernVBert, folder: Path | None) -> Any:
    """The image processor of a saved encoder (`folder`), of published weights, or of an encoder without weights, whose
    pictures are one tile. Raises RunError or DataError for one that is missing or damaged."""
    if folder is None and config.weights is None:
        tile = {"longest_edge": config.image_size}
        return Idefics3ImageProcessor(size=tile, max_image_size=tile)
    place = folder or config.weights
    try:
        return AutoImageProcessor.from_pretrained(model_folder(str(place)), trust_remote_code=False)
    except Exception:  # any exception of transformers about a missing or damaged file
        kind, whose = (DataError, f"backbone.weights: '{place}'") if folder is None else (RunError, str(place))
        raise kind(
            f"{whose} has no usable preprocessor_config.json, which says how pictures are resized; use a complete "
            "folder"
        ) from None
