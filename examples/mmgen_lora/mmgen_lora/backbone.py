"""The backbone: peft puts the adapters into the encoder, and everything else is frozen."""

from mmgen_encoders.encoder import EncoderBackbone
from peft import LoraConfig, inject_adapter_in_model


class LoraBackbone(EncoderBackbone):
    def __init__(self, config, model, tokenizer):
        super().__init__(config, model, tokenizer)
        adapters = LoraConfig(r=config.rank, lora_alpha=config.alpha, target_modules=list(config.adapts))
        inject_adapter_in_model(adapters, self.model)
        for name, parameter in self.named_parameters():
            parameter.requires_grad_("lora_" in name)  # what a part freezes stays frozen
