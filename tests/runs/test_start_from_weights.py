"""Steps that start from published weights: the tensors that parts take, and the message about the rest."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from kit import toys
from kit.training import RecordedProgress
from mmgen_encoders import Bert
from mmgen_encoders.encoder import EncoderBackbone
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForPreTraining

from mmgen.attention import prefix_layout
from mmgen.data.datasets import Datasets
from mmgen.errors import DataError, PluginError, RecipeError
from mmgen.progress import Progress
from mmgen.recipe.load import load
from mmgen.recipe.paths import with_real_paths
from mmgen.recipe.weight_files import weight_errors
from mmgen.registry import installed
from mmgen.runs.run import run
from mmgen.runs.start_from_weights import load_start
from mmgen.runs.step import init_objectives
from mmgen.storage.model_files import build_model
from mmgen.storage.weights import state
from mmgen.tensors import Slots

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]

RECIPE = toys.recipe(
    backbone={"hidden_size": 16},
    inputs={"caption": {"type": "text"}, "second": {"type": "text"}},
    objectives={"fits": {"type": "sentence_image"}},
    training={"batch_size": 4, "checkpoint_every": 1, "epochs": 2},
    steps={
        "pre": {
            "inputs": ["caption", "second"],
            "train": ["caption"],
            "objectives": ["fits"],
            "start": "weights:bert.bin",
            "evaluate": False,
        },
        "write": {"inputs": ["caption"], "train": ["backbone"], "start": "pre"},
    },
    data={"train_size": 8, "test_size": 4},
    metrics=None,
)
SHAPE = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
LINE = RECIPE.splitlines().index('start = "weights:bert.bin"') + 1


@pytest.fixture(scope="module")
def published_bert(tmp_path_factory):
    """A recipe, its model, and a BERT for pretraining of its sizes, published in bert.bin."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "toy.toml").write_text(RECIPE)
    recipe, _ = load(folder / "toy.toml", installed())
    model = build_model(recipe, Datasets(recipe))
    torch.manual_seed(1)
    words = len(model.backbone.tokenizer)
    theirs = BertForPreTraining(BertConfig(vocab_size=words, **SHAPE))
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)  # norms of ones would not show
    torch.save(theirs.state_dict(), folder / "bert.bin")
    return folder, model


