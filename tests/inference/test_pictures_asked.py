"""Runs with pictures: features extracted by the run, a frozen backbone, and queries about new pictures."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from kit import forked, toys
from kit.toys import mmgen_here as mmgen
from safetensors.torch import load_file

from mmgen.errors import RunError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]


RECIPE = toys.recipe(
    name="seeing",
    inputs={
        "image": {"type": "regions", "extractor": toys.ROI},
        "caption": {"type": "text"},
    },
    generator={"max_tokens": 8},
    steps={
        "caption": {"inputs": ["caption"], "train": ["backbone"]},
        "image_frozen": {"inputs": ["image"], "train": ["image"], "start": "caption"},
        "both": {"inputs": ["image", "caption"], "train": ["image", "backbone"], "start": "image_frozen"},
    },
    data={"train_size": 12, "val_size": 2, "test_size": 4},
    metrics=None,
)


PLACE = Path("runs/seeing/default/seed-0")


@pytest.fixture(scope="module")
def seeing(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("seeing")
    (folder / "seeing.toml").write_text(RECIPE)
    done = forked.run(forked.MMGEN, "run", "seeing.toml", folder=folder)
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout + done.stderr)
    from mmgen_scenes import Scenes

    (folder / "pictures").mkdir()
    for number, picture in enumerate(
        list(Scenes(train_size=1, val_size=1, test_size=3, seed=5).build().pictures())[:3]
    ):
        picture.load().save(folder / "pictures" / f"{number}.png")
    return folder


def weights(folder: Path, step: str) -> dict:
    return load_file(folder / PLACE / "steps" / step / "weights.safetensors")


def test_a_frozen_backbone_is_bit_identical_and_only_w_was_trained(seeing):
    before, after = weights(seeing, "caption"), weights(seeing, "image_frozen")
    changed = {name for name in after if not after[name].equal(before[name])}
    assert changed == {"embedders.image.projection.weight", "embedders.image.projection.bias"}


def test_a_step_goes_on_from_the_step_it_names(seeing):
    start, end = weights(seeing, "image_frozen"), weights(seeing, "both")
    moved = max((end[name] - start[name]).abs().max().item() for name in end)
    assert 0 < moved < 0.1, "one epoch at 1e-3 moves weights, but not far"


def test_w_is_one_linear_layer_over_features_and_box(seeing):
    from mmgen.features.store import FeatureStore

    (store,) = (seeing / PLACE.parent / "features").iterdir()
    assert weights(seeing, "both")["embedders.image.projection.weight"].shape == (32, FeatureStore(store).width + 4)


def test_an_encoder_without_pretrained_weights_is_mentioned(seeing):
    assert (
        "built on the spot" in (seeing / "said.txt").read_text()
        and "not pretrained" in (seeing / "said.txt").read_text()
    )


def test_targets_that_are_cut_are_counted(seeing):
    assert "texts are longer than 7 tokens (max_tokens) and are cut" in (seeing / "said.txt").read_text()


def test_a_run_that_no_metric_judges_says_so(seeing):
    assert "\nno scores: the recipe has no [metrics.NAME] for these steps\n" in (seeing / "said.txt").read_text()


def test_questions_about_one_picture(seeing):
    generated = mmgen(seeing, "generate", str(PLACE), "pictures/0.png", "--n", "3")
    assert generated.returncode == 0, generated.stderr
    lines = generated.stdout.splitlines()
    assert lines[0] == "pictures/0.png" and len(lines) == 4
    assert len({line.split(maxsplit=1)[1:][0] if len(line.split(maxsplit=1)) > 1 else "" for line in lines[1:]}) == 3


def test_the_step_is_chosen_by_what_is_given(seeing, monkeypatch):
    monkeypatch.chdir(seeing)
    from mmgen.inference.load import load_for
    from mmgen.inference.query import read_sources

    for caption, sources, step in (
        ("a dog", [], "caption"),
        (None, [Path("pictures/0.png")], "image_frozen"),
        ("a dog", [Path("pictures/0.png")], "both"),
    ):
        assert load_for(PLACE, read_sources(sources, {"caption": caption})).step == step


def test_a_folder_of_pictures_becomes_jsonl_and_broken_ones_are_reported(seeing, tmp_path):
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "good.png").write_bytes((seeing / "pictures/1.png").read_bytes())
    (folder / "bad.png").write_bytes(b"not an image")
    (folder / "more").mkdir()
    (folder / "more/good.png").write_bytes((seeing / "pictures/1.png").read_bytes())  # asking needs no keys
    done = mmgen(seeing, "generate", str(PLACE), str(folder), "--out", str(tmp_path / "out.jsonl"))
    assert done.returncode == 0, done.stderr
    lines = {line["id"]: line for line in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())}
    assert lines.keys() == {str(folder / name) for name in ("good.png", "bad.png", "more/good.png")}
    good, bad = lines[str(folder / "good.png")], lines[str(folder / "bad.png")]
    assert good["texts"] == lines[str(folder / "more/good.png")]["texts"] and "not a readable image" in bad["error"]


def test_pictures_that_are_answered_together_get_what_each_gets_alone(seeing, monkeypatch):
    monkeypatch.chdir(seeing)
    from mmgen.inference.load import load as load_model

    run, pictures = load_model(PLACE, "image_frozen"), [f"pictures/{number}.png" for number in range(3)]
    alone, together = (run.ask_all(pictures, n=2, batch_size=size) for size in (1, 2))
    texts = [[text.text for text in answer.texts] for answer in alone]
    assert texts == [[text.text for text in answer.texts] for answer in together]
    assert [answer.id for answer in together] == pictures and all(len(pair) == 2 for pair in texts)
    assert texts == [[text.text for text in run.ask(picture, n=2).texts] for picture in pictures]


def stopped(monkeypatch, out: Path, how: Callable[[], None]):
    """The output of the command when it is stopped after two of three pictures."""
    from mmgen.cli import main
    from mmgen.inference.predictor import Predictor

    answers = Predictor.answers

    def stops(*args, **named):
        for number, answer in enumerate(answers(*args, **named)):
            if number == 2:
                how()
            yield answer

    monkeypatch.setattr(Predictor, "answers", stops)
    return CliRunner().invoke(main, ["generate", str(PLACE), "pictures", "--out", str(out)])


def out_of_memory():
    raise RunError("writing: out of memory")


def send(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("how", "what"),
    [(out_of_memory, "writing: out of memory"), (send(signal.SIGINT), "stopped"), (send(signal.SIGTERM), "stopped")],
    ids=["error", "Ctrl-C", "SIGTERM"],
)
def test_what_has_been_asked_is_kept_when_something_stops_it(seeing, tmp_path, monkeypatch, how, what):
    monkeypatch.chdir(seeing)
    handler = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    out, partial = tmp_path / "out.jsonl", tmp_path / ".out.jsonl.partial"
    out.write_text("of an earlier time")
    done = stopped(monkeypatch, out, how)
    assert signal.signal(signal.SIGTERM, handler) is signal.SIG_DFL
    assert done.exit_code == 1 and done.stdout.count("out.jsonl") == 0
    assert (
        done.stderr.splitlines()[-1]
        == f"error: {what}; partial answers (2) are in {partial}; re-running the command continues"
    )
    assert [json.loads(line)["id"] for line in partial.read_text().splitlines()] == ["pictures/0.png", "pictures/1.png"]
    assert out.read_text() == "of an earlier time"
    monkeypatch.undo()
    monkeypatch.chdir(seeing)
    assert stopped(monkeypatch, out, lambda: None).exit_code == 0
    assert len(out.read_text().splitlines()) == 3 and [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_what_has_been_asked_outlives_a_kill(seeing, tmp_path):
    code = """
        import os, signal
        from mmgen.inference.answers import Answer
        from mmgen.cli import main

        def killed(answer, as_json=Answer.as_json):
            if answer.id == "pictures/2.png":
                os.kill(os.getpid(), signal.SIGKILL)
            return as_json(answer)

        Answer.as_json = killed
        main()
    """
    arguments = ("generate", str(PLACE), "pictures", "--out", str(tmp_path / "out.jsonl"))
    assert forked.run(code, *arguments, folder=seeing).returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == [".out.jsonl.partial"]
    partial_lines = (tmp_path / ".out.jsonl.partial").read_text().splitlines()
    assert [json.loads(line)["id"] for line in partial_lines] == ["pictures/0.png", "pictures/1.png"]


def test_the_size_that_fits_is_remembered_from_batch_to_batch(seeing, monkeypatch, caplog):
    monkeypatch.chdir(seeing)
    import torch

    from mmgen.inference.load import load as load_model

    run = load_model(PLACE, "image_frozen")
    generate, tried = run.model.generator.generate, []

    def cramped(model, batch, options):
        tried.append(len(batch.ids))
        if len(batch.ids) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return generate(model, batch, options)

    monkeypatch.setattr(run.model.generator, "generate", cramped)
    assert len(run.ask_all([f"pictures/{number % 3}.png" for number in range(6)], batch_size=3)) == 6
    assert tried == [3, 1, 1, 1, 1, 1, 1]
    assert [text for text in caplog.messages if "trained on" not in text] == [
        "writing: out of memory; from here on 1 example at a time"
    ]


def test_a_jsonl_of_pictures_with_captions(seeing):
    (seeing / "list.jsonl").write_text('{"id": "x", "image": "pictures/2.png", "caption": "a red ball"}\n')
    generated = mmgen(seeing, "generate", str(PLACE), "list.jsonl")
    assert generated.returncode == 0 and generated.stdout.startswith("x\n"), generated.stderr


def test_the_same_picture_gives_what_its_stored_features_give(seeing, monkeypatch):
    """Queries with pixels equal queries from the store: extraction is the same, up to the store's 16 bits."""
    monkeypatch.chdir(seeing)
    from mmgen.inference.load import load as load_model
    from mmgen.inference.query import Query
    from mmgen.parts import Record

    run = load_model(PLACE, "image_frozen")
    picture = next(iter(run.recipe.data.build().pictures()))
    (prepared,) = run.prepare([Query("x", {"picture": picture})])
    record = prepared.read.rows[0].example.inputs["image"]
    (path,) = PLACE.parent.glob("features/*")
    from mmgen.features.store import FeatureStore

    stored = FeatureStore(path).read(picture.key)
    assert isinstance(record, Record)
    assert abs(record.features - stored.features).max() < 2e-3 * abs(record.features).max()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["nowhere", "pictures/0.png"],
            "error: nowhere: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)",
        ),
        (
            [str(PLACE), "absent.png"],
            "error: absent.png: no such file; give an image, a folder of images, a table, or a JSONL file",
        ),
        (
            [str(PLACE)],
            "error: no input; give a picture, a folder, a table, a JSONL file, --input NAME=VALUE, or --caption",
        ),
        (
            [str(PLACE), "--caption", "x", "--step", "bothh"],
            f"error: {PLACE}: step 'bothh' has no weights; trained steps: caption, image_frozen, both",
        ),
        (
            [str(PLACE), "--caption", "x", "--step", "both"],
            "error: caption: 'image' is missing: step 'both' reads image and caption; add --input "
            'image=VALUE, or the field "image" in a JSONL file',
        ),
        (
            [str(PLACE), "--input", "captoin=x"],
            "error: captoin: unknown input 'captoin'; did you mean 'caption'?; available: image, caption, prompt, "
            "avoid",
        ),
        (
            [str(PLACE), "--input", "caption"],
            "error: --input caption: write NAME=VALUE, such as --input caption='a dog on a beach'",
        ),
        ([str(PLACE), "--caption", "x", "--input", "caption=y"], 'error: \'caption\' must be a string, not ["x", "y"]'),
        (
            [str(PLACE), "pictures/0.png", "--set", "backbone.num_hidden_layers=3"],
            "error: --set backbone.num_hidden_layers=3: the settings of a trained run are fixed; only "
            "decoding.* and an input's extractor, features, allow_other_features (inputs.NAME.*) can be overridden",
        ),
        (
            [str(PLACE), "pictures/0.png", "--set", "inputs.image.extractor.image_size=96"],
            f"error: {PLACE}: features of this extractor of 'image' differ from the training features "
            "(settings.image_size: 64 in training, 96 here); use the same extractor and settings, or, if the "
            "features are the same, add --set inputs.image.allow_other_features=true",
        ),
        (
            [str(PLACE), "pictures/0.png", "--out", "pictures/0.png"],
            "error: --out pictures/0.png: is also an input file and would be overwritten; choose another name",
        ),
        (
            [str(PLACE), "pictures/0.png", "--set", "decoding.num_beams=2", "--n", "3"],
            "error: num_return_sequences: 3 texts need num_beams of at least that number, not 2, or do_sample = true",
        ),
        (
            [str(PLACE), "pictures/0.png", "--set", "decoding.min_new_tokens=99"],
            "error: --set decoding.min_new_tokens=99: decoding.min_new_tokens: must be at most 7: "
            "generator.max_tokens = 8 includes the end token",
        ),
    ],
)
def test_what_cannot_be_asked_is_reported_in_one_line(seeing, monkeypatch, arguments, expected):
    from mmgen.cli import main

    monkeypatch.chdir(seeing)
    done = CliRunner().invoke(main, ["generate", *arguments])
    assert (done.exit_code, done.stderr.strip()) == (1, expected)


