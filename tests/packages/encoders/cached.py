"""An attention function that keeps keys and values, for encoders whose code in transformers has no cache."""

from mmgen_encoders.encoder import EncoderBackbone
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward


def cached_sdpa(module, query, key, value, attention_mask, past_key_values=None, **options):
    if past_key_values is not None:
        key, value = past_key_values.update(key, value, module.layer_idx)
    return sdpa_attention_forward(module, query, key, value, attention_mask, **options)


def register(name):
    AttentionInterface.register(name, cached_sdpa)
    return EncoderBackbone
