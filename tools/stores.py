"""python -m tools.stores: a store of made-up pictures in many files, read with and without an index.

    python -m tools.stores --pictures 1000000 --files 64 --folder /tmp/made-up

It writes the files (float16, 36 regions of 64 numbers) into the folder if they are not there, and prints the size of
the index; then, each in a new process, the seconds to open the store, the memory of the process, and the images it
reads in a second: in a random order, and in that of `training.shuffle_files`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

REGIONS, WIDTH = 36, 64
WAYS = ("without an index", "with the index", "file by file")


def write(folder: Path, pictures: int, files: int) -> None:
    """The files. All have the features of the first, with other keys."""
    import h5py
    import numpy as np

    from mmgen.features.layout import Layout
    from mmgen.features.row_writer import RowWriter
    from mmgen.features.store import FORMAT, VERSION
    from mmgen.parts import Record

    paths = [folder / f"part-{number:03}.h5" for number in range(files)]
    draw, count = np.random.default_rng(0), pictures // files
    if not paths[0].exists():
        with h5py.File(paths[0], "w", libver="v110") as file:
            attributes = {"format": FORMAT, "fingerprint": json.dumps({"extractor": "made up"})}
            file.attrs.update({name: np.bytes_(text) for name, text in attributes.items()}, version=VERSION)
            rows = RowWriter(file, Layout(WIDTH, "float16", REGIONS, {}))
            for place in range(0, count * files, files):
                rows.add(Record(f"{place:012}", draw.standard_normal((REGIONS, WIDTH), np.float32).astype(np.float16)))
            rows.close()
    for number, path in enumerate(paths[1:], 1):
        if not path.exists():
            shutil.copy(paths[0], path)
            with h5py.File(path, "r+") as file:
                keys, stored = [b"%012d" % place for place in range(number, count * files, files)], file["keys"]
                stored[:] = np.array(keys, stored.dtype)


def measure(folder: Path, way: str, images: int, open_files: int) -> dict[str, float]:
    """Open the store and read images, in this process."""
    import mmgen.parts  # noqa: F401 (neither its time nor its memory are the store's)
    from mmgen.features.index import IndexedStore
    from mmgen.features.multi_file import MultiFileStore, files_of
    from mmgen.features.store import FeatureStore

    FeatureStore(next(folder.glob("*.h5"))).close()  # imports HDF5
    before, began = private_megabytes(), time.perf_counter()
    files = files_of(folder) or []
    store: MultiFileStore = (
        MultiFileStore(folder, files) if way == WAYS[0] else IndexedStore(folder, open_files if way == WAYS[2] else 0)
    )
    opened, opened_memory = time.perf_counter() - began, private_megabytes() - before
    count, draw = len(store), random.Random(0)
    if way == WAYS[2]:
        chosen = draw.sample(range(len(files)), open_files)
        keys = [f"{place:012}" for file in chosen for place in range(file, count, len(files))]
        draw.shuffle(keys)
        keys = keys[:images]
    else:
        keys = [f"{draw.randrange(count):012}" for _ in range(images)]
    began, seconds = time.perf_counter(), time.process_time()
    for key in keys:
        store.read(key)
    return {
        "open": opened,
        "memory": opened_memory,
        "memory after": private_megabytes() - before,
        "images": len(keys) / (time.perf_counter() - began),
        "cpu images": len(keys) / (time.process_time() - seconds),
    }


def private_megabytes() -> float:
    """The memory of this process that it shares with no other and that is not of a file."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon"))) / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--images", type=int, default=50_000, help="images that each way reads")
    parser.add_argument("--open", type=int, default=8, help="files at a time, of the way file by file")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--way", choices=WAYS, help="only this way, in this process")
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.folder, options.way, options.images, options.open)))
        return
    from mmgen.features.index import index_path, write_index

    options.folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    write(options.folder, options.pictures, options.files)
    size = sum(file.stat().st_size for file in options.folder.glob("*.h5"))
    print(f"{options.files} files, {size / 1e9:.2f} GB, written in {time.perf_counter() - began:.0f} s", flush=True)
    began = time.perf_counter()
    count = write_index(options.folder)
    index = index_path(options.folder).stat().st_size
    print(
        f"index of {count:,} images: {index / 1e6:.1f} MB, written in {time.perf_counter() - began:.1f} s", flush=True
    )
    print("| way | seconds to open | MB a process | MB after reading | images a second | of processor time |")
    print("|---|---:|---:|---:|---:|---:|")
    for way in WAYS:
        command = [sys.executable, "-m", "tools.stores", *sys.argv[1:], "--way", way]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        cells = f"{result['open']:.2f} | {result['memory']:.0f} | {result['memory after']:.0f}"
        print(f"| {way} | {cells} | {result['images']:,.0f} | {result['cpu images']:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
