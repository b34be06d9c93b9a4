"""Real captions."""

import gzip
import json
from collections import defaultdict

import pytest


@pytest.fixture(scope="session")
def captions(real_data):
    """COCO's captions by image: 10,131 lists of five or more."""
    images = defaultdict(list)
    with gzip.open(real_data / "coco/captions.json.gz", "rt", encoding="utf-8") as file:
        for row in json.load(file)["annotations"]:
            images[row["image_id"]].append(row["caption"])
    return list(images.values())
