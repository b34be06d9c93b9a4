"""The backbone: two masks instead of one, and ModernBERT's head."""

from mmgen_encoders.encoder import EncoderBackbone
from torch import Tensor


class ModernBertBackbone(EncoderBackbone):
    """With one 4-D mask, transformers would silently ignore the window of the narrow layers."""

    def attention_masks(self, seen: Tensor, positions: Tensor, key_positions: Tensor) -> dict[str, Tensor]:
        """The window is counted in positions, since slots of packed rows are not in order."""
        apart = (positions.unsqueeze(-1) - key_positions.unsqueeze(-2)).abs().unsqueeze(1)  # (B, 1, L, M)
        return {
            "full_attention": seen,
            "sliding_attention": seen & (apart <= self.model.config.sliding_window),
        }

    def logits(self, states: Tensor) -> Tensor:
        return self.model.decoder(self.model.head(states))
