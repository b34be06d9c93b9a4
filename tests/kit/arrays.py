"""Files of features in published formats, three images each."""

import base64
import json
from pathlib import Path

import h5py
import numpy as np


def write(folder: Path) -> None:
    """`arrays/` of NumPy files, a TSV and an HDF5 file as they are published, and what is read beside them."""
    values, boxes = np.random.default_rng(0).random((3, 5), np.float32), np.tile(np.float32([0, 9, 50, 40]), (3, 1))
    (folder / "arrays").mkdir()
    for name in "ac":
        np.savez(folder / f"arrays/{name}.npz", x=values, bbox=boxes, image_w=100, image_h=80)
    np.save(folder / "arrays/b.npy", values)
    about = {"bbox": boxes.tolist(), "image_width": 100, "image_height": 80}
    (folder / "arrays/b_info.json").write_text(json.dumps(about))
    packed = [base64.b64encode(array.tobytes()).decode() for array in (boxes, values)]
    (folder / "f.tsv").write_text("".join("\t".join([key, "100", "80", "3", *packed]) + "\n" for key in "abc"))
    (folder / "classes.txt").write_text("cat\ndog,puppy\n")
    with h5py.File(folder / "f.h5", "w") as file:
        file["image_features"], file["spatial_features"] = values, np.float32([[0, 0, 1, 1, 1, 1]] * 3)
        file["pos_boxes"] = np.array([[0, 1], [1, 3], [0, 2]])
    (folder / "index.json").write_text('{"25": 0, "my photo": 1, "3": 2}')
