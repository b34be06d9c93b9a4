"""Sharded training (`training.shard`): processes with slices of a model train like one process with the complete
model."""

import gc
import json
import os
from pathlib import Path
from typing import Literal

import pytest
import torch
from accelerate import Accelerator
from kit import toys
from kit.processes import RECIPE, WATCHED, log, several
from kit.toys import PLACE, weights
from kit.toys import mmgen_here as mmgen
from kit.training import LimitedMemory, RecordedProgress, build_learner, largest_difference, step, train_step
from mmgen_encoders import Albert, Bert, DistilBert, Electra, SqueezeBert
from mmgen_masked import Masked
from mmgen_text import Text
from safetensors.torch import load_file
from torch.distributed.tensor import DTensor

import mmgen as front_door
from mmgen.data.sources import Source
from mmgen.errors import MmgenError, RunError
from mmgen.model import compose
from mmgen.parts import Embedder
from mmgen.recipe.load import load
from mmgen.recipe.tables import Step, Training
from mmgen.registry import installed
from mmgen.storage.weights import load_weights, read_tensors
from mmgen.tensors import Segment
from mmgen.testing.tiny import Tiny
from mmgen.training import distributed
from mmgen.training.fsdp import ON_CPUS, Sharded, layers
from mmgen.training.learner import Learner
from mmgen.training.train import train
from mmgen.training.validate import validate

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]  # every test starts commands or processes

UNLIKE = (Bert, Albert, Electra, DistilBert, SqueezeBert)  # the others' modules are BERT's
ENCODERS = {family.model_fields["type"].default: family for family in UNLIKE}
VALIDATION = toys.examples(3, seed=1)  # two for one process, one for the other
KEYS = (
    "key.bias",
    "k_lin.bias",
    "read.bias",
)  # the gradient of attention's keys' biases is rounding alone, which Adam blows up
STOPPED = 4  # the update at which a run is as good as killed
SLICES = """
    import sys
    from pathlib import Path
    from test_fsdp import in_slices, with_little_memory
    in_slices(Path(), sys.argv[1:])
    with_little_memory(Path())
"""


class Bent(front_door.EmbedderConfig):
    """A caption's word embeddings times a matrix, for an input that trains."""

    type: Literal["bent"] = "bent"

    def build(self, backbone):
        return BentEmbedder(self, backbone)


class BentEmbedder(Embedder):
    def __init__(self, config, backbone):
        super().__init__()
        self.text = Text(fields=config.fields).build(backbone)
        self.reader, self.bend = self.text.reader, torch.nn.Linear(backbone.input_size, backbone.input_size)

    def forward(self, **collated):
        segment = self.text(**collated)
        return Segment(self.bend(segment.states), segment.mask)


def bent():
    """A model whose input trains too."""
    torch.manual_seed(0)
    return compose(
        Bert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90, dropout=0.3),
        {"caption": Bent()},
        Masked(max_tokens=9),
        texts=[" ".join(toys.WORDS)] * 3,
    )


def tiny():
    """A backbone that is not from transformers."""
    torch.manual_seed(0)
    return compose(Tiny(positions=200), {"caption": Text()}, Masked(max_tokens=9), texts=[" ".join(toys.WORDS)])


def frozen(**training):
    return Step(
        inputs=("caption",),
        train=("caption",),
        training=Training(batch_size=12, micro_batch_size=6, epochs=1, learning_rate=1e-2, **training),
    )


