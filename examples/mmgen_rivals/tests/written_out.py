"""The systems as small models, and the same written out: one slot after the other, without batches, caches or
layouts."""

import random

import numpy as np
import torch
from mmgen.configs import SequenceConfig
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey, resolve
from mmgen.examples import Example
from mmgen.model import Objectives, compose
from mmgen.parts import Record
from mmgen_inputs import Grid, Text

from mmgen_rivals import Lstm, MonteCarlo, Tags

D = 5  # width of features
STORED = {"width": D, "fingerprint": {"extractor": "toy"}, "boxes": False}
INPUTS = {"image": Grid(**STORED), "caption": Text(), "tags": Tags(), "place": Grid(**STORED, fields=("image",))}
SYSTEMS = {
    "words": ("caption",),
    "max": ("image",),
    "mdn_joint": ("image", "caption"),
    "mc_sbn": ("image", "caption", "tags", "place"),
    "without_place": ("image", "caption", "tags"),
}
WORDS = "what color is the red ball dog near tree where how many are there big small under house".split()


def text(draw, least, most):
    return " ".join(draw.choices(WORDS, k=draw.randint(least, most)))


def picture(number, regions=1):
    draw = np.random.default_rng(number)
    return Record(f"p{number}", draw.standard_normal((regions, D)).astype(np.float32))


def examples(count=4, seed=0):
    """Captions of different lengths, pictures of one to three regions, one to three questions each."""
    draw = random.Random(seed)
    return [
        Example(
            f"e{n}",
            {"image": picture(n, 1 + n % 3), "caption": text(draw, 1, 9)},
            tuple(text(draw, 1, 7) for _ in range(1 + n % 3)),
        )
        for n in range(count)
    ]


def crossed(captions=3, pictures=3):
    """Every caption with every picture, and a question of seven words for each pair."""
    draw = random.Random(0)
    texts = [text(draw, 9, 9) for _ in range(captions)]
    pairs = [(caption, number) for caption in texts for number in range(pictures)]
    return [
        Example(f"e{n}", {"image": picture(number), "caption": caption}, (text(draw, 7, 7),))
        for n, (caption, number) in enumerate(pairs)
    ]


def collated(model, many, objectives=("generator",), candidates=()):
    """Examples as one batch, with the targets of these objectives."""
    return Collator(model, model.inputs, objectives, RngKey(0, "s"), candidates)(many)


def model(system="max", objectives=None, noise=0.3, **sizes):
    """A model that reads the inputs of a system, in eval mode, with weights that are not small; as it is before
    training, without noise."""
    torch.manual_seed(0)
    composed = compose(
        Lstm(**{"hidden_size": 24, "vocab_size": 90, **sizes}),
        {name: INPUTS[name] for name in SYSTEMS[system]},
        MonteCarlo(max_tokens=9),
        texts=[" ".join(WORDS)] * 3,
        sequence=SequenceConfig(open=False),
        objectives=Objectives(objectives or {}),
    )
    with torch.no_grad():
        for parameter in composed.parameters():
            parameter.add_(torch.randn_like(parameter) * noise)
    return composed.eval()


def lstm(module, inputs):
    """The states (N, H) of an LSTM's upper layer after each of the inputs (N, E), by its equations."""
    states = inputs
    for layer in range(module.num_layers):
        weights = [getattr(module, f"{kind}_l{layer}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        hidden = cell = torch.zeros(module.hidden_size)
        after = []
        for state in states:
            gates = weights[0] @ state + weights[2] + weights[1] @ hidden + weights[3]
            enter, forget, new, leave = gates.chunk(4)
            cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
            hidden = leave.sigmoid() * cell.tanh()
            after.append(hidden)
        states = torch.stack(after)
    return states


def drop(module, states, network):
    """Monte Carlo dropout of one network: the units (W,) that stay are drawn from its number and the layer's place."""
    if network is None:
        return states
    stays = torch.rand(states.shape[-1], generator=torch.Generator().manual_seed(1000 * network + module.place))
    return states * (stays >= module.p) / (1 - module.p)


def pair(module, first, second, network=None):
    a, b = (
        torch.tanh(layer.weight @ cue + layer.bias) for layer, cue in ((module.first, first), (module.second, second))
    )
    if module.how == "concatenate":
        joined = torch.tanh(module.joined.weight @ torch.cat([a, b]) + module.joined.bias)
    else:
        joined = a * b if module.how == "multiply" else a + b
    norm, _, dropout, last = module.last
    normalised = (joined - joined.mean()) / (joined.var(unbiased=False) + norm.eps).sqrt() * norm.weight + norm.bias
    units = torch.tanh(normalised)
    units = drop(dropout, units, network) if hasattr(dropout, "place") else units
    return last.weight @ units + last.bias


def pooled(model, name, example):
    layer = model.embedders[name].projection
    features = torch.from_numpy(example.inputs["image"].features)
    return (features @ layer.weight.T + layer.bias).mean(0)


def words(model, text):
    return model.backbone.words(torch.tensor(model.backbone.encode_text(text)))


def first_inputs(model, example, network=None):
    """What the LSTM reads in front of the text, (N, E)."""
    backbone, experts = model.backbone, model.backbone.experts
    if "image" not in model.inputs:
        return words(model, example.inputs["caption"])
    picture = pooled(model, "image", example)
    if model.inputs == ("image",):
        return picture[None]
    caption = words(model, example.inputs["caption"])
    if model.inputs == ("image", "caption"):
        state = lstm(backbone.joint.caption.lstm, caption)[-1]
        return pair(backbone.joint.pair, picture.tanh(), state)[None]
    seen = drop(experts.dropout, picture.tanh(), network)
    cues = [
        lstm(experts.caption.lstm, drop(experts.caption.dropout, caption, network))[-1],
        drop(
            experts.tag_dropout, words(model, " ".join(model.embedders["tags"].reader.tags(example))).mean(0), network
        ),
    ]
    if "place" in model.inputs:
        cues.append(drop(experts.place_dropout, pooled(model, "place", example).tanh(), network))
    advice = [pair(module, seen, cue, network) for module, cue in zip(experts.pairs, cues, strict=False)]
    gate = (experts.gate.weight @ picture + experts.gate.bias)[: len(cues)].softmax(0)
    return sum(weight * vector for weight, vector in zip(gate, advice, strict=True))[None]


def distribution(model, example, written, network=None):
    """log P(y_t | X, y_<t), (V,)."""
    backbone = model.backbone
    tokens = backbone.words(torch.tensor([backbone.end_id, *written]))
    states = lstm(backbone.lstm, torch.cat([first_inputs(model, resolve(example), network), tokens]))
    return (backbone.head.weight @ states[-1] + backbone.head.bias).log_softmax(-1)


def mean_distribution(model, example, written, passes):
    """The same over several networks: the mean of their probabilities."""
    every = [distribution(model, example, written, network).exp() for network in range(passes)]
    return torch.stack(every).mean(0).log()


def greedy(model, example, passes=0):
    """The most probable token after the other, with the mean log-probability."""
    tokens, total = [], 0.0
    while len(tokens) < model.generator.max_tokens and model.backbone.end_id not in tokens:
        known = (model, example, tokens)
        logp = mean_distribution(*known, passes) if passes else distribution(*known)
        special = {*model.backbone.tokenizer.all_special_ids} - {model.backbone.end_id}
        logp = logp.index_fill(0, torch.tensor([*special]), -torch.inf)  # no text has them
        tokens.append(int(logp.argmax()))
        total += float(logp.max())
    return tuple(tokens), total / len(tokens)
