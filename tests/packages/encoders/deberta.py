"""DeBERTa counts distances between slots; here they follow from the positions."""

from mmgen_encoders.encoder import EncoderBackbone
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position


class DebertaBackbone(EncoderBackbone):
    def call_model(self, arguments):
        base, positions = self.model.base_model, arguments["position_ids"]
        states = base.embeddings(
            inputs_embeds=arguments["inputs_embeds"],
            position_ids=positions,
            token_type_ids=arguments.get("token_type_ids"),
        )
        apart = positions.unsqueeze(2) - positions.unsqueeze(1)  # (B, L, L)
        encoder = base.encoder
        if encoder.position_buckets > 0:
            apart = make_log_bucket_position(apart, encoder.position_buckets, encoder.max_relative_positions).long()
        return encoder(
            states,
            arguments["attention_mask"],
            output_hidden_states=arguments["output_hidden_states"],
            output_attentions=arguments["output_attentions"],
            relative_pos=apart.repeat_interleave(base.config.num_attention_heads, 0).unsqueeze(0),  # (1, B heads, L, L)
        )