# What is learnt in slices and whole, each with the step's settings: uneven updates, layers that are run several times
# over
# (ALBERT), heads of several modules (ELECTRA, DistilBERT), tied words, dropout, logits that are made again on the way
# back.
MODELS = {name: (lambda family=family: toys.model(family, dropout=0.1)) for name, family in ENCODERS.items()}
MODELS |= {"tiny": tiny, "frozen": bent, "best": bent, "long": toys.model, "sgd": bent, "bert_adam": bent}
MORE = ("electra", "distilbert", "squeezebert", "bert_adam")  # heads, names, a rule of Adam; the others show the rest
STEPS = {
    "best": {"epochs": 4, "learning_rate": 0.1, "warmup_ratio": 0.0, "keep": "best"},
    "long": {"epochs": 1, "batch_size": 500, "micro_batch_size": 300},
    "sgd": {"epochs": 2, "optimizer": "sgd", "momentum": 0.9, "clip": "each", "freeze": ["*.query.*"]},
    "bert_adam": {"epochs": 1, "bias_correction": False, "eps": 1e-6},
}
RESUMED = {  # what two processes go on with from where one was stopped
    "resumed": {},
    "halved": {},
    "momentum": {"optimizer": "sgd", "momentum": 0.9, "learning_rate": 1e-2, "freeze": ["*.LayerNorm.*"]},
}


def chosen(name, **more):
    return frozen(**more) if name == "frozen" else step(**STEPS.get(name, {"epochs": 1}), **more)


def examples(name):
    return toys.examples(200 if name == "long" else 16)


def in_slices(folder: Path, names: list[str]) -> None:
    """The results of two processes in separate folders: these of MODELS, and the other results that tests read."""
    accelerator = distributed.start()

    def context(name, step):
        return toys.context(folder / name, step, accelerator=accelerator)

    for name in names:
        make = MODELS[name]
        model = make()
        modules, tied = [type(module) for module in model.modules()], len(model.state_dict())
        train(model, context(name, chosen(name, shard=True)), [Source(examples(name), VALIDATION)])
        assert [type(module) for module in model.modules()] == modules and len(model.state_dict()) == tied
        assert not [parameter for parameter in model.parameters() if isinstance(parameter, DTensor)]
        load_weights(written := make(), folder / name / "weights.safetensors")
        assert largest_difference(model, written) == 0, name  # in every process, whoever wrote the file
    bf16 = context("bf16", step(shard=True, epochs=1, precision="bf16"))
    train(toys.model(dropout=0.0), bf16, [Source(toys.examples(20))])
    often = step(shard=True, checkpoint_every=1)
    for name, more in RESUMED.items():
        chosen_so = step(shard=True, checkpoint_every=1, **more)
        train(toys.model(dropout=0.3), context(name, chosen_so), [Source(toys.examples(20), VALIDATION)])
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyError):
        stop(patch)
        train(toys.model(dropout=0.3), context("stopped", often), [Source(toys.examples(20), VALIDATION)])
    accelerator.wait_for_everyone()
    held = counted(context("counted", step(shard=True, epochs=1)))
    (folder / f"told-{accelerator.process_index}.json").write_text(json.dumps(held))


def stop(patch):
    update = Learner.update

    def stops(learner, number, *arguments, **more):
        if number == STOPPED:
            raise KeyError("as good as a kill")
        return update(learner, number, *arguments, **more)

    patch.setattr(Learner, "update", stops)


def counted(context) -> dict:
    """Bytes of a model that a process holds between updates, and how many layers are complete while one runs."""
    model, counts, gathered = toys.model(num_hidden_layers=8, hidden_size=64, dropout=0.0), {}, set()
    parameters, deep = sum(p.nbytes for p in model.parameters()), list(model.backbone.model.bert.encoder.layer)
    before = storages()  # the model's own among them: they wait on the CPU, which here is the device too

    def look(*_):
        gathered.add(sum(not isinstance(next(layer.parameters()), DTensor) for layer in deep))

    for layer in deep:
        layer.register_forward_hook(look)
        layer.register_full_backward_hook(look)
    update = Learner.update

    def measured(learner, *arguments, **more):
        record = update(learner, *arguments, **more)
        if learner.cursor.done + 1 < len(learner.plan):
            return record
        counts["held"] = sum(storage.nbytes() for place, storage in storages().items() if place not in before)
        counts["slices"] = sum(p.to_local().nbytes for p in learner.sharded.parameters.values())
        counts["moments"] = sum(
            t.to_local().nbytes
            for moments in learner.optimizer.state.values()
            for t in moments.values()
            if isinstance(t, DTensor)
        )
        return record

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Learner, "update", measured)
        train(model, context, [Source(toys.examples(8))])
    return counts | {"parameters": parameters, "gathered": sorted(gathered)}


