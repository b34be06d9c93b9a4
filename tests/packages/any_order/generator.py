"""The generator. The order of a text is the `time` of its slots, so the attention mask follows from it."""

import torch
import torch.nn.functional as F

from mmgen.objectives import Generator, TextTargets
from mmgen.tensors import MASK, PAD, WRITTEN, Generation, Layout, Loss, Tail, Targets


class Orders(TextTargets):
    """Lays out y_1..y_T and m_1..m_T at the same positions; slot t has its place in the order as its time."""

    def __init__(self, config, backbone):
        super().__init__(backbone, config.max_tokens)
        self.mask_id, self.pad_id = backbone.mask_id, backbone.pad_id

    def slots(self, tokens):
        return 2 * self.max_tokens

    def lay_out(self, targets, orders=None):
        rows = []
        for number, texts in enumerate(targets):
            rows.append([])
            for k, text in enumerate(texts, 1):
                filled = text + [self.end_id] * (self.max_tokens - len(text))
                times = orders[number][k - 1] if orders else range(1, self.max_tokens + 1)
                for role in (WRITTEN, MASK):
                    for place, (y, time) in enumerate(zip(filled, times, strict=True)):
                        ids, label = (y, -100) if role == WRITTEN else (self.mask_id, y)
                        rows[-1].append((ids, place, role, k, time, label))
        padding = (self.pad_id, 0, PAD, 0, 0, -100)
        table = torch.tensor([row + [padding] * (max(map(len, rows)) - len(row)) for row in rows])
        ids, offsets, role, group, time, labels = table.unbind(-1)
        return Tail(ids, offsets, Layout(role, group, time), labels)

    def collate(self, rows):
        orders = []
        for place, example in enumerate(rows.examples):
            draws = [rows.draw(place, target) for target in example.targets]
            orders.append([draw.sample(range(1, self.max_tokens + 1), self.max_tokens) for draw in draws])
        tail = self.lay_out([self.targets(example) for example in rows.examples], orders)
        return Targets({"loss": int((tail.labels != -100).sum())}, tail=tail)


class AnyOrderGenerator(Generator):
    """See `AnyOrder`."""

    reads_as_laid_out = False  # texts are laid out from left to right for people

    def __init__(self, config, backbone):
        super().__init__()
        self.reader = Orders(config, backbone)

    def forward(self, model, batch, targets):
        rows, labels = model.rows(batch, targets.tail)
        logits = model.backbone.logits(model.backbone.states_at(rows, labels != -100)).float()
        return Loss({"loss": F.cross_entropy(logits, labels[labels != -100], reduction="sum")}, rows.counts)

    def generate(self, model, batch, options):
        prefix, size, device = model.prefix(batch), self.max_tokens, model.device
        rows = len(batch.ids)
        ids = torch.full((rows, size), -1, device=device)  # -1: not written yet
        time, score = torch.zeros_like(ids), torch.zeros(rows, size, device=device)
        places = torch.arange(size, device=device).expand_as(ids)
        for step in range(1, size + 1):
            open_ = ids < 0
            role = torch.cat([torch.where(open_, PAD, WRITTEN), torch.where(open_, MASK, PAD)], 1)
            times = torch.cat([time, torch.full_like(time, step)], 1)
            tokens = torch.cat([ids.clamp(min=0), torch.full_like(ids, model.backbone.mask_id)], 1)
            layout = Layout(role, (role != PAD).long(), times * (role != PAD))
            tail = model.behind(prefix, Tail(tokens, places.repeat(1, 2), layout, tokens))
            states = model.backbone.encode(prefix.slots.followed_by(tail)).last[:, -size:]
            logits = model.backbone.logits(states)[..., : len(model.backbone.tokenizer)].float().log_softmax(-1)
            best = logits.max(-1)
            rank = {"confidence": best.values, "left": -places.float(), "random": torch.rand_like(score)}[options.order]
            now = places == rank.masked_fill(~open_, -torch.inf).argmax(1, keepdim=True)
            ids, time = torch.where(now, best.indices, ids), torch.where(now, step, time)
            score = torch.where(now, best.values, score)
        return [[self.text(model, *row)] for row in zip(batch.ids, ids.tolist(), score, strict=True)]

    def text(self, model, id_, tokens, score):
        end = model.backbone.end_id
        length = min([*tokens, end].index(end) + 1, self.max_tokens)
        written = tuple(tokens[:length])
        return Generation(id_, model.backbone.decode_text(written), written, float(score[:length].mean()))