def answer_lines(seeing, monkeypatch, *lines: dict, arguments: tuple[str, ...] = ()) -> list[dict]:
    """The command's answers to JSONL lines."""
    from mmgen.cli import main

    monkeypatch.chdir(seeing)
    Path("queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = CliRunner().invoke(main, ["generate", str(PLACE), "queries.jsonl", "--out", "answers.jsonl", *arguments])
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]


def test_a_key_of_the_runs_features_is_asked_about_like_its_picture(seeing, monkeypatch):
    lines = [{"image": image, "caption": "a dog"} for image in ("test-00001", "tset-00001")]
    key, neighbour = answer_lines(seeing, monkeypatch, *lines)
    (store,) = (seeing / PLACE.parent / "features").iterdir()
    assert key["id"] == "queries.jsonl:1" and len(key["texts"]) == 1
    assert neighbour == {
        "id": "queries.jsonl:2",
        "error": f"queries.jsonl:2: tset-00001: no such file, and not a key of {store.relative_to(seeing)}",
    }


def test_an_extractor_can_be_set_for_a_run_trained_on_a_feature_file(seeing, monkeypatch):
    """Queries may then have pictures; the extractor must be the one that created the file, and the run is unchanged."""
    from mmgen_scenes import Scenes

    monkeypatch.chdir(seeing)
    (store,) = (PLACE.parent / "features").iterdir()
    Path("stored.toml").write_text(
        toys.recipe(
            name="stored",
            inputs={"image": {"type": "regions", "features": str(store)}},
            generator={"max_tokens": 8},
            steps={"image": {"inputs": ["image"], "train": ["image", "backbone"]}},
            data={"train_size": 12, "val_size": 2, "test_size": 4},
            metrics=None,
        )
    )
    done = forked.run(forked.NO_PAGE, "run", "stored.toml", folder=seeing)
    assert done.returncode == 0, done.stderr
    place = Path("runs/stored/default/seed-0")
    recipe_before = (place / "recipe.json").read_bytes()
    dataset = Scenes(train_size=12, val_size=2, test_size=4).build()
    picture = next(picture for picture in dataset.pictures() if picture.key == "test-00001")
    picture.load().save("own.png")
    lines = [{"image": picture.key}, {"image": {"picture": "own.png", "boxes": picture.boxes}}]
    Path("own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def stdout_of(*arguments: str) -> str:
        done = mmgen(seeing, "generate", str(place), *arguments)
        return done.stdout + done.stderr

    sets = [f"inputs.image.extractor.{key}={value}" for key, value in toys.ROI.items()]  # the size is the last
    roi = [word for setting in sets for word in ("--set", setting)]
    key, stored, line, extracted, *_ = stdout_of("own.jsonl", *roi).splitlines()
    assert (key, line) == ("own.jsonl:1", "own.jsonl:2")
    assert float(extracted.split()[0]) == pytest.approx(float(stored.split()[0]), abs=0.1)  # the file has 16 bits
    assert stdout_of("own.png") == (
        f"error: {place}: 'image' was trained on features of roi, whose extractor is not known here; give a key of the "
        "feature store, or name the extractor with --set, in Python with sets of mmgen.load: "
        "inputs.image.extractor.type=NAME\n"
    )
    assert "(settings.image_size: 64 in training, 192 here)" in stdout_of("own.png", *roi[:4])
    assert (place / "recipe.json").read_bytes() == recipe_before


def test_own_boxes_are_read_and_own_features_are_those_of_their_key(seeing, monkeypatch):
    from mmgen.features.store import FeatureStore
    from mmgen.inference.load import load as load_model
    from mmgen.parts import Record

    (store,) = (seeing / PLACE.parent / "features").iterdir()
    boxed = {"image": {"picture": "pictures/0.png", "boxes": [[0, 0, 1, 1], [0, 0, 0.5, 0.5]]}}
    complete, boxes = answer_lines(seeing, monkeypatch, {"image": "test-00001"}, boxed)
    assert len(boxes["texts"]) == 1
    record = FeatureStore(store).read("test-00001")
    wide = Record("wide", [[1, 2]], [[0, 0, 1, 1]])
    same, refused = load_model(PLACE, "image_frozen").ask_all([record, wide])
    assert same.as_json()["texts"] == complete["texts"]
    assert refused.error.startswith("image of 'query 2': features have width 2, but the model ")


def test_lines_give_inputs_by_name_and_unknown_ones_are_refused(seeing, monkeypatch):
    from mmgen.errors import DataError
    from mmgen.inference.load import load_for
    from mmgen.inference.query import read_sources

    monkeypatch.chdir(seeing)
    Path("odd.jsonl").write_text('{"image": "x.png", "colour": "red"}\n')
    with pytest.raises(DataError) as error:
        load_for(PLACE, read_sources([Path("odd.jsonl")]))
    assert str(error.value) == "odd.jsonl:1: unknown input 'colour'; available: image, caption, prompt, avoid"
    Path("odd.jsonl").write_text('{"caption": "a"}\n{"image": "pictures/0.png"}\n')
    with pytest.raises(DataError) as error:
        load_for(PLACE, read_sources([Path("odd.jsonl")]))
    assert str(error.value) == (
        "odd.jsonl:1: 'image' is missing: step 'both' reads image and caption; add --input image=VALUE, "
        'or the field "image" in a JSONL file'
    )


def test_a_line_that_cannot_be_answered_is_skipped_with_its_reason(seeing, monkeypatch):
    answers = answer_lines(
        seeing,
        monkeypatch,
        {"caption": "a dog"},
        {"id": "b", "caption": 7},
        {"caption": "a dog", "colour": "red"},
        {"id": "e", "caption": "a dog", "image": "test-00001"},
        {"id": "f", "image": "test-00001"},
        arguments=("--step", "caption"),
    )
    reads = "'caption' reads caption; 'image_frozen' reads image; 'both' reads image and caption"
    assert len(answers[0]["texts"]) == 1
    assert [(line["id"], line["error"]) for line in answers[1:]] == [
        ("b", "queries.jsonl:2: 'caption' must be a string, not 7"),
        ("queries.jsonl:3", "queries.jsonl:3: unknown input 'colour'; available: image, caption, prompt, avoid"),
        (
            "e",
            "queries.jsonl:4: step 'caption' does not read 'image'; leave it out, or choose another step: " + reads,
        ),
        (
            "f",
            "queries.jsonl:5: 'caption' is missing: step 'caption' reads caption; add --input "
            'caption=VALUE, or the field "caption" in a JSONL file',
        ),
    ]


def test_options_of_decoding_can_be_set(seeing, monkeypatch):
    (three,) = answer_lines(
        seeing,
        monkeypatch,
        {"image": "pictures/0.png"},
        arguments=("--set", "decoding.num_beams=4", "--set", "decoding.num_return_sequences=3"),
    )
    assert len(three["texts"]) == 3


def test_a_run_is_asked_from_eight_threads(seeing, monkeypatch):
    """The extractor is built once, with the network of the training features, for all threads."""
    from concurrent.futures import ThreadPoolExecutor

    from mmgen_vision.cnn import Network

    from mmgen.inference.load import load as load_model

    monkeypatch.chdir(seeing)
    built, build = [], Network.__init__
    monkeypatch.setattr(Network, "__init__", lambda self, *a, **named: (built.append(1), build(self, *a, **named))[1])
    run = load_model(PLACE, "both")

    def ask(number: int) -> str:
        picture = f"pictures/{number % 3}.png" if number % 2 else f"test-0000{number % 3}"
        return run.ask({"picture": picture, "caption": f"a dog {number % 5}"}).value

    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(ask, range(32)))
    assert together == [ask(number) for number in range(32)] and len(built) == 1


