"""The index of vectors: pictures are encoded once, changed ones again; the most similar come first."""

import json
import os

import pytest
import torch
from mmgen_tasks.retrieval.index import ENTRIES, MODEL, VectorIndex

from mmgen.errors import DataError, RunError
from mmgen.inference.load import load_run
from mmgen.inference.query import Query, read_sources
from mmgen.storage.weights import read_tensors, write_tensors

QUERY = "a red ball"


def photos(shared):
    return read_sources([shared / "photos"])


@pytest.mark.slow
def test_a_query_may_give_one_of_the_inputs(trained, shared):
    """Its vector is that of the query with both; a batch may mix all three."""
    predictor, picture = load_run(trained, "contrast"), shared / "photos/1.png"
    both = predictor.predict(picture, caption=QUERY)
    alone = predictor.predict([{"caption": QUERY}, Query("p", picture=picture), {"image": picture, "caption": QUERY}])
    assert [sorted(answer.value) for answer in alone] == [["caption"], ["image"], ["caption", "image"]]
    for answer in alone:
        for name, vector in answer.value.items():
            assert vector == pytest.approx(both.value[name], abs=2e-6)
    assert [answer.score for answer in alone] == pytest.approx([1, 1, both.score], abs=1e-5)
    with pytest.raises(DataError, match="'image' is missing: step 'contrast' reads image and caption"):
        predictor.predict()


def test_the_order_is_that_of_the_similarity_of_pairs(trained, shared):
    predictor = load_run(trained, "contrast")
    index = VectorIndex(predictor)
    assert index.add(photos(shared)) == [] and index.rank({"caption": QUERY})[0].similarity <= 1
    pairs = predictor.predict([query.picture for query in photos(shared)], caption=QUERY)
    expected = sorted(pairs, key=lambda answer: -answer.score)
    matches = index.rank({"caption": QUERY})
    assert [match.id for match in matches] == [answer.id for answer in expected]
    assert [match.similarity for match in matches] == pytest.approx([answer.score for answer in expected], abs=1e-5)
    with pytest.raises(DataError, match="gives image and caption; give one of them"):
        index.rank({"image": shared / "photos/1.png", "caption": QUERY})


@pytest.mark.slow
def test_pictures_of_the_file_are_not_encoded_again_until_they_or_the_model_change(trained, shared, tmp_path):
    file, queries = tmp_path / "photos.vectors", photos(shared)

    def add(step_weights=1.0):
        predictor = load_run(trained, "contrast")
        predictor.model.objective("contrast").logit_scale.data.mul_(step_weights)
        index = VectorIndex(predictor, file)
        index.add(queries)
        return index

    first, again = add(), add()
    assert (first.encoded, again.encoded) == (3, 0) and again.rank({"caption": QUERY}) == first.rank({"caption": QUERY})
    os.utime(queries[1].picture, ns=(1, 1))
    assert add().encoded == 1 and add().encoded == 0
    assert add(step_weights=0.5).encoded == 3


def test_a_picture_that_cannot_be_read_is_left_out_and_other_files_are_refused(trained, shared, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"no picture")
    index = VectorIndex(load_run(trained, "contrast"), tmp_path / "v")
    (answer,) = index.add(read_sources([tmp_path / "bad.png", shared / "photos"]))
    assert answer.id == str(tmp_path / "bad.png") and answer.error and len(index.ids) == 3
    weights = trained / "steps/contrast/weights.safetensors"
    with pytest.raises(RunError) as error:
        VectorIndex(load_run(trained, "contrast"), weights)
    assert str(error.value) == f"{weights}: is not an index of vectors; choose another name"
    with pytest.raises(RunError) as error:
        VectorIndex(load_run(trained, "words"))
    assert str(error.value) == (
        f"{trained}: step 'words' predicts text, not a vector for every input; choose a step that trains 'contrastive'"
    )


def test_wrong_contents_under_a_right_checksum_are_refused(trained, shared, tmp_path):
    path, predictor = tmp_path / "v", load_run(trained, "contrast")
    VectorIndex(predictor, path).add(photos(shared))
    tensors, about = read_tensors(path)
    vectors, entries, delete = tensors["vectors"], json.loads(about[ENTRIES]), "; delete the file, and the pictures are"
    long_vectors = torch.nn.functional.normalize(torch.ones(3, 9), dim=1)
    strings, numbers = "'entries' must be a list of strings", "every vector must have finite float32 numbers and a"
    for wrong_vectors, wrong_entries, message in (
        (vectors, "{", strings),
        (vectors, "3", strings),
        (vectors, json.dumps([*entries[:2], [3]]), strings),
        (vectors, None, strings),
        (vectors[:2], json.dumps(entries), "expected a vector for each of 3 different pictures, but got an array of"),
        (vectors, json.dumps(entries[:1] * 3), "expected a vector for each of 3 different pictures, but got an"),
        (vectors.flatten(), json.dumps(entries), "expected a vector for each of 3 different pictures, but got an"),
        (vectors * torch.nan, json.dumps(entries), numbers),
        (vectors * 2, json.dumps(entries), numbers),
        (vectors.double(), json.dumps(entries), numbers),
        (long_vectors, json.dumps(entries), f"has vectors of 9 numbers, but the model's have 8{delete}"),
        (long_vectors, json.dumps(["a", "b", "c"]), f"has vectors of 9 numbers, but the model's have 8{delete}"),
    ):
        write_tensors(path, {"vectors": wrong_vectors}, {MODEL: about[MODEL], ENTRIES: wrong_entries})
        before = path.read_bytes()
        with pytest.raises(RunError) as error:
            index = VectorIndex(predictor, path)
            index.add(photos(shared))
            index.rank({"caption": QUERY})
        assert str(error.value).startswith(f"{path}: {message}") and "\n" not in str(error.value)
        assert path.read_bytes() == before