def storages() -> dict:
    """The storages of all existing tensors by address; while they are held, no other storage gets the address."""
    gc.collect()
    tensor_storages = [t.untyped_storage() for t in gc.get_objects() if type(t) in (torch.Tensor, torch.nn.Parameter)]
    return {storage.data_ptr(): storage for storage in tensor_storages}


def with_little_memory(folder: Path) -> None:
    """Trains with little memory in the first process only, and records the messages of the processes."""
    model, accelerator = toys.model(), distributed.start()
    if accelerator.process_index == 1:
        LimitedMemory(model, pairs=0)
    try:
        with distributed.peer_failures(accelerator):
            cramped = toys.context(folder / "cramped", step(shard=True), accelerator=accelerator)
            train(model, cramped, [Source(toys.examples(20))])
    except MmgenError as error:
        (folder / f"said-{accelerator.process_index}.txt").write_text(str(error))
    os._exit(0)  # not waiting for each other


def starting(name):
    """A model, with little memory if its micro-batches are to be halved."""
    model = toys.model(dropout=0.3)
    if name == "halved":
        LimitedMemory(model, pairs=4)
    return model


@pytest.fixture(scope="module")
def torch_can() -> None:
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < ON_CPUS:
        pytest.skip(f"sharding on CPUs fails in torch {torch.__version__}")


@pytest.fixture(scope="module")
def slices(torch_can, tmp_path_factory, pytestconfig) -> Path:
    """Sharded training of two processes; two of the runs resume from where a single process was stopped."""
    folder = tmp_path_factory.mktemp("slices")
    for name, more in RESUMED.items():
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyError):
            stop(patch)
            train_step(folder / name, starting(name), step(checkpoint_every=1, **more), validation=VALIDATION)
    names = [name for name in MODELS if name not in MORE or pytestconfig.getoption("exhaustive")]
    done = several(2, folder, SLICES, *names)
    assert done.returncode == 0, done.stderr
    return folder


def alike(ours: list[dict], theirs: list[dict]) -> None:
    for our, their in zip(ours, theirs, strict=True):
        assert our.keys() == their.keys()
        assert our["loss"] == pytest.approx(their["loss"], abs=1e-5) and our["grad_norm"] == pytest.approx(
            their["grad_norm"], rel=1e-3
        )
        assert our.get("validation_loss") == pytest.approx(their.get("validation_loss"), abs=1e-5)


def close(ours: dict, theirs: dict) -> None:
    assert {name: (value.shape, value.dtype) for name, value in ours.items()} == {
        name: (value.shape, value.dtype) for name, value in theirs.items()
    }
    for name in ours:
        assert (ours[name] - theirs[name]).abs().max() < 5e-5 or name.endswith(KEYS), name


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive if name in MORE else ()) for name in MODELS]
)
def test_sharded_training_equals_unsharded(name, slices, tmp_path):
    alike(
        log(slices / name),
        train_step(tmp_path / "s", MODELS[name](), chosen(name), examples(name), validation=VALIDATION),
    )
    close(load_file(slices / name / "weights.safetensors"), load_file(tmp_path / "s/weights.safetensors"))
    assert {path.name for path in (slices / name).iterdir()} == {path.name for path in (tmp_path / "s").iterdir()}


def test_what_is_frozen_stays_as_it_was(slices):
    before, after = bent().state_dict(), load_file(slices / "frozen/weights.safetensors")
    assert {name for name in after if not after[name].equal(before[name])} == {
        "embedders.caption.bend.weight",
        "embedders.caption.bend.bias",
    }


