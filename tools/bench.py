"""Measure mmgen in a few minutes on a GPU: nine parts, the most valuable first. On a processor, beside other systems.

    python3 tools/bench.py                                    call 1: the first six parts, in 8 minutes
    python3 tools/bench.py --call 2                           call 2: the other three, in 3 minutes
    python3 tools/bench.py --parts train,decode --device cpu  the tables of docs/performance.md, on one thread
    python3 tools/bench.py --tiny                             all parts, on the CPU, with figures that mean nothing

It measures its own checkout; mmgen need not be installed. Each part is a forked process with a time limit: it imports
nothing, and its errors are rows and stop no other part. Every row is on disk (bench.jsonl and bench.md in the folder
$OUT, by default runs/bench) before the next is measured.
"""

from __future__ import annotations

import argparse
import collections
import copy
import json
import math
import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import time
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, partial
from pathlib import Path
from statistics import mean, median
from unittest import mock

BEGAN = time.monotonic()
ROOT = Path(__file__).resolve().parents[1]
# seconds that a part may take on a GPU; the first six are call 1, the others call 2
LIMITS = dict(exact=80, sdpa=60, train=110, decode=110, peak=40, run=100, loader=60, oom=45, two=60)
SIZES = {  # on a GPU, on a CPU, in a rehearsal
    "layers": (12, 12, 2),
    "width": (768, 768, 32),
    "words": (30_522, 30_522, 1200),
    "features": (2048, 2048, 8),  # numbers of a region
    "batch": (64, 4, 2),  # images at a time, beside other systems
    "images": (26, 8, 2),  # of an update elsewhere
    "texts": (256, 32, 6),
    "rounds": (5, 2, 1),
}


def parse_arguments() -> argparse.Namespace:
    """The options: the parts to measure, and a number for each of `SIZES`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--call", type=int, choices=(1, 2), help="the first six parts, or the other three")
    parser.add_argument("--parts", help=f"only these, with commas between them: {','.join(LIMITS)}")
    parser.add_argument("--device", choices=("cuda", "cpu"))
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, by default on the CPU")
    parser.add_argument("--minutes", type=float, help="by default 7.5 and 3.7 on a GPU")
    for name in SIZES:
        parser.add_argument(f"--{name}", type=int)
    arguments = parser.parse_args()
    arguments.device = arguments.device or ("cpu" if arguments.tiny else "cuda")
    for name, numbers in SIZES.items():
        vars(arguments)[name] = vars(arguments)[name] or numbers[2 if arguments.tiny else arguments.device == "cpu"]
    names = [*LIMITS]
    halves = {None: names if arguments.tiny else names[:6], 1: names[:6], 2: names[6:]}
    arguments.parts = arguments.parts.split(",") if arguments.parts else halves[arguments.call]
    if unknown := {*arguments.parts} - {*names}:
        parser.error(f"unknown part: {', '.join(unknown)}")
    return arguments


S = parse_arguments()
DEVICE, CUDA = S.device, S.device == "cuda"
PRECISION, WITH_CUDNN = "bf16" if CUDA or S.tiny else "fp32", "bf16 with cuDNN"
OUT, TEMPORARY = Path(os.environ.get("OUT", "runs/bench")).resolve(), tempfile.TemporaryDirectory(prefix="mmgen-bench-")
WORK = Path(TEMPORARY.name)


def write_entry_points() -> Path:
    """The folder with the metadata of an installation of this checkout, by which mmgen finds its plugins."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["mmgen"]
    folder = WORK / "installed/mmgen_framework-0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mmgen-framework\nVersion: 0\n")
    (folder / "entry_points.txt").write_text("[mmgen]\n" + "\n".join(f"{name} = {points[name]}" for name in points))
    return folder.parent


sys.path[:1] = map(str, (ROOT, ROOT / "plugins", write_entry_points()))  # instead of the folder of this file
os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": os.pathsep.join(sys.path)}
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # so that nothing starts CUDA before a fork

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from accelerate.utils import InitProcessGroupKwargs
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_inputs import Regions, Text
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import flop_counter

