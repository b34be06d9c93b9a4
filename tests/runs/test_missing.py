"""Everything that a run lacks is listed at once: data, encoder, features, extractors, initial weights."""

import pytest
from kit import toys

pytestmark = pytest.mark.slow
IMAGE = {"type": "regions", "features": "nowhere.h5"}
STEPS = {
    "words": {"inputs": ["caption"], "train": ["backbone"]},
    "both": {"inputs": ["image", "caption"], "train": ["image", "backbone"], "start": "weights:gone.bin"},
}


def lines(folder, recipe: str, *arguments: str, command: tuple[str, ...] = ("run",)) -> list[str]:
    """What is wrong, by the keys that the lines are about."""
    (folder / "toy.toml").write_text(recipe)
    done = toys.mmgen_here(folder, *command, "toy.toml", *arguments)
    assert done.returncode == 1 and "Retrying" not in done.stderr
    return [line.strip() for line in done.stderr.partition("error: ")[2].splitlines()]


def place(recipe: str, text: str) -> str:
    return f"toy.toml:{recipe[: recipe.index(text)].count(chr(10)) + 1}"


@pytest.mark.parametrize("command", [("run",), ("data", "check")])
def test_one_list_has_data_encoder_features_and_weights(tmp_path, command):
    data = {"type": "vqa", "folder": "none", "train_size": None, "val_size": None, "test_size": None}
    recipe = toys.recipe(
        backbone={"weights": "nobody/nothing"},
        inputs={"image": IMAGE, "caption": {"type": "text"}},
        steps=STEPS,
        data=data,
    )
    found = lines(tmp_path, recipe, command=command)
    assert found[0] == "VQA 1.0: 6 files are missing:"
    assert "none/captions_val2014.json  <- annotations_trainval2014.zip (241 MB) of cocodataset.org/#download" in found
    weights = next(line for line in found if "backbone.weights" in line)
    assert weights == (
        f"{place(recipe, 'weights = ')}: backbone.weights: 'nobody/nothing' is not on this machine, as a folder or "
        f"downloaded, and HF_HUB_OFFLINE is set; it is at https://huggingface.co/nobody/nothing"
    )
    assert f"{place(recipe, 'features = ')}: inputs.image.features: nowhere.h5: no features; create them with `mm" in (
        "\n".join(found)
    )
    assert found[-1].startswith(f"{place(recipe, 'start = ')}: steps.both.start: 'gone.bin': no such file or folder")