def test_messages_of_ask(seeing, monkeypatch):
    from PIL import Image

    from mmgen.errors import DataError
    from mmgen.inference.load import load as load_model

    monkeypatch.chdir(seeing)
    run = load_model(PLACE, "both")
    assert len(run.ask({"picture": Image.open("pictures/0.png"), "caption": "a dog"}, n=2).texts) == 2
    for query, message in (
        ({"picture": "pictures/0.png"}, "this query: 'caption' is missing: step 'both' reads image and "),
        ({"picture": "pictures/9.png", "caption": "x"}, "this query: pictures/9.png: no such file, and not a key of "),
        ("pictures/9.png", "pictures/9.png: 'caption' is missing"),
        ({"text": "x"}, "this query: unknown input 'text'; available: image, caption, prompt, avoid"),
    ):
        with pytest.raises(DataError) as error:
            run.ask(query)
        assert str(error.value).startswith(message)


def test_every_form_of_a_picture_gives_the_same_features(seeing, monkeypatch):
    import numpy as np
    from PIL import Image

    from mmgen.inference.load import load as load_model
    from mmgen.inference.query import Query

    monkeypatch.chdir(seeing)
    run, path = load_model(PLACE, "image_frozen"), Path("pictures/0.png")
    run.warm()
    forms = [path, path.read_bytes(), Image.open(path), np.asarray(Image.open(path).convert("RGB"))]
    batch = run.prepare([Query("q", {"picture": form}) for form in forms])
    records = [prepared.read.rows[0].example.inputs["image"] for prepared in batch]
    assert all(np.array_equal(record.features, records[0].features) for record in records)
    answers = run.ask_all([*forms, "test-00000"])
    assert len({answer.value for answer in answers[:-1]}) == 1 and answers[-1].texts