def test_the_best_weights_are_kept(slices):
    losses = [record["validation_loss"] for record in log(slices / "best") if "validation_loss" in record]
    assert losses[-1] > min(losses)
    model = bent()
    load_weights(model, slices / "best/weights.safetensors")
    learner = build_learner(model, slices, step_config=chosen("best"), validation=VALIDATION)
    assert validate(learner)["validation_loss"] == pytest.approx(min(losses), abs=1e-5)


def test_what_is_frozen_by_name_stays_in_slices_too(slices):
    before, after = bent().state_dict(), load_file(slices / "sgd/weights.safetensors")
    same = {name for name in after if after[name].equal(before[name])}
    assert {name for name in after if ".query." in name} < same
    assert not any(".value." in name for name in same)


@pytest.mark.parametrize("name", RESUMED)
def test_two_processes_with_slices_go_on_from_a_checkpoint_of_one(name, slices, tmp_path):
    """If that process had to split its micro-batches, they continue with the pieces."""
    expected = train_step(tmp_path / "s", starting(name), step(**RESUMED[name]), validation=VALIDATION)
    alike(log(slices / name), expected)
    assert ("halved" in expected[-1]) == (name == "halved")
    close(load_file(slices / name / "weights.safetensors"), load_file(tmp_path / "s/weights.safetensors"))


def test_a_checkpoint_of_slices_is_whole_and_one_process_goes_on_from_it(slices, tmp_path):
    tensors, about = read_tensors(slices / "stopped/checkpoint.safetensors")
    assert json.loads(about["cursor"])["done"] == STOPPED
    shapes = {name: parameter.shape for name, parameter in toys.model().named_parameters()}
    for kind in ("model", "optimizer.exp_avg", "optimizer.exp_avg_sq"):
        assert {name: tensors[f"{kind}.{name}"].shape for name in shapes} == shapes
    expected = train_step(tmp_path / "s", toys.model(dropout=0.3), validation=VALIDATION)
    alike(train_step(slices / "stopped", toys.model(dropout=0.3), validation=VALIDATION), expected)
    close(load_file(slices / "stopped/weights.safetensors"), load_file(tmp_path / "s/weights.safetensors"))


def test_bf16_is_gathered_as_bf16_and_updated_in_full_precision(slices, tmp_path):
    full_log = train_step(tmp_path / "s", toys.model(dropout=0.0), step(epochs=1, precision="bf16"))
    assert [record["loss"] for record in log(slices / "bf16")] == pytest.approx(
        [record["loss"] for record in full_log], rel=0.01
    )
    assert {tensor.dtype for tensor in load_file(slices / "bf16/weights.safetensors").values()} == {torch.float32}


def test_a_process_holds_half_and_gathers_a_layer_at_a_time(slices):
    """Without sharding, weights and AdamW's two moments take 3 times the parameters."""
    reports = [json.loads((slices / f"told-{rank}.json").read_text()) for rank in (0, 1)]
    for report in reports:
        assert report["slices"] == pytest.approx(report["parameters"] / 2, rel=0.01)
        assert report["moments"] == 2 * report["slices"]
        assert 1.5 * report["parameters"] < report["held"] < 1.6 * report["parameters"], report
        assert set(report["gathered"]) <= {1, 2}, report
    assert sum(report["slices"] for report in reports) >= reports[0]["parameters"]


