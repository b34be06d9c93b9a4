"""Records and feature stores that tests share."""

import numpy as np

from mmgen.features.classes import Classes
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
        "region_names": tuple(f"thing {i % 2}" for i in range(regions)),
        "scores": rng.random(regions).astype(np.float32),
    }
    return Record(key, **{**values, **changes})


NAMES = ("dog", "cat", "ball", "tree")


def classes(regions=3, top=2, seed=0, names=NAMES):
    """The most probable classes of regions; the last region has none."""
    chances = np.random.default_rng(seed).dirichlet(np.ones(len(names)), regions)
    surest = Classes.surest(names, chances, top)
    surest.ids[regions - 1 :], surest.probabilities[regions - 1 :] = -1, 0
    return surest


def fill(path, records, dtype="float32", fingerprint=FINGERPRINT, prefix="part"):
    with StoreWriter(path, fingerprint, dtype, prefix) as writer:
        for new_record in records:
            writer.add(new_record)
    return FeatureStore(path)


def assert_same_record(a, b):
    pairs = [(a, b, name) for name in ("key", "region_names", "features", "boxes", "scores")]
    pairs += [(a.classes, b.classes, name) for name in ("names", "ids", "probabilities")]
    for first, second, name in pairs:
        np.testing.assert_array_equal(getattr(first, name, None), getattr(second, name, None), name)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


SLOW_WRITER = """
    import sys, time
    import numpy as np
    from mmgen.features.writer import StoreWriter
    from mmgen.parts import Record
    with StoreWriter(sys.argv[1], {"extractor": "test"}, "float32") as writer:
        for number in range(160):
            features = np.random.default_rng(number).standard_normal((7, 400)).astype(np.float32)
            if str(number) not in writer.keys:
                writer.add(Record(str(number), features))
                print(number, flush=True)
                time.sleep(0.003)
"""


def classified(key, regions=3, seed=0, **changes):
    return record(key, regions, seed=seed, classes=classes(regions, seed=seed), **changes)
