"""Draws what the engineer has: photos with captions and questions, in JSONL files, tables and tar files."""

import contextlib
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
    """`folder`: photos/, a JSONL file and a tar file for each split. levels/ beside it: photos/, and a table for
    each split with the column level."""
    levels, rows = folder.parent / "levels", []
    for photos in (folder / "photos", levels / "photos"):
        photos.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as archives:
        paths = [folder / f"{name}.tar" for name in ("photos-000", "val", "test")]
        train, *held_out = [archives.enter_context(tarfile.open(path, "w")) for path in paths]
        for number in range(24):
            archive = train if number < 16 else held_out[number // 4 - 4]
            name, (caption, question) = f"{number}.png", describe(number)
            for photos in (folder / "photos", levels / "photos"):
                photo(number).save(photos / name)
            rows.append([name, caption, question, ("remember", "analyse")[number % 2]])
            sample = json.dumps({"caption": caption, "questions": [question]}).encode()
            for path, content in ((name, (folder / "photos" / name).read_bytes()), (f"{number}.json", sample)):
                member = tarfile.TarInfo(path)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    for split, part in {"train": rows[:16], "val": rows[16:20], "test": rows[20:]}.items():
        examples = [{"image": name, "caption": caption, "questions": [question]} for name, caption, question, _ in part]
        (folder / f"{split}.jsonl").write_text("".join(f"{json.dumps(example)}\n" for example in examples))
        with (levels / f"{split}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["image", "caption", "question", "level"], *part])
    for number, name in enumerate(("photo.jpg", "other.jpg")):
        photo(number).save(folder.parent / name)


if __name__ == "__main__":
    draw(Path("mine"))