@pytest.fixture
def place(published_bert, tmp_path, monkeypatch):
    """A separate folder with the recipe and the weights."""
    for name in ("toy.toml", "bert.bin"):
        shutil.copy(published_bert[0] / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def started(model, start: str = "weights:bert.bin"):
    """The message of a run about its start, and the names of the tensors that the step then takes."""
    Path("toy.toml").write_text(RECIPE.replace('"weights:bert.bin"', json.dumps(start)))
    recipe, _ = load(Path("toy.toml"), installed())
    heard = RecordedProgress()
    return heard.lines, load_start(recipe, "pre", model, heard)


def refused(model, start: str, kind=DataError) -> str:
    with pytest.raises(kind) as error:
        started(model, start)
    assert "\n" not in str(error.value) and error.value.about == ("steps", "pre", "start")
    return str(error.value)


def fresh(model) -> dict:
    return {name: tensor.clone() for name, tensor in state(model).items()}


def test_parts_take_what_is_theirs_and_the_rest_is_named(published_bert, place):
    _, model = published_bert
    with torch.no_grad():
        for tensor in state(model).values():
            tensor.add_(1)  # so that what another test has loaded is not taken for this one's
    before, theirs = fresh(model), torch.load("bert.bin")
    (line,), loaded = started(model)
    assert line == (
        "pre: weights:bert.bin: 30 of 32 tensors taken; left over 2 (cls.seq_relationship.weight, "
        "cls.seq_relationship.bias); as built 2 (objectives.fits.head.weight, objectives.fits.head.bias)"
    )
    now = state(model)
    assert torch.equal(now["backbone.pooler.dense.weight"], theirs["bert.pooler.dense.weight"])
    assert all(torch.equal(now[name], before[name]) == (name not in loaded) for name in now)


def test_what_was_taken_predicts_what_the_publishers_model_does(published_bert, place):
    _, model = published_bert
    started(model)
    theirs = BertForPreTraining(BertConfig(vocab_size=len(model.backbone.tokenizer), **SHAPE)).eval()
    theirs.load_state_dict(torch.load("bert.bin"))
    ids = torch.tensor([[1, 7, 9, 3, 2]])
    places, real = torch.arange(5)[None], torch.ones(1, 5, dtype=torch.bool)
    with torch.no_grad():
        slots = Slots(model.eval().backbone.embed(ids), places, torch.zeros_like(ids), prefix_layout(real))
        states = model.backbone.encode(slots).last
        torch.testing.assert_close(model.backbone.logits(states), theirs(ids).prediction_logits, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(model.backbone.pooled(states), theirs.bert(ids).pooler_output, atol=1e-5, rtol=1e-5)


def test_weights_of_mmgens_own_need_no_other_names(published_bert, place):
    _, model = published_bert
    full_state = {name: torch.ones_like(tensor) for name, tensor in state(model).items()}
    save_file(full_state, "ours.safetensors")
    (line,), loaded = started(model, "weights:ours.safetensors")
    assert line.endswith(f"{len(full_state)} of {len(full_state)} tensors taken") and loaded == full_state.keys()


def test_visualberts_head_is_an_objectives(published_bert, place):
    _, model = published_bert
    theirs = torch.load("bert.bin")
    theirs["bert.embeddings.visual_projection.weight"] = torch.ones(16, 4)
    torch.save(theirs, "visual.bin")
    (line,), loaded = started(model, "weights:visual.bin")
    assert line.endswith("left over 1 (bert.embeddings.visual_projection.weight)")
    assert torch.equal(state(model)["objectives.fits.head.weight"], theirs["cls.seq_relationship.weight"])
    began = []
    model.objective("fits").init_from_model = began.append
    recipe, _ = load(Path("toy.toml"), installed())
    init_objectives(recipe, "pre", model, loaded)
    assert not began  # the head has its weights
    init_objectives(recipe, "pre", model)
    assert began == [model]


@pytest.mark.parametrize(
    "absent, said",
    [
        ("bert.pooler.dense.bias", "the pooler is only half there: 'bert.pooler.dense.bias' is missing"),
        ("cls.predictions.bias", "the masked-LM head is only half there: 'cls.predictions.bias' is missing"),
        ("cls.predictions.transform.dense.weight", "'cls.predictions.transform.dense.weight' is missing"),
    ],
)
def test_what_is_half_there_is_refused(published_bert, place, absent, said):
    theirs = torch.load("bert.bin") | {"bert.embeddings.visual_projection.weight": torch.ones(16, 4)}
    torch.save({n: t for n, t in theirs.items() if n.replace("decoder.", "") != absent}, "half.bin")
    assert said in refused(published_bert[1], "weights:half.bin")


def test_weights_of_another_width_are_refused_with_the_recipes_line(published_bert, place):
    _, model = published_bert
    theirs = torch.load("bert.bin")
    words = theirs["bert.embeddings.word_embeddings.weight"].shape
    torch.save({name: torch.zeros(*tensor.shape, 2).flatten(-2) for name, tensor in theirs.items()}, "wide.bin")
    said = refused(model, "weights:wide.bin")
    assert said.startswith("'wide.bin': the backbone: ")
    assert (
        f"'bert.embeddings.word_embeddings.weight' has shape ({words[0]}, 32), but "
        f"backbone.model.bert.embeddings.word_embeddings.weight has shape ({words[0]}, 16); set the sizes" in said
    )


def test_weights_that_are_none_of_the_steps_are_refused(published_bert, place):
    _, model = published_bert
    torch.save({"vision.patches": torch.ones(2), "vision.bias": torch.ones(2)}, "other.pt")
    said = refused(model, "weights:other.pt")
    assert said == (
        "'other.pt': none of the 2 tensors matches a part of this step (the "
        "backbone, input 'caption', input 'second', objective 'fits'); the tensors are named: vision.patches, "
        "vision.bias"
    )
    recipe, layers = load(Path("toy.toml"), installed())
    with pytest.raises(DataError, match=f"^toy.toml:{LINE}: steps.pre.start: 'other.pt': none of the 2 tensors"):
        run(recipe, layers=layers)
    theirs = torch.load("bert.bin")
    theirs["bert.pooler.dense.bias"][3] = torch.nan
    torch.save(theirs, "nan.bin")
    assert "'bert.pooler.dense.bias' is not finite (NaN or infinite); the file is damaged" in refused(
        model, "weights:nan.bin"
    )
    theirs["bert.pooler.dense.bias"] = torch.ones(16, dtype=torch.bfloat16)
    theirs["cls.predictions.decoder.weight"] = theirs["bert.embeddings.word_embeddings.weight"] = torch.ones(1).expand(
        1 << 40, 1 << 20
    )
    torch.save(theirs, "vast.bin")
    message = "has shape (1099511627776, 1048576) but fewer values"
    assert f"'bert.embeddings.word_embeddings.weight' {message}" in refused(model, "weights:vast.bin")


def test_a_part_that_gives_what_it_should_not_is_named(published_bert, place, monkeypatch):
    monkeypatch.setattr(EncoderBackbone, "published", lambda self, weights: {"model.cls": torch.ones(1)})
    message = "the backbone: published returns 'model.cls', which is not one of its parameters"
    with pytest.raises(PluginError, match=message):
        started(published_bert[1])


def test_a_tensor_that_cannot_be_read_is_named_where_a_part_wants_it_and_else_left_over(published_bert, place):
    theirs = torch.load("bert.bin")
    odd = {name: theirs[name].to_sparse() for name in ("cls.seq_relationship.weight", "bert.pooler.dense.bias")}
    torch.save(theirs | {"cls.seq_relationship.weight": odd["cls.seq_relationship.weight"]}, "bert.bin")
    (line,), _ = started(published_bert[1])
    assert "30 of 32 tensors taken; left over 2 (cls.seq_relationship.weight, " in line
    torch.save(theirs | odd, "bert.bin")
    assert refused(published_bert[1], "weights:bert.bin") == (
        "'bert.bin': 'bert.pooler.dense.bias' is sparse (sparse_coo); use weights saved as dense, unquantised tensors"
    )


@pytest.mark.parametrize(
    "start, message",
    [
        ("weights:gone.safetensors", "'gone.safetensors': no such file or folder; give a file (.safetensors, .bin"),
        ("weights:./nowhere", "'./nowhere': no such file or folder; give a file"),
        ("weights:toy.toml", "'toy.toml': not a weights file by its name; give a file"),
        ("weights:empty", "'empty': the folder has no weights files; give a file"),
        ("weights:bert.bin", ""),
        ("weights:uclanlp/visualbert-vqa", ""),  # whether a hub has it, a run will see
    ],
)
def test_check_tells_what_it_can_without_reading_tensors(place, start, message):
    Path("empty").mkdir()
    Path("toy.toml").write_text(RECIPE.replace("weights:bert.bin", start))
    recipe, layers = load(Path("toy.toml"), installed())
    problems = weight_errors(recipe, recipe.steps, layers)
    assert len(problems) == bool(message) and "".join(problems).startswith(
        f"toy.toml:{LINE}: steps.pre.start: {message}" * bool(message)
    )


def test_a_start_without_a_name_is_a_mistake_and_a_path_counts_from_the_recipe(place):
    Path("toy.toml").write_text(RECIPE.replace("weights:bert.bin", "weights: "))
    with pytest.raises(RecipeError, match=f'toy.toml:{LINE}: steps.pre.start: write a file, .* after "weights:"'):
        load(Path("toy.toml"), installed())
    (place / "recipes").mkdir()
    shutil.move("bert.bin", "recipes/bert.bin")
    Path("recipes/toy.toml").write_text(RECIPE)
    recipe, layers = load(Path("recipes/toy.toml"), installed())
    assert recipe.steps["pre"].weights == "recipes/bert.bin" and not weight_errors(recipe, recipe.steps, layers)
    start = with_real_paths(recipe).steps["pre"].start
    Path("recipes/bert.bin").unlink()  # it is the same recipe without it
    gone, _ = load(place / "recipes/toy.toml", installed())
    assert start == with_real_paths(gone).steps["pre"].start == f"weights:{(place / 'recipes/bert.bin').resolve()}"
    assert gone.steps["pre"].weights == str(place / "recipes/bert.bin")
    assert recipe.chain("write") == ["pre", "write"] and recipe.steps["write"].before == "pre"


class Stopping(Progress):
    """Stops a run after its second update."""

    def task(self, label, total, unit="", done=0):
        calls = iter(range(1))
        inner = super().task(label, total, unit, done)

        class Task:
            def __enter__(self):
                advance = inner.__enter__()

                def stop(steps=1, text=""):
                    advance(steps, text)
                    if "training" in label and next(calls, None) is None:
                        raise KeyboardInterrupt

                return stop

            def __exit__(self, *error):
                return inner.__exit__(*error)

        return Task()


@pytest.mark.slow
def test_a_run_that_goes_on_needs_the_file_no_more_and_two_are_equal(place):
    recipe, _ = load(Path("toy.toml"), installed())
    uninterrupted = run(recipe.model_copy(update={"output": "whole"}), only=("pre",))
    with pytest.raises(KeyboardInterrupt):
        run(recipe.model_copy(update={"output": "stopped"}), only=("pre",), progress=Stopping())
    step = place / "stopped/toy/default/seed-0/steps/pre"
    assert {path.name for path in step.iterdir()} == {"checkpoint.safetensors", "log.jsonl"}
    theirs = torch.load("bert.bin")
    Path("bert.bin").unlink()
    again = run(recipe.model_copy(update={"output": "stopped"}), only=("pre",))
    first, second = (load_file(folder.step("pre") / "weights.safetensors") for folder in (uninterrupted, again))
    assert first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)
    pre = load_file(step / "weights.safetensors")
    frozen = pre["backbone.model.bert.embeddings.word_embeddings.weight"]
    assert torch.equal(frozen, theirs["bert.embeddings.word_embeddings.weight"])
    assert {path.name for path in step.iterdir()} == {"weights.safetensors", "log.jsonl"}


def test_a_pooler_comes_with_pretrained_weights(published_bert, tmp_path, caplog):
    """A folder saved by transformers, with a pooler and without one."""
    _, model = published_bert
    for name in ("with", "without"):
        model.backbone.save(tmp_path / name)
        theirs = {
            key: tensor for key, tensor in torch.load(published_bert[0] / "bert.bin").items() if "decoder" not in key
        }
        if name == "without":
            theirs = {key: tensor for key, tensor in theirs.items() if "pooler" not in key}
        save_file(theirs, tmp_path / name / "model.safetensors", {"format": "pt"})
    poolers = {}
    caplog.set_level("INFO", "mmgen.learning")
    for name in ("with", "without"):
        poolers[name] = Bert(weights=str(tmp_path / name)).build()
        torch.manual_seed(0)
        poolers[name].add_pooler()
    dense = {name: backbone.pooler.dense for name, backbone in poolers.items()}
    theirs = torch.load(published_bert[0] / "bert.bin")
    assert torch.equal(dense["with"].weight, theirs["bert.pooler.dense.weight"])
    assert torch.equal(dense["with"].bias, theirs["bert.pooler.dense.bias"])
    assert not torch.equal(dense["without"].weight, dense["with"].weight)
    assert [r.message for r in caplog.records if "no pooler" in r.message] == [
        f"{tmp_path / 'without'}: has no pooler; a new pooler is created and trained with the backbone"
    ]
    again = toys.model(Bert).backbone  # not pretrained: nothing is read
    again.add_pooler()