import mmgen.cli
import mmgen.runs.run
import mmgen.training.distributed
from mmgen.data.collate import Collator
from mmgen.decoding import Decoding
from mmgen.evaluation.answers import generate
from mmgen.examples import Example
from mmgen.features.writer import StoreWriter
from mmgen.model import Model, compose
from mmgen.parts import Backbone, Record
from mmgen.tensors import Batch
from mmgen.training.context import precision

Work = Callable[[], object]
synchronize = torch.get_device_module(DEVICE).synchronize
FORK = multiprocessing.get_context("fork")
ADAMW = partial(torch.optim.AdamW, lr=2e-5, fused=True)
HEADS = max(4, S.width // 64)
WORDS = [f"w{number:05}" for number in range(S.words)]
KERNELS = [SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
SEARCHES = {  # the texts that it writes at a time, and its options
    "greedy": (1, {}),
    "4 beams": (4, {"num_beams": 4}),
    "5 samples": (5, {"do_sample": True, "num_return_sequences": 5, "top_k": 0}),
}
flop_counter.flop_registry |= {  # torch counts none for attention on a CPU
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: flop_counter.sdpa_flop,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: flop_counter.sdpa_backward_flop,
}
SPEED = re.compile(r"\d+ pairs/s")


def row(what: str, value: object, note: object = "", **numbers: float) -> None:
    """Add a row to the page and to stdout, and a line to the file of JSON, which has `numbers` too."""
    part = multiprocessing.current_process().name
    cells = [" ".join(str(cell).replace("|", "/").split()) for cell in (part, what, value, note)]
    record = dict(zip(("part", "what", "value", "note"), cells, strict=True), **numbers)
    for name, line in (("bench.jsonl", json.dumps(record)), ("bench.md", f"| {' | '.join(cells)} |")):
        with (OUT / name).open("a") as file:
            print(line, file=file)
    print(line, flush=True)


@contextmanager
def attempt(what: str) -> Iterator[None]:
    """Make a row of an error."""
    try:
        yield
    except Exception:
        row(what, "FAILED", traceback.format_exc()[-500:])


def seconds(work: Work, rounds: int = 3, warm: int = 2) -> float:
    """The median of the seconds that `work` takes, after `warm` calls that do not count."""
    times = []
    for _ in range(warm + rounds):
        synchronize()
        began = time.perf_counter()
        work()
        synchronize()
        times.append(time.perf_counter() - began)
    return median(times[warm:])


def first_and_again(work: Work) -> str:
    """Milliseconds of the first call of `work`, and of the second, for which all shapes are known."""
    first, again = (1000 * seconds(work, 1, 0) for _ in range(2))
    return f"{first:.1f} ms, again {again:.1f} ms"


def count_flop(work: Work) -> int:
    """The floating-point operations of matrix products and attention in a call of `work`."""
    with flop_counter.FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


@cache
def product_rate(name: str) -> float:
    """TFLOP/s of a large matrix product, which is what the device can reach."""
    size, dtype = 8192 if CUDA else 512, torch.bfloat16 if name == "bf16" else torch.float32
    left, right = (torch.randn(size, size, device=DEVICE, dtype=dtype) for _ in range(2))
    return 2e-12 * size**3 / seconds(lambda: left @ right)


def describe_rate(flop: float, taken: float) -> str:
    """TFLOP/s, and their share of a matrix product's."""
    rate = flop / taken / 1e12
    return f"{rate:.2f} TFLOP/s, {rate / product_rate(PRECISION):.0%} of a matrix product's"


def run_mmgen(name: str, recipe: Path, *settings: str, inside=None, stop=bool) -> tuple[str, str]:
    """`mmgen run` in a fork of this process, which must not have used CUDA: how it ended, and its output. The fork
    runs in the context `inside`, and gets SIGTERM once `stop` is true."""
    began, output = time.monotonic(), WORK / f"{name}-{time.monotonic_ns()}.txt"
    options = [word for setting in (f'output="{WORK / name}"', *settings) for word in ("--set", setting)]

    def work():
        with output.open("w") as file, inside or nullcontext():
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            mmgen.cli.main(["run", str(recipe), "--jobs", "1", *options])

    process = FORK.Process(target=work)
    process.start()
    while process.is_alive() and not stop():
        process.join(0.1)
    process.terminate()  # does nothing if it has ended
    process.join()
    return f"exit {process.exitcode}, {time.monotonic() - began:.0f} s", output.read_text(errors="replace").strip()


def compare_weights(name: str, other: str) -> str:
    """How far the weights of two runs differ; biases of keys have no gradient but rounding."""
    differences = [0.0]
    for path in (WORK / name).glob("**/steps/*/weights.safetensors"):
        expected = load_file(WORK / other / path.relative_to(WORK / name))
        differences += [(v - expected[k]).abs().max().item() for k, v in load_file(path).items() if "key.bias" not in k]
    return f"{len(differences) - 1} tensors differ by at most {max(differences):.1e}"


def build_model() -> Model:
    """BERT with regions and captions, and random weights that are large enough to show mistakes."""
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": S.layers, "hidden_size": S.width, "num_attention_heads": HEADS, "vocab_size": S.words}
    image = Regions(fields=("image",), width=S.features, fingerprint={"made": "up"}, max_regions=36)
    inputs = {"image": image, "caption": Text(fields=("caption",))}
    model = compose(Bert(**sizes, dropout=0.0), inputs, Masked(max_tokens=20), texts=WORDS)
    for weights in model.parameters():
        if weights.ndim > 1:
            weights.data += torch.randn_like(weights) * 0.02
    return model


def copy_model(dropout: float = 0.0, end_bias: float = -50.0) -> Model:
    """A copy of the model on the device, in training mode if it has dropout. By default no text ends early."""
    model = copy.deepcopy(MODEL).to(DEVICE).train(dropout > 0)
    model.backbone.model.get_output_embeddings().bias.data[model.backbone.end_id] = end_bias
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    return model


def build_examples(count: int, questions: int = 5, vary: bool = False, seed: int = 0) -> list[Example]:
    """Images of 36 random regions, with captions of 16 words and questions of 8; `vary`: by up to 4 words."""
    draw, words, examples = np.random.default_rng(seed), random.Random(seed), []
    boxes = np.tile(np.float32([0, 0, 1, 1]), (36, 1))

    def text(length):
        return " ".join(words.choices(WORDS[:-200], k=length + vary * words.randint(-4, 4)))

    for key in map(str, range(count)):
        image = Record(key, draw.standard_normal((36, S.features), np.float32).astype(np.float16), boxes)
        targets = tuple(text(8) for _ in range(questions))
        examples.append(Example(key, {"image": image, "caption": text(16)}, targets))
    return examples


def build_batch(model: Model, examples: Sequence[Example], *objectives: Sequence[str]) -> Batch:
    """The examples as a batch on the device."""
    return Collator(model, model.inputs, *objectives)(examples).to(DEVICE)


def autocast(name: str) -> AbstractContextManager:
    """fp32; bf16 as in a run; or bf16 with the attention of cuDNN, which a run leaves out."""
    torch.backends.cuda.enable_cudnn_sdp(name == WITH_CUDNN)
    return precision(name.partition(" ")[0], torch.device(DEVICE))


def update(model: Model, *batches: Batch, optimizer: torch.optim.Optimizer | None = None, name: str = "bf16") -> None:
    """A forward and a backward pass for each batch, and the optimizer's step."""
    for batch in batches:
        with autocast(name):
            loss = model(batch).mean
        loss.backward()
        if optimizer:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.zero_grad()


def packed(model: Model, batch: Batch) -> tuple[Tensor, Tensor]:
    """Log-probabilities (n, V) of all predicted slots in one pass, as mmgen trains; and the tokens there (n,)."""
    rows, labels = model.rows(batch, batch.tail)
    states = model.backbone.states_at(rows, labels != -100)
    return model.backbone.logits(states).log_softmax(-1), labels[labels != -100]


def embed_prefix(model: Model, batch: Batch, rows: int) -> Tensor:
    """The embedded X of each text: (R, P, E)."""
    return model.prefix(batch).slots.states.repeat_interleave(rows // batch.size, 0)


def naive_logits(model: Model, prefix: Tensor, written: Tensor) -> Tensor:
    """Logits (R, V) of the token after `written` (R, t), by the paper's procedure and transformers' own BERT: a row of
    X, y_<t and a [MASK] for each text. Behind the embedded X it uses no layout, mask, position or cache of mmgen."""
    backbone = model.backbone
    states = torch.cat([prefix, backbone.embed(F.pad(written, (0, 1), value=backbone.mask_id))], 1)
    mask = torch.full((states.shape[1], states.shape[1]), -torch.inf, device=DEVICE).triu(1)
    mask[:, : prefix.shape[1]] = 0
    out = backbone.model.base_model(inputs_embeds=states, attention_mask=mask[None, None])
    return backbone.logits(out.last_hidden_state[:, -1])


def naive_log_probabilities(model: Model, batch: Batch, tokens: Tensor) -> Tensor:
    """Log-probabilities (R, T, V) at every place of texts (R, T), by the paper's procedure."""
    prefix = embed_prefix(model, batch, len(tokens))
    return torch.stack([naive_logits(model, prefix, tokens[:, :t]) for t in range(tokens.shape[1])], 1).log_softmax(-1)


def build_decoders(model: Model) -> dict[str, transformers.PreTrainedModel]:
    """Decoders of transformers with the sizes of the model."""
    sizes = model.backbone.model.config.to_dict()
    sizes |= {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    encoder, decoder = (transformers.BertConfig.from_dict(sizes) for _ in range(2))
    pair = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    causal = transformers.BertLMHeadModel(transformers.BertConfig.from_dict(sizes, is_decoder=True))
    return {"causal BERT": causal.to(DEVICE), "BERT2BERT": transformers.EncoderDecoderModel(pair).to(DEVICE)}


def train_naive(model: Model, batch: Batch, tokens: Tensor) -> None:
    """A forward and a backward pass by the paper's procedure."""
    for t in range(tokens.shape[1]):
        logits = naive_logits(model, embed_prefix(model, batch, len(tokens)), tokens[:, :t])
        F.cross_entropy(logits, tokens[:, t]).backward()
    model.zero_grad()


def train_decoder(network: transformers.PreTrainedModel, model: Model, batch: Batch, tokens: Tensor) -> None:
    """A forward and a backward pass by a decoder of transformers: a row for each text, behind the model's X."""
    prefix = embed_prefix(model, batch, len(tokens))
    if network.config.is_encoder_decoder:
        shifted = F.pad(tokens[:, :-1], (1, 0), value=model.backbone.start_id)
        logits = network(inputs_embeds=prefix, decoder_input_ids=shifted).logits
    else:
        rows = torch.cat([prefix, network.get_input_embeddings()(tokens[:, :-1])], 1)
        logits = network(inputs_embeds=rows, logits_to_keep=tokens.shape[1]).logits
    F.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
    model.zero_grad()
    network.zero_grad()


@torch.inference_mode()
def write_ours(model: Model, batch: Batch, options: Mapping) -> None:
    """Texts of 20 tokens by mmgen."""
    with autocast(PRECISION):
        model.generator.generate(model, batch, Decoding(**options))


def write_decoder(network: transformers.PreTrainedModel, model: Model, batch: Batch, options: Mapping) -> None:
    """Texts of 20 tokens by transformers' `generate`; without an end token none ends early."""
    prefix, start_id = embed_prefix(model, batch, batch.size), model.backbone.start_id
    network.generate(inputs_embeds=prefix, decoder_start_token_id=start_id, max_new_tokens=20, **options)


def compare(case: str, works: Mapping[str, Work], texts: int) -> None:
    """Rows of systems that do the same work on `texts` texts. Rounds go in turn, so that other load slows all of them;
    ratios are taken within a round."""
    with autocast(PRECISION):
        flop = {name: count_flop(work) for name, work in works.items()}  # this warms up, too
        rounds = [[seconds(work, 1, 0) for work in works.values()] for _ in range(S.rounds)]
    for number, name in enumerate(works):
        taken = median(times[number] for times in rounds)
        ratios = [times[number] / times[0] for times in rounds]
        ratio, counted, ms = median(ratios), flop[name] / flop["ours"], 1000 * taken / texts
        note = f"{ratio:.2f} ({min(ratios):.2f}-{max(ratios):.2f}) times ours, counted {counted:.2f}"
        note = f"{note}; {describe_rate(flop[name], taken)}"
        row(f"{case}, {PRECISION}: {name}", f"{ms:.2f} ms a text", note, ms=ms, ratio=ratio, counted=counted)


def exact() -> None:
    """The machine's ceilings; packed and cached beside the paper's procedure in float64; the same updates twice."""
    for name in ("bf16", "fp32"):
        row(f"matrix product, {name}", f"{product_rate(name):.2f} TFLOP/s")
    numbers = torch.randn(2**26 if CUDA else 2**16, device=DEVICE)
    row("copy on the device", f"{2e-12 * numbers.nbytes / seconds(numbers.clone):.2f} TB/s", "bytes read and written")
    model, plain, truth = copy_model(), copy_model(), copy_model().double()
    for network in (plain, truth):
        network.backbone.model.set_attn_implementation("eager")
    material = build_examples(2)
    batch = build_batch(model, material)
    tokens = packed(model, batch)[1].view(10, -1)
    expected = naive_log_probabilities(truth, batch, tokens)
    F.nll_loss(expected.flatten(0, 1), tokens.flatten()).backward()

    def compare_numbers(what, values, expected):
        off = (values.double() - expected).abs()
        row(f"{what}, {name}", f"off by at most {off.max():.1e}", f"relative {off.norm() / expected.norm():.1e}")

    def gradient(network):
        return torch.cat([weights.grad.flatten() for weights in network.parameters() if weights.grad is not None])

    for name in ("fp32", "bf16"):
        with autocast(name), torch.no_grad():
            compare_numbers("packed", packed(model, batch)[0].view_as(expected), expected)
            compare_numbers("naive", naive_log_probabilities(plain, batch, tokens), expected)
            texts = [candidates[0] for candidates in generate(model, material, Decoding())]
            written = torch.tensor([text.tokens for text in texts], device=DEVICE)
            steps = naive_log_probabilities(truth, build_batch(truth, material, ()), written)
        scores = torch.tensor([text.score for text in texts], device=DEVICE)
        compare_numbers("greedy scores, with a cache", scores, steps.gather(-1, written[..., None]).mean((1, 2)))
        with autocast(name):
            loss = model(batch).mean
        loss.backward()
        compare_numbers("gradient, packed", gradient(model), gradient(truth))
        model.zero_grad()
    for name in ("fp32", "bf16", WITH_CUDNN):
        states = []
        for _ in range(2):
            torch.manual_seed(1)
            model = copy_model(0.1)
            optimizer, batch = ADAMW(model.parameters()), build_batch(model, build_examples(S.images, vary=True))
            update(model, *3 * [batch], optimizer=optimizer, name=name)
            states.append(model.state_dict())
        unlike = sum(not value.equal(states[1][key]) for key, value in states[0].items())
        row(f"three updates twice, {name}", f"{unlike} of {len(states[0])} tensors differ", "with dropout")


def watch_kernels(work: Work) -> tuple[float, str]:
    """Seconds on the device; the number of kernels, and the longest ones."""
    with torch.profiler.profile() as profile:
        work()
        synchronize()
    times = collections.Counter()
    events = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    for event in events:
        if not event.is_user_annotation:
            times[event.name] += event.time_range.elapsed_us()
    longest = "; ".join(f"{name[:64]} {us:.0f} us" for name, us in times.most_common(3))
    return times.total() / 1e6, f"{len(events):,} kernels: {longest}"


def attend(mask: Tensor, dtype: torch.dtype = torch.bfloat16, dropout: float = 0.0) -> Work:
    """The attention of one layer, forward and backward, with a mask (B, 1, L, L), as a function to be timed."""
    shape = (3, len(mask), HEADS, mask.shape[-1], S.width // HEADS)
    states = torch.randn(shape, device=DEVICE, dtype=dtype, requires_grad=True)
    return lambda: F.scaled_dot_product_attention(*states, mask, dropout).sum().backward()


def sdpa() -> None:
    """Which kernel mmgen's mask gets, how fast the others are, what a new length costs, and how dropout is rounded."""
    model, full = copy_model(), partial(torch.ones, dtype=torch.bool, device=DEVICE)
    batch = build_batch(model, build_examples(S.images))
    for name, dropout in (("bf16", 0.0), ("bf16", 0.1), ("fp32", 0.1)):
        with mock.patch.object(F, "scaled_dot_product_attention", wraps=F.scaled_dot_product_attention) as spy:
            update(model, batch, name=name)
        (query, *_), options = spy.call_args_list[0]
        mask = options["attn_mask"]
        work = attend(mask, query.dtype, dropout)
        for backends in (KERNELS, KERNELS[1:], *([kernel] for kernel in KERNELS)):
            what = f"{name}, dropout {dropout}: {' '.join(kernel.name.partition('_')[0] for kernel in backends)}"
            try:
                with sdpa_kernel(backends):
                    note = f"mask {mask.dtype} {[*mask.shape]}; {watch_kernels(work)[1]}"
                    row(what, f"{1000 * seconds(work):.3f} ms", note)
            except RuntimeError as error:
                row(what, "not possible", error)
    for cudnn, backends in (("on", KERNELS), ("off", KERNELS[1:])):
        with sdpa_kernel(backends):
            for length in range(200, 200 + 2 * S.rounds):
                row(f"a new length, cuDNN {cudnn}", first_and_again(attend(full(S.images, 1, length, length))))
            zeros = torch.zeros(64, 8, 256, 64, device=DEVICE, dtype=torch.bfloat16)
            out = F.scaled_dot_product_attention(zeros, zeros, zeros + 1, full(64, 1, 256, 256), 0.1)
        row(f"dropout 0.1, cuDNN {cudnn}", f"mean weight {out.float().mean():.3f}", "1, or 1.042 if the rate is 1/16")


def train() -> None:
    """Training beside the paper's procedure and transformers' decoders; rows of varying length, as real data have."""
    model = copy_model(0.1)
    networks = build_decoders(model)
    for questions in (1, 3, 5):
        batch = build_batch(model, build_examples(S.batch, questions))
        tokens = packed(model, batch)[1].view(S.batch * questions, -1)
        works = {"ours": partial(update, model, batch, name=PRECISION)}
        works["naive"] = partial(train_naive, model, batch, tokens)
        works |= {name: partial(train_decoder, network, model, batch, tokens) for name, network in networks.items()}
        compare(f"training, K = {questions}", works, len(tokens))
    optimizer = ADAMW(model.parameters())
    batches = [build_batch(model, build_examples(S.images, vary=True, seed=seed)) for seed in range(6 * S.rounds)]
    for name in ("bf16", WITH_CUDNN) if PRECISION == "bf16" else ():
        epoch = partial(update, model, *batches, optimizer=optimizer, name=name)
        row(f"{len(batches)} updates, rows of varying length, {name}", first_and_again(epoch))


def decode() -> None:
    """Writing beside the paper's procedure and transformers' decoders; texts that end by themselves, as real ones."""
    model, naive = copy_model(), copy_model()
    naive.backbone.caches = False  # encodes everything again in each step, with the whole last layer
    naive.backbone.states_at = partial(Backbone.states_at, naive.backbone)
    batch = build_batch(model, build_examples(S.batch), ())
    networks = build_decoders(model)
    for search, (rows, options) in SEARCHES.items():
        writers = {"ours": model, "naive": naive}
        works = {name: partial(write_ours, writer, batch, options) for name, writer in writers.items()}
        works |= {name: partial(write_decoder, net.eval(), model, batch, options) for name, net in networks.items()}
        compare(f"writing, {search}", works, S.batch * rows)
    model, material = copy_model(end_bias=0.0), build_examples(S.texts, 1, vary=True)
    ends = packed(model, build_batch(model, build_examples(2)))[0][:, model.backbone.end_id].exp().mean().item()
    model = copy_model(end_bias=-math.log(7 * ends))  # about one token in eight is the end

    def write(name):
        torch.manual_seed(0)
        with autocast(name):
            return generate(model, material, Decoding(do_sample=True))

    for name in ("bf16", WITH_CUDNN, "fp32") if PRECISION == "bf16" else ():
        times, tokens = first_and_again(partial(write, name)), mean(len(text.tokens) for (text,) in write(name))
        row(f"{S.texts} samples that end, {name}", times, f"{tokens:.1f} tokens a text")


def peak() -> None:
    """Where the time goes: share of the peak, how long the device idles, and how often the CPU waits for it."""
    model, writer = copy_model(0.1), copy_model()
    optimizer, batch = ADAMW(model.parameters()), build_batch(writer, build_examples(S.texts, 1), ())
    works = {f"greedy, {S.texts} texts of 20": partial(write_ours, writer, batch, {})}
    for count in (S.images, S.texts // 2):
        batch = build_batch(model, build_examples(count))
        works[f"update, {count} images x 5"] = partial(update, model, batch, optimizer=optimizer)
    for what, work in works.items():
        taken = seconds(work)
        memory = torch.cuda.max_memory_allocated() / 1e9
        row(what, f"{1000 * taken:.1f} ms", f"{describe_rate(count_flop(work), taken)}; {memory:.1f} GB at most")
        if CUDA:
            busy, kernels = watch_kernels(work)
            torch.cuda.set_sync_debug_mode("warn")
            with warnings.catch_warnings(record=True, action="always") as messages:
                work()
            torch.cuda.set_sync_debug_mode("default")
            waits = sum("synchroniz" in str(message.message) for message in messages)
            row(f"{what}: the device is busy", f"{busy / taken:.0%}", f"{waits} waits of the CPU; {kernels}")


def run() -> None:
    """The main job with few scenes and without caption metrics; then stopped in the middle and resumed."""
    sizes = f"data.train_size={12 * S.images}", "data.val_size=20", "data.test_size=40"
    job = ROOT / "recipes/bertgen_vqa.toml", *sizes, "metrics.overlap.type='discovery'"
    end, text = run_mmgen("finished", *job)
    devices = [json.loads(path.read_text())["device"] for path in WORK.glob("finished/**/environment.json")]
    row("mmgen run bertgen_vqa.toml", f"{end}, on {devices}", ", ".join(SPEED.findall(text)) or text[-300:])
    end, text = run_mmgen("stopped", *job, stop=lambda: len([*WORK.glob("stopped/**/weights.safetensors")]) > 1)
    row("the same, SIGTERM after two steps", end, text[-120:])
    end, text = run_mmgen("stopped", *job)
    row("resumed", end, f"{compare_weights('finished', 'stopped')}; {text[-120:]}")


RECIPE = """name = "bench"
inputs = {{ image = {{ type = "regions", features = "{dir}/regions" }}, caption = {{ type = "text" }} }}
generator.type = "masked"
training = {{ batch_size = 128, epochs = 2 }}
steps.both = {{ inputs = ["image", "caption"], train = ["image", "backbone"], evaluate = false }}
data = {{ type = "table", folder = "{dir}", validation_split = "train", test_split = "train", files.train = "q.jsonl" }}

[backbone]
type = "bert"
num_hidden_layers = {layers}
hidden_size = {width}
num_attention_heads = {heads}
vocab_size = {words}
dropout = 0.0
"""


@cache
def write_recipe() -> Path:
    """A recipe that trains on random features and questions on disk."""
    path = WORK / "bench.toml"
    path.write_text(RECIPE.format(**vars(S), dir=WORK, heads=HEADS))
    with StoreWriter(WORK / "regions", {"made": "up"}) as store, (WORK / "q.jsonl").open("w") as file:
        for example in build_examples(6 * S.texts, vary=True):
            store.add(example.inputs["image"])
            record = {"id": example.id, "image": example.id, "caption": example.inputs["caption"]}
            print(json.dumps(record | {"questions": example.targets}), file=file)
    return path


def loader() -> None:
    """Whether training waits for its data: 36 x 2,048 numbers an image from HDF5, batches of 128 pairs."""
    for workers in (0, 4, 12) if CUDA else (0,):
        end, text = run_mmgen(f"workers-{workers}", write_recipe(), f"training.num_workers={workers}")
        row(f"{workers} workers", end, ", ".join(SPEED.findall(text)) or text[-200:])


@contextmanager
def watch_memory(limit: float = 0) -> Iterator[None]:
    """Write the most bytes that are held on the device at once to a file; `limit`: it has no more."""
    if CUDA and limit:
        torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(0).total_memory)
    try:
        yield
    finally:
        (WORK / "memory.txt").write_text(str(torch.cuda.max_memory_allocated()))


def oom() -> None:
    """Too little memory: micro-batches are halved, and training learns the same."""
    job = write_recipe(), "training.updates=4", "training.batch_size=320", "training.precision='fp32'"
    run_mmgen("enough", *job, inside=watch_memory())
    most, stays = int((WORK / "memory.txt").read_text()), 16 * sum(weights.numel() for weights in MODEL.parameters())
    limit = stays + 0.4 * (most - stays)
    end, text = run_mmgen("little", *job, inside=watch_memory(limit))
    note = f"{text.count('out of memory')} times out of memory; {compare_weights('enough', 'little')}"
    row(f"training with {limit / 1e9:.1f} of {most / 1e9:.1f} GB", end, f"{note}; {text[-120:]}")


@contextmanager
def process_of(rank: str, backend: str) -> Iterator[None]:
    """The environment of one of two processes that train together on one device."""
    os.environ.update(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1")
    os.environ["MASTER_PORT"] = str(20_000 + os.getpgrp() % 10_000)
    mmgen.training.distributed.InitProcessGroupKwargs = partial(InitProcessGroupKwargs, backend=backend)
    yield


def two() -> None:
    """Two processes on one device: what mmgen says to them, and (through gloo) whether they learn what one learns."""
    job = write_recipe(), "training.updates=4", "training.micro_batch_size=32", "training.precision='fp32'"
    run_mmgen("one", *job)
    for backend in ("nccl", "gloo") if CUDA else ("gloo",):
        second = partial(run_mmgen, backend, *job, inside=process_of("1", backend))
        process = FORK.Process(target=second)
        process.start()
        end, text = run_mmgen(backend, *job, inside=process_of("0", backend))
        process.join()
        row(f"two processes, {backend}", end, f"{compare_weights('one', backend)}; {text[-160:]}")


def measure(part: str) -> None:
    """A part, in a session of processes of its own."""
    os.setsid()
    with attempt("the part"):
        globals()[part]()


def main() -> None:
    """Measure the parts one after the other, as long as there is time."""
    minutes = S.minutes or ((3.7 if S.call == 2 else 7.5) if CUDA else 60)
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "bench.md").open("a") as page:
        page.write("\n| part | what | value | note |\n|---|---|---|---|\n")
    row("ready", f"{os.cpu_count()} cores", "a rehearsal: THE FIGURES MEAN NOTHING" if S.tiny else vars(S))
    for part in S.parts:
        began, slack = time.monotonic(), 1 if CUDA else 20
        limit = min(slack * LIMITS[part], 60 * minutes - began + BEGAN)
        if limit < 10:
            break
        process = FORK.Process(target=measure, args=(part,), name=part)
        process.start()
        try:
            process.join(limit)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the part, or what is left of it
        process.join()
        row(part, "STOPPED OR CRASHED" if process.exitcode else "done", f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    if CUDA and not torch.cuda.is_available():
        sys.exit("bench.py: no GPU was found; use --device cpu, or --tiny")
    torch.set_num_threads(1)  # OpenMP's threads would not survive a fork
    MODEL = build_model()
    main()
