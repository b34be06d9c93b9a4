"""The backbones. Their vocabulary is trained on the data set's texts."""

from mmgen_encoders.vocabulary import load_tokenizer, train_tokenizer
from torch import nn

from mmgen.parts import Backbone
from mmgen.tensors import Encoded, taken


class AloneBackbone(Backbone):
    caches, types = False, 0
    masks = "causal"
    max_positions = 512

    @classmethod
    def built(cls, config, texts, folder):
        return cls(config, load_tokenizer(folder) if folder else train_tokenizer(texts, config.vocab_size))

    def __init__(self, config, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer
        self.start_id, self.end_id = tokenizer.cls_token_id, tokenizer.sep_token_id
        self.mask_id, self.pad_id = tokenizer.mask_token_id, tokenizer.pad_token_id
        self.input_size = self.hidden_size = config.hidden_size
        self.words = nn.Embedding(len(tokenizer), config.hidden_size)

    def embed(self, ids):
        return self.words(ids)

    def encode(self, slots, cache=None, output=()):
        return Encoded(slots.states)

    def logits(self, states):
        return states @ self.words.weight.T

    def save(self, folder):
        self.tokenizer.save_pretrained(folder)


class GruBackbone(AloneBackbone):
    def __init__(self, config, tokenizer):
        super().__init__(config, tokenizer)
        self.gru = nn.GRU(config.hidden_size, config.hidden_size, batch_first=True)

    def encode(self, slots, cache=None, output=()):
        order = (~slots.layout.real).int().argsort(dim=1, stable=True)  # padding last
        states = self.gru(taken(slots.states, order))[0]
        return Encoded(taken(states, order.argsort(1)))
