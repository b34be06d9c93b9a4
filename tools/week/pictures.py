"""Draws what the engineer has: photos with captions and questions, in a table, and in a tar file of a stream."""

import csv
import io
import json
import tarfile
from pathlib import Path

from PIL import Image, ImageDraw

COLORS = ("red", "blue", "green", "yellow", "white", "black")
SHAPES = ("rectangle", "ellipse")


def photo(number: int) -> Image.Image:
    """A photo of one thing."""
    picture = Image.new("RGB", (128, 96), "gray")
    place = 8 + 4 * (number % 12)
    getattr(ImageDraw.Draw(picture), SHAPES[number % 2])((place, 20, place + 40, 60), fill=COLORS[number % 6])
    return picture


def describe(number: int) -> tuple[str, str]:
    """A caption and a question."""
    thing = ("box", "ball")[number % 2]
    return f"a {COLORS[number % 6]} {thing} on a grey table", f"what is to the left of the {thing}?"


def draw(folder: Path) -> None:
    """photos/, a table for each split with the columns file, words, ask and level, and two tar files."""
    (folder / "photos").mkdir(parents=True, exist_ok=True)
    rows = []
    with tarfile.open(folder / "photos-000.tar", "w") as first, tarfile.open(folder / "test.tar", "w") as last:
        for number in range(24):
            archive = first if number < 20 else last
            name, (caption, question) = f"{number}.png", describe(number)
            photo(number).save(folder / "photos" / name)
            rows.append([name, caption, question, ("remember", "analyse")[number % 2]])
            sample = json.dumps({"caption": caption, "questions": [question]}).encode()
            for path, content in ((name, (folder / "photos" / name).read_bytes()), (f"{number}.json", sample)):
                member = tarfile.TarInfo(path)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    for split, part in {"train": rows[:16], "val": rows[16:20], "test": rows[20:]}.items():
        with (folder / f"{split}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["file", "words", "ask", "level"], *part])
    for number, name in enumerate(("photo.jpg", "other.jpg")):
        photo(number).save(folder.parent / name)


if __name__ == "__main__":
    draw(Path("mine"))