def test_features_of_another_width_than_w_are_refused(seeing, tmp_path):
    import numpy as np

    from mmgen.errors import DataError
    from mmgen.features.writer import StoreWriter
    from mmgen.inference.load import load as load_model
    from mmgen.parts import Record

    with StoreWriter(tmp_path / "other.h5", {"extractor": "other"}) as writer:
        writer.add(Record("a", np.ones((2, 7)), np.array([[0, 0, 1, 1], [0, 0, 0.5, 0.5]])))
    with pytest.raises(DataError, match=r"other.h5: features have width 7, but the model was trained on width \d+"):
        run = load_model(seeing / PLACE)
        settings = run.model.embedders["image"].inferred_settings()
        config = run.recipe.inputs["image"].model_copy(update={"features": tmp_path / "other.h5", **settings})
        config.build(run.model.backbone).reader.store  # noqa: B018


def test_features_that_changed_under_a_run_are_refused(seeing, tmp_path):
    """Same width, different extractor: W was not trained on such features."""
    import shutil

    from mmgen.features.store import FeatureStore
    from mmgen.features.writer import StoreWriter

    (store,) = (seeing / PLACE.parent / "features").iterdir()
    shutil.copytree(seeing, tmp_path / "seeing")
    with StoreWriter(tmp_path / "other.h5", {"extractor": "another"}) as writer:
        known = FeatureStore(store)
        for key in known:
            writer.add(known.read(key))
    shutil.rmtree(tmp_path / "seeing" / store.relative_to(seeing))
    shutil.move(tmp_path / "other.h5", tmp_path / "seeing" / store.relative_to(seeing))
    shutil.rmtree(tmp_path / "seeing" / PLACE / "steps/both")
    refused = mmgen(tmp_path / "seeing", "run", "seeing.toml")
    assert (
        refused.returncode == 1
        and "the features of 'image' differ from those the steps were trained on (fingerprint" in refused.stderr
    )


