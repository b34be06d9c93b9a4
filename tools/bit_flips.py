"""`python -m tools.bit_flips --files 4000`: how often flipped bits make libhdf5 loop, crash or use all memory on a file
without checksums, and whether the check before reading finds them (`mmgen.features.untrusted_hdf5`)."""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from pathlib import Path

from mmgen.features import untrusted_hdf5 as hdf5
from mmgen.features.store import NAMES

from .fuzz.features import old_store


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--files", type=int, default=1000)
    ask.add_argument("--seed", type=int, default=1)
    options = ask.parse_args()
    draw, counts = random.Random(options.seed), Counter()
    with tempfile.TemporaryDirectory(prefix="mmgen-flips-") as place:
        old_store(Path(place))
        original = Path(place, "old.h5").read_bytes()
        for number in range(options.files):
            spoilt = bytearray(original)
            for _ in range(draw.choice((1, 1, 2, 8))):
                spoilt[draw.randrange(len(spoilt))] ^= 1 << draw.randrange(8)
            path = Path(place, f"{number}.h5")
            path.write_bytes(spoilt)
            trouble = hdf5._walk_in_process(path, NAMES, len(spoilt), path.stat().st_mtime_ns)
            counts[trouble or "libhdf5 came back"] += 1
            path.unlink()
            if trouble:
                print(f"file {number}: {trouble}", flush=True)
    print(
        f"{options.files} files of {len(original)} bytes: "
        + ", ".join(f"{count} {what}" for what, count in counts.most_common())
    )


if __name__ == "__main__":
    main()