@pytest.mark.exhaustive
def test_a_run_of_three_processes_with_slices_is_a_run_of_one_and_only_the_first_writes(torch_can, tmp_path):
    """Updates of four micro-batches and of one: some processes have more work, or none, but run as many passes."""
    for name in ("one", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "toy.toml").write_text(RECIPE.replace("epochs = 2", "epochs = 1"))
    alone = mmgen(tmp_path / "one", "run", "toy.toml")
    assert alone.returncode == 0, alone.stderr
    done = several(3, tmp_path / "three", WATCHED, "run", "toy.toml", "--set", "training.shard=true")
    assert done.returncode == 0, done.stderr
    single, three = tmp_path / "one" / PLACE, tmp_path / "three" / PLACE
    for name in ("first", "second"):
        alike(log(single / "steps" / name), log(three / "steps" / name))
        close(weights(tmp_path / "one", name), weights(tmp_path / "three", name))
        assert {path.name for path in (single / "steps" / name).iterdir()} == {
            path.name for path in (three / "steps" / name).iterdir()
        }
    assert (three / "table.md").read_text() == (single / "table.md").read_text()
    assert (tmp_path / "three/opened-0.txt").read_text()
    assert (tmp_path / "three/opened-1.txt").read_text() == (tmp_path / "three/opened-2.txt").read_text() == ""


TOO_LARGE = (
    "out of memory; with training.shard a batch cannot be split, since the other processes wait for each layer; "
    "lower training.micro_batch_size and start over with --fresh, or resume the last checkpoint with more processes"
)


def test_out_of_memory_ends_the_run_with_one_line_of_what_to_do(slices):
    assert (slices / "said-1.txt").read_text() == f"step 's', update 0: {TOO_LARGE}"
    assert (slices / "said-0.txt").read_text().startswith("process 0 of 2: another process has ended (")


def test_out_of_memory_while_validating_too(tmp_path):
    model = toys.model()
    learner = build_learner(model, tmp_path, validation=VALIDATION)
    learner.sharded = type("InSlices", (), {"loss": LimitedMemory(model, pairs=0)})()
    with pytest.raises(RunError) as error:
        validate(learner)
    assert str(error.value) == f"step 's', validation: {TOO_LARGE}"


def test_one_process_cannot_shard(tmp_path):
    plain, sharded, messages = toys.model(), toys.model(), RecordedProgress()
    expected = train_step(tmp_path / "plain", plain)
    assert (
        train_step(tmp_path / "asked", sharded, step(shard=True), progress=messages) == expected
        and largest_difference(plain, sharded) == 0
    )
    assert (
        messages.lines[0]
        == "s: training.shard has no effect in one process; start several with `torchrun --nproc-per-node N -m mmgen "
        "run ...`"
    )


def test_it_is_the_same_run_with_and_without(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    (without, _), (with_it, _) = (
        load(tmp_path / "toy.toml", installed(), None, sets) for sets in ((), ("training.shard=true",))
    )
    assert with_it.training.shard and with_it.steps["first"].training.shard and with_it.identity() == without.identity()


def test_a_parameter_that_cannot_be_cut_is_named():
    model = toys.model()
    model.generator.heat = torch.nn.Parameter(torch.tensor(1.0))
    with pytest.raises(RunError) as error:
        Sharded(model, Accelerator(cpu=True), Training(shard=True))
    assert (
        str(error.value)
        == "training.shard: the parameter 'generator.heat' is a single number, which cannot be sharded; make it a "
        "vector of length 1, or train without training.shard"
    )


def test_a_torch_without_fsdp2_is_reported(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.6.0+cpu")
    with pytest.raises(RunError) as error:
        Sharded(toys.model(), Accelerator(cpu=True), Training(shard=True))
    assert (
        str(error.value)
        == "training.shard on CPUs needs torch 2.13 or newer, but torch is 2.6.0+cpu; update torch, or train "
        "without training.shard"
    )


def test_layers_are_the_items_of_the_outermost_lists():
    inner = torch.nn.ModuleList([torch.nn.Linear(1, 1)])
    layer = torch.nn.Sequential(torch.nn.Linear(1, 1), inner)
    lists = {"layers": torch.nn.ModuleList([layer, layer]), "nested": torch.nn.ModuleList([inner])}
    model = torch.nn.ModuleDict({"words": torch.nn.Embedding(1, 1), **lists})
    assert [(siblings is lists["layers"], number, item is layer) for siblings, number, item in layers(model)] == [
        (True, 0, True),
        (True, 1, True),
        (False, 0, False),
    ]