def test_an_image_without_regions_is_reported_before_training(seeing, tmp_path):
    import numpy as np

    from mmgen.features.store import FeatureStore
    from mmgen.features.writer import StoreWriter
    from mmgen.parts import Record

    (store,) = (seeing / PLACE.parent / "features").iterdir()
    with StoreWriter(tmp_path / "holes.h5", FeatureStore(store).fingerprint) as writer:
        known = FeatureStore(store)
        for key in known:
            empty = Record(key, known.read(key).features[:0], np.zeros((0, 4), np.float32))
            writer.add(empty if key == "train-00003" else known.read(key))
    done = mmgen(
        seeing, "run", "seeing.toml", "--set", "name=holes", "--set", f"inputs.image.features={tmp_path / 'holes.h5'}"
    )
    assert done.returncode == 1 and "no features for 1 of 12 images (train-00003)" in done.stderr
    assert not list(seeing.glob("runs/holes/**/weights.safetensors"))


def test_a_store_without_the_wanted_image_is_reported(seeing, tmp_path):
    (store,) = (seeing / PLACE.parent / "features").iterdir()
    done = mmgen(
        seeing,
        "run",
        "seeing.toml",
        "--set",
        "name=other",
        "--set",
        "data.seed=1",
        "--set",
        "data.train_size=14",
        "--set",
        f"inputs.image.features={store}",
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "train-00012" in done.stderr or "train-00013" in done.stderr
