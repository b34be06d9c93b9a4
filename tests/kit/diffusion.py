"""A generator of a third party with its own decoding options: masked diffusion (Nie et al., 2025), which writes a text
in a few steps, several tokens at a time, in any order."""

from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field

import mmgen
from mmgen.examples import Generation
from mmgen.objectives import Generator, TextTargets
from mmgen.sampling import derive, draw, seeds_of_texts, uniform
from mmgen.tensors import PAD, WRITTEN, Layout, Loss, Tail, Targets


class Denoising(mmgen.DecodingConfig):
    """Options of the denoising of texts."""

    steps: int = Field(6, ge=1, le=1000, description="steps in which a text is written")
    order: Literal["confidence", "left", "random"] = Field(
        "confidence", description="which tokens are written first: the surest, those on the left, or any"
    )
    temperature: float = Field(0.0, ge=0, description="divides the logits; 0 takes the most probable token")
    num_return_sequences: int = Field(1, ge=1, le=100, description="texts per example")

    @property
    def samples(self):
        return self.temperature > 0 or self.order == "random"

    def for_texts(self, n):
        return self.model_copy(update={"num_return_sequences": n, "temperature": self.temperature or float(n > 1)})


class Diffusion(mmgen.GeneratorConfig):
    """Writes texts from [MASK]s only, several tokens in a step."""

    type: Literal["diffusion"] = "diffusion"
    decoding = Denoising
    max_tokens: int = Field(20, ge=2, description="slots of a text, including its end")

    def build(self, backbone):
        return DiffusionGenerator(self, backbone)


@mmgen.hookimpl
def register_generators():
    return [Diffusion]


class Noise(TextTargets):
    """Replaces a drawn number of each text's tokens by [MASK]. A text is filled with end tokens."""

    def __init__(self, config, backbone):
        super().__init__(backbone, config.max_tokens)
        self.mask_id = backbone.mask_id

    def slots(self, tokens):
        return self.max_tokens

    def lay_out(self, targets):
        most = max(map(len, targets)) * self.max_tokens
        filled = [[y + [self.end_id] * (self.max_tokens - len(y)) for y in texts] for texts in targets]
        ids = torch.tensor([sum(texts, []) + [self.end_id] * (most - len(texts) * self.max_tokens) for texts in filled])
        group = (torch.arange(most) // self.max_tokens + 1).expand_as(ids)
        real = group <= torch.tensor([[len(texts)] for texts in targets])
        role = torch.where(real, WRITTEN, PAD)
        # one time for all: the slots of a text see one another
        layout = Layout(role, group * real, real.long())
        return Tail(ids, (torch.arange(most) % self.max_tokens).expand_as(ids), layout, ids.masked_fill(~real, -100))

    def collate(self, rows):
        tail = self.lay_out([self.targets(example) for example in rows.examples])
        noisy, weights = torch.zeros_like(tail.ids, dtype=torch.bool), torch.zeros(tail.ids.shape)
        for place, example in enumerate(rows.examples):
            for number, target in enumerate(example.targets):
                draw, first = rows.draw(place, target), number * self.max_tokens
                hidden = draw.sample(range(self.max_tokens), draw.randint(1, self.max_tokens))
                noisy[place, [first + slot for slot in hidden]] = True
                weights[place, first : first + self.max_tokens] = self.max_tokens / len(hidden)
        labels = tail.labels.masked_fill(~noisy, -100)
        tail = Tail(tail.ids.masked_fill(noisy, self.mask_id), tail.offsets, tail.layout, labels)
        count = self.max_tokens * sum(len(example.targets) for example in rows.examples)
        return Targets({"loss": count}, {"weights": weights * noisy}, tail)


class DiffusionGenerator(Generator):
    """See `Diffusion`."""

    reads_as_laid_out = False
    score_kind = "confidence"

    def __init__(self, config, backbone):
        super().__init__()
        self.reader = Noise(config, backbone)

    def logits(self, model, prefix, tail):
        rows = prefix.slots.followed_by(model.behind(prefix, tail))
        states = model.backbone.encode(rows).last[:, prefix.slots.positions.shape[1] :]
        return model.backbone.logits(states)[..., : len(model.backbone.tokenizer)].float()

    def forward(self, model, batch, targets):
        logits = self.logits(model, model.prefix(batch), targets.tail)
        losses = F.cross_entropy(logits.transpose(1, 2), targets.tail.labels, reduction="none")  # 0 at -100
        return Loss({"loss": (losses * targets.labels["weights"]).sum()})

    def generate(self, model, batch, options):
        n, size = options.num_return_sequences, self.max_tokens
        prefix = model.prefix(batch).repeat(n)
        tail = self.reader.lay_out([[[model.backbone.mask_id] * size]] * (len(batch.ids) * n))
        tail = Tail(*(part.to(model.device) for part in (tail.ids, tail.offsets)), on(tail.layout, model), tail.labels)
        ids, surety = tail.ids.clone(), torch.zeros(tail.ids.shape, device=model.device)
        texts = seeds_of_texts(batch.seeds, len(batch.ids), n, model.device).view(-1, 1)
        for step in range(options.steps):
            open_ = ids == model.backbone.mask_id
            logits = self.logits(model, prefix, Tail(ids, tail.offsets, tail.layout, tail.labels))
            logits[..., model.backbone.mask_id] = -torch.inf
            shares = (logits / (options.temperature or 1)).softmax(-1)
            seeds = derive(derive(texts, step), torch.arange(size, device=model.device))
            tokens = draw(shares, seeds) if options.temperature else shares.argmax(-1)
            sure = logits.softmax(-1).gather(2, tokens.unsqueeze(2)).squeeze(2)
            drawn = uniform(derive(seeds, -1), 1).squeeze(-1).float()
            rank = {"confidence": sure, "left": -tail.offsets.float(), "random": drawn}[options.order]
            more = (step + 1) * size // options.steps - step * size // options.steps
            chosen = rank.masked_fill(~open_, -torch.inf).topk(more, 1).indices
            now = torch.zeros_like(open_).scatter(1, chosen, True)
            ids, surety = torch.where(now, tokens, ids), torch.where(now, sure, surety)
        texts = [self.text(model, batch.ids[row // n], ids[row].tolist(), surety[row]) for row in range(len(ids))]
        return [sorted(texts[first : first + n], key=lambda text: -text.score) for first in range(0, len(texts), n)]

    def text(self, model, id_, tokens, surety):
        length = min([*tokens, model.backbone.end_id].index(model.backbone.end_id) + 1, self.max_tokens)
        written = tuple(tokens[:length])
        return Generation(id_, model.backbone.decode_text(written), written, float(surety[:length].mean()))


def on(layout, model):
    return Layout(*(part.to(model.device) for part in (layout.role, layout.group, layout.time)))
