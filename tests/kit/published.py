"""Small data sets in the published formats of the tasks: one function per format writes the files of all splits, and
pictures, into a folder."""

import json
import pickle
from pathlib import Path

from PIL import Image

SIZE = 100, 80  # of every picture


def refs(number: int, splits: tuple[str, ...] = ("train", "val", "testA", "testB")) -> list[dict]:
    """Two things per picture and split, with three expressions in total. `number`: of the first expression."""
    rows = []
    for place, split in enumerate(splits):
        for thing, texts in enumerate((("man in red", "left man"), ("the dog",))):
            sentences = []
            for text in texts:
                sentences.append({"sent_id": number, "sent": text, "raw": text.title(), "tokens": text.split()})
                number += 1
            number_in_picture = 10 * place + thing
            rows.append(
                {
                    "ref_id": number_in_picture,
                    "ann_id": 100 + number_in_picture,
                    "image_id": place,
                    "split": split,
                    "category_id": 1 + thing,
                    "file_name": f"COCO_train2014_{place:012d}_{number_in_picture}.jpg",
                    "sent_ids": [sentence["sent_id"] for sentence in sentences],
                    "sentences": sentences,
                }
            )
    return rows


def instances(pictures: int = 4) -> dict:
    """Boxes of `refs`, and a third thing in every picture that no expression is about."""
    boxes = ([10, 20, 30, 40], [50.5, 8, 25, 16], [0, 0, 120, 40])
    return {
        "images": [
            {"id": place, "width": SIZE[0], "height": SIZE[1], "file_name": f"COCO_train2014_{place:012d}.jpg"}
            for place in range(pictures)
        ],
        "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"id": 100 + 10 * place + thing, "image_id": place, "category_id": 1 + thing % 2, "bbox": box}
            for place in range(pictures)
            for thing, box in enumerate(boxes)
        ],
    }


def refcoco(folder: Path, protocol: int = 0) -> Path:
    """RefCOCO+, whose expressions are pickled as Python 2 did it (protocols 0 to 2)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "refs(unc).p").write_bytes(pickle.dumps(refs(7), protocol))
    (folder / "instances.json").write_text(json.dumps(instances()))
    pictures(folder / "images", *(f"COCO_train2014_{place:012d}.jpg" for place in range(4)))
    return folder


def nlvr2_rows(split: str) -> list[dict]:
    """One sentence about two pairs."""
    return [
        {"identifier": f"{split}-850-{pair}-0", "sentence": "There is a  dog.", "label": label, "synset": "dog"}
        for pair, label in enumerate(("True", "False"))
    ]


def nlvr2(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test1"):
        rows = nlvr2_rows(split)
        (folder / f"{split}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        pictures(folder / "images", *(f"{split}-850-{pair}-img{side}.png" for pair in (0, 1) for side in (0, 1)))
    return folder


def pictures(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", SIZE, (90, 60, 30)).save(folder / name)


def vqa_rows(split: str) -> tuple[list[dict], list[dict]]:
    """Questions and the answers of ten people."""
    first = {"train": 10, "val": 20, "test": 30}[split]
    answers_by_question = (["yes"] * 7 + ["no", "No.", "maybe"], ["2"] * 2 + ["two"] + ["3"] * 7, ["a dog"] * 10)
    question_texts = ("Is it  red?", "How many?", "What is it?")
    kinds = (("is it", "yes/no"), ("how many", "number"), ("what is", "other"))
    questions = [
        {"question_id": first + place, "image_id": first + place % 2, "question": text}
        for place, text in enumerate(question_texts)
    ]
    answers = [
        {
            "question_id": first + place,
            "image_id": first + place % 2,
            "question_type": kinds[place][0],
            "answer_type": kinds[place][1],
            "multiple_choice_answer": ("yes", "3", "a dog")[place],
            "answers": [
                {"answer": answer, "answer_confidence": "yes", "answer_id": number}
                for number, answer in enumerate(person_answers, 1)
            ],
        }
        for place, person_answers in enumerate(answers_by_question)
    ]
    return questions, answers


def vqa(folder: Path) -> Path:
    """VQA 2.0, without answers of the test split."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, year in (("train", "train2014"), ("val", "val2014"), ("test", "test2015")):
        questions, annotations = vqa_rows(split)
        names = f"v2_OpenEnded_mscoco_{year}_questions.json", f"v2_mscoco_{year}_annotations.json"
        (folder / names[0]).write_text(json.dumps({"questions": questions}))
        if split != "test":
            (folder / names[1]).write_text(json.dumps({"annotations": annotations}))
        pictures(folder / "images", *(f"COCO_{year}_{row['image_id']:012d}.jpg" for row in questions))
    return folder


