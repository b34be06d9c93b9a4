"""Extraction: from folders of any layout, in shards, and beside another process. What is printed, and broken pictures:
tests/transcripts/features.txt."""

import threading

import numpy as np
import pytest
from PIL import Image

from mmgen.features.extract import Shard, Summary, extract
from mmgen.features.images import folder_pictures
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter
from mmgen.parts import Extractor, Record
from mmgen.progress import Progress


class Means(Extractor):
    """The mean colour of a picture."""

    fingerprint = {"extractor": "means"}

    def records(self, source, skip=frozenset()):
        for picture in (picture for picture in source if picture.key not in skip):
            yield Record(picture.key, np.asarray(picture.load(), np.float32).mean((0, 1))[None])


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "images"
    (folder / "more").mkdir(parents=True)
    for number in range(4):
        Image.new("RGB", (8, 6), (number * 10, 0, 0)).save(folder / f"COCO_val2014_{number:012d}.png")
    Image.new("L", (8, 6), 7).save(folder / "more" / "grey.PNG")
    (folder / "notes.txt").write_text("not an image, and not named like one")
    return folder


def test_a_folder_in_and_a_store_out(folder, tmp_path):
    summary = extract(Means(), folder_pictures(folder), tmp_path / "s")
    assert summary == Summary(tmp_path / "s", 5, 0, 0, ()) and not summary.failure
    store = FeatureStore(tmp_path / "s")
    assert sorted(store) == ["0", "1", "2", "3", "grey"]
    assert store.read("2").features.tolist() == [[20, 0, 0]] and store.read("grey").features.tolist() == [[7, 7, 7]]
    again = extract(Means(), folder_pictures(folder), tmp_path / "s")
    assert (again.written, again.skipped) == (0, 5)


def test_while_another_process_fills_the_store_it_waits(folder, tmp_path):
    """The other process ends after half of the pictures, and the rest is extracted here."""
    path, pictures, lines = tmp_path / "s", folder_pictures(folder), []
    began, end = threading.Event(), threading.Event()

    def fill_half():
        with StoreWriter(path, Means.fingerprint) as writer:
            for record in Means().records(pictures[:2]):
                writer.add(record)
            began.set()
            end.wait(20)

    class Saying(Progress):
        def say(self, text):
            lines.append(text)
            end.set()

    thread = threading.Thread(target=fill_half)
    thread.start()
    assert began.wait(20)
    summary = extract(Means(), pictures, path, progress=Saying())
    thread.join()
    assert lines == [f"{path}: another process is writing this store; waiting until it ends"]
    assert (summary.skipped, summary.written) == (2, 3) and len(FeatureStore(path)) == 5


def test_features_of_all_shards_are_those_of_one_process(folder, tmp_path):
    pictures = folder_pictures(folder)
    for number in (2, 1, 3):
        extract(Means(), pictures, tmp_path / "s", shard=Shard(number, 3))
    extract(Means(), pictures, tmp_path / "whole")
    shards, whole = FeatureStore(tmp_path / "s"), FeatureStore(tmp_path / "whole")
    assert sorted(shards) == sorted(whole) and len(shards.parts) > 1
    assert all((shards.read(key).features == whole.read(key).features).all() for key in whole)
