"""Records and feature stores that tests share."""

import numpy as np

from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter
from mmgen.parts import Record

FINGERPRINT = {"extractor": "roi", "model": "resnet18", "digest": "ab12"}


def record(key, regions=3, width=4, seed=0, **changes):
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.random((regions, 2, 2)), 1).reshape(regions, 4)
    values = {
        "features": rng.standard_normal((regions, width)).astype(np.float32),
        "boxes": corners.astype(np.float32),
        "labels": tuple(f"thing {i % 2}" for i in range(regions)),
        "scores": rng.random(regions).astype(np.float32),
    }
    return Record(key, **{**values, **changes})


def fill(path, records, dtype="float32", fingerprint=FINGERPRINT):
    with StoreWriter(path, fingerprint, dtype) as writer:
        for each in records:
            writer.add(each)
        writer.finish()
    return FeatureStore(path)


def same(a, b):
    assert (a.key, a.labels) == (b.key, b.labels)
    for name in ("features", "boxes", "scores"):
        ours, theirs = getattr(a, name), getattr(b, name)
        assert (ours is None) == (theirs is None), name
        assert ours is None or np.array_equal(ours, theirs), name