def vcr_rows(split: str) -> list[dict]:
    """A question about two people and a car."""
    row = {
        "annot_id": f"{split}-0",
        "img_fn": f"lsmdc_film/{split}_00.23@0.jpg",
        "metadata_fn": f"lsmdc_film/{split}_00.23@0.json",
        "objects": ["person", "car", "person"],
        "question": ["Does", [2], "see", [0, 1], "?"],
        "answer_choices": [["Yes", ",", [2], "does", "."], ["No", "."], [[0], "'s", "car", "."], ["Maybe", "."]],
        "rationale_choices": [[[2], "looks", "at", [1], "."], ["It", "is", "dark", "."], ["So", "."], ["Why", "not"]],
    }
    return [row | ({} if split == "test" else {"answer_label": 0, "rationale_label": 1})]


def vcr(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    boxes = [[10, 8, 50, 72, 0.99], [50, 40, 100, 80, 0.9], [0, 0, 20, 40, 0.8]]
    for split in ("train", "val", "test"):
        rows = vcr_rows(split)
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for row in rows:
            pictures(folder / "vcr1images", row["img_fn"])
            table = {
                "boxes": boxes,
                "names": row["objects"],
                "width": SIZE[0],
                "height": SIZE[1],
                "segms": [[], [], []],
            }
            (folder / "vcr1images" / row["metadata_fn"]).write_text(json.dumps(table))
    return folder


FLICKR_CAPTIONS = (
    "[/EN#1/people Two  men] with [/EN#2/clothing/other a red hat] sit on [/EN#0/notvisual it] .\n"
    "[/EN#2/clothing A hat] .\n"
    "Nothing here .\n"
)
FLICKR_BOXES = """<annotation>
  <filename>NAME.jpg</filename>
  <size><width>100</width><height>80</height><depth>3</depth></size>
  <object><name>1</name><bndbox><xmin>11</xmin><ymin>9</ymin><xmax>31</xmax><ymax>41</ymax></bndbox></object>
  <object><name>1</name><name>3</name>
    <bndbox><xmin>21</xmin><ymin>17</ymin><xmax>51</xmax><ymax>81</ymax></bndbox></object>
  <object><name>2</name><bndbox><xmin>61</xmin><ymin>1</ymin><xmax>81</xmax><ymax>21</ymax></bndbox></object>
  <object><name>4</name><nobndbox>1</nobndbox><scene>0</scene></object>
</annotation>
"""


def flickr30k(folder: Path) -> Path:
    for name in ("Sentences", "Annotations"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for split, name in (("train", "1000"), ("val", "2000"), ("test", "3000")):
        (folder / f"{split}.txt").write_text(f"{name}\n")
        (folder / f"Sentences/{name}.txt").write_text(FLICKR_CAPTIONS)
        (folder / f"Annotations/{name}.xml").write_text(FLICKR_BOXES.replace("NAME", name))
        pictures(folder / "images", f"{name}.jpg")
    return folder


def coco_captions(folder: Path) -> Path:
    """Three images per split, the first with two captions, the second with one of blanks alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for first, year in ((9, "train2014"), (42, "val2014")):
        images = [
            {"id": number, "file_name": f"COCO_{year}_{number:012d}.jpg", "width": SIZE[0], "height": SIZE[1]}
            for number in range(first, first + 3)
        ]
        texts = ((0, "A dog . "), (0, "a brown\ndog"), (1, "two cats"), (1, " "), (2, "a boat"))
        rows = [
            {"image_id": first + place, "id": number, "caption": text} for number, (place, text) in enumerate(texts)
        ]
        (folder / f"captions_{year}.json").write_text(json.dumps({"images": images, "annotations": rows}))
        pictures(folder / "images", *(row["file_name"] for row in images))
    return folder


def vqg(folder: Path) -> Path:
    """VQG_COCO: pictures of COCO's training split, with several questions each, and their captions."""
    coco_captions(folder)
    for image, split in enumerate(("train", "val", "test"), 9):
        address = f"http://images.cocodataset.org/train2014/COCO_train2014_{image:012d}.jpg"
        rows = ("image_id,image_url,questions", f'{image},{address},"Is it  old, or new?---Who is it?"')
        (folder / f"coco_{split}_all.csv").write_text("\r\n".join((*rows, "")), newline="")
        pictures(folder / "images", address.rpartition("/")[2])
    return folder


def vcr_results(best_choices):
    """VCR's file of predictions: per item five groups, each with one likeliest choice."""
    groups = ["answer", *(f"rationale_conditioned_on_a{k}" for k in range(4))]
    lines = [",".join(["annot_id", *(f"{group}_{choice}" for group in groups for choice in range(4))])]
    for item, best_by_group in best_choices.items():
        lines.append(
            ",".join([item, *("0.7" if choice == best else "0.1" for best in best_by_group for choice in range(4))])
        )
    return "\n".join(lines) + "\n"


VCR_RESULTS = vcr_results({"val-0": (0, 3, 0, 0, 0), "val-1": (1, 0, 2, 0, 0), "val-2": (0, 0, 0, 1, 0)})
