"""Question files as published: joined and counted; damaged files give clear errors."""

import gzip
import json
import logging
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mmgen_questions import Csv, Jsonl, Vqa, Vqg
from PIL import Image
from pydantic import ValidationError

from mmgen.errors import DataError
from mmgen.testing import DatasetSuite

ALL_WELL = dict.fromkeys(
    [
        "without_caption",
        "without_picture",
        "without_question",
        "empty_questions",
        "duplicates",
        "empty_captions",
        "duplicate_captions",
    ],
    0,
)
HEADER = "image_id,image_url,questions"


def vqa_file(path: Path, *questions: tuple) -> Path:
    items = [
        {"image_id": image, "question": text, "question_id": number} for number, (image, text) in enumerate(questions)
    ]
    path.write_text(json.dumps({"questions": items}))
    return path


def caption_file(path: Path, *captions: tuple) -> Path:
    path.write_text(
        json.dumps(
            {"annotations": [{"id": number, "image_id": image, "caption": text} for number, image, text in captions]}
        )
    )
    return path


def vqa(folder: Path, **options) -> Vqa:
    """A config whose only split is "train"."""
    return Vqa(
        folder=folder,
        files={"train": "q.json"},
        **{"caption_files": (), "validation_split": "", "test_split": "train", **options},
    )


def vqg(folder: Path, text: str | bytes) -> Vqg:
    (folder / "q.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    return Vqg(folder=folder, files={"train": "q.csv"}, caption_files=(), validation_split="", test_split="train")


def jsonl(folder: Path, *lines: str, **options) -> Jsonl:
    (folder / "q.jsonl").write_text("\n".join(lines), newline="")
    return Jsonl(folder=folder, files={"train": "q.jsonl"}, validation_split="", test_split="train", **options)


def load_error(config) -> str:
    with pytest.raises(DataError) as caught:
        config.build().split("train")
    return str(caught.value)


# --- the published files ---


def test_vqg_coco(real_data):
    config = Vqg(folder=real_data / "vqg_coco", caption_files=("captions_from_categories.json",), missing="keep")
    dataset = config.build()
    description = dataset.describe()
    assert description["examples"] == {"train": 2500, "val": 1249, "test": 1249}
    assert description["counts"]["train"] == ALL_WELL | {
        "images": 2500,
        "questions": 12494,
        "captions": 257,
        "without_caption": 2243,
    }
    assert [description["counts"][split]["captions"] for split in dataset.splits()] == [257, 125, 123]
    first = dataset.split("train")[0]
    assert (first.id, first.inputs["image"], first.targets[0], len(first.targets)) == (
        "train-314392",
        "314392",
        "What is she drinking?",
        5,
    )
    json.dumps(description)


def test_vqg_coco_with_pictures(real_data):
    config = Vqg(folder=real_data / "vqg_coco", caption_files=("captions_from_categories.json",), images="images")
    dataset = config.build()
    assert dataset.describe()["examples"] == {"train": 257, "val": 125, "test": 123}
    pictures = list(dataset.pictures())
    assert len(pictures) == len({picture.key for picture in pictures}) == 505
    assert pictures[0].key == dataset.split("train")[0].inputs["image"]
    assert pictures[0].load().mode == "RGB"


@pytest.mark.slow
def test_coco_captions_of_several(real_data):
    """Gzipped official captions: five per image, as alternatives, only the first, or one example per caption."""
    folder, files = real_data / "vqg_coco", ("../coco/captions.json.gz",)
    draw, first, separate = (
        Vqg(folder=folder, caption_files=files, captions=use).build().split("train") for use in ("draw", "first", "all")
    )
    assert len(draw) == len(first) == 102 and len(separate) == 510
    assert len(draw[0].inputs["caption"]) == 5
    assert first[0].inputs["caption"] == draw[0].inputs["caption"][:1]
    assert [example.inputs["caption"] for example in separate[:5]] == [
        (caption,) for caption in draw[0].inputs["caption"]
    ]
    assert [example.id for example in separate[:2]] == [f"{draw[0].id}#1", f"{draw[0].id}#2"]


def test_okvqa(real_data, caplog):
    config = Vqa(release="okvqa", folder=real_data / "okvqa", test_split="val", caption_files=())
    description = config.build().describe()
    assert {split: counts["questions"] for split, counts in description["counts"].items()} == {
        "train": 9009,
        "val": 5046,
    }
    assert description["examples"] == {"train": 8998, "val": 5033}
    assert description["licence"] == "Creative Commons Attribution 4.0 International License"
    captioned = config.model_copy(
        update={"train_split": "val", "caption_files": (Path("captions_one_per_image.json.gz"),)}
    )
    with caplog.at_level(logging.INFO, "mmgen"):
        description = captioned.build().describe()
    assert description["counts"]["val"]["captions"] == 3765
    assert caplog.messages == ["OK-VQA val (5,033 images): left out 1,268 images without a caption"]


def test_every_split_is_the_same_twice_and_ids_are_unique(real_data):
    config = Vqg(folder=real_data / "vqg_coco", caption_files=())
    first, second = config.build(), config.build()
    ids = [example.id for split in first.splits() for example in first.split(split)]
    assert len(ids) == len(set(ids)) == 4998
    assert all(first.split(split) == second.split(split) for split in first.splits())


@pytest.mark.parametrize("release, prefix", [("1.0", "OpenEnded"), ("1.0", "MultipleChoice"), ("2.0", "v2_OpenEnded")])
def test_vqa_under_its_published_names(tmp_path, release, prefix):
    (tmp_path / "annotations").mkdir()
    for image, (split, year) in enumerate({"train": "train2014", "val": "val2014", "test": "test2015"}.items()):
        vqa_file(tmp_path / f"{prefix}_mscoco_{year}_questions.json", (image, "What is it?"), (image, "Who is it?"))
        caption_file(tmp_path / "annotations" / f"captions_{year}.json", (image, image, f"a thing of {split}"))
    dataset = Vqa(folder=tmp_path, release=release).build()
    assert dataset.splits() == ("train", "val", "test")
    assert dataset.split("val")[0].inputs == {"image": "1", "caption": ("a thing of val",)}
    assert dataset.split("test")[0].targets == ("What is it?", "Who is it?")
    published = dataset.describe().get("published", {})
    assert bool(published) == (release == "1.0")


@pytest.mark.parametrize(
    "config, row, values",
    [
        (
            Vqa,
            "caption",
            {
                "BLEU-1": 75.41,
                "BLEU-2": 56.49,
                "BLEU-3": 43.26,
                "BLEU-4": 32.28,
                "ROUGE-L": 66.18,
                "METEOR": 26.51,
                "CIDEr": 43.56,
            },
        ),
        (
            Vqa,
            "Max",
            {
                "BLEU-1": 59.4,
                "BLEU-2": None,
                "BLEU-3": None,
                "BLEU-4": None,
                "ROUGE-L": 49.3,
                "METEOR": 17.8,
                "CIDEr": 33.1,
            },
        ),
        (
            Vqg,
            "both",
            {
                "BLEU-1": 70.96,
                "BLEU-2": 50.83,
                "BLEU-3": 39.20,
                "BLEU-4": 30.29,
                "ROUGE-L": 61.87,
                "METEOR": 27.65,
                "CIDEr": 62.77,
            },
        ),
    ],
)
def test_the_papers_rows(config, row, values):
    rows = config(folder=Path("x")).published.rows
    assert rows[row] == values
    assert [label for label in rows if label.islower()] == ["caption", "image_frozen", "image", "both", "both_scratch"]


def test_a_captioners_bare_results(tmp_path):
    vqa_file(tmp_path / "q.json", (9, "What?"))
    (tmp_path / "c.json").write_text(json.dumps([{"image_id": "COCO_val2014_000000000009.jpg", "caption": "a  cat\n"}]))
    assert vqa(tmp_path, caption_files=("c.json",)).build().split("train")[0].inputs == {
        "image": "9",
        "caption": ("a cat",),
    }


# --- JSONL ---


def test_jsonl_with_a_further_input(tmp_path):
    dataset = jsonl(
        tmp_path,
        '{"id": 1, "image": "a/b.jpg", "caption": "a cat", "questions": ["What?", " Who? "], "audio": "b.wav"}\r',
        "",
        '{"id": "two", "captions": ["x", "y"], "questions": "Why?"}',
    ).build()
    first, second = dataset.split("train")
    assert (first.id, first.inputs, first.targets) == (
        "train-1",
        {"image": "b", "caption": ("a cat",), "audio": "b.wav"},
        ("What?", "Who?"),
    )
    assert (second.id, second.inputs, second.targets) == ("train-two", {"caption": ("x", "y")}, ("Why?",))


@pytest.mark.parametrize(
    "line, error",
    [
        ("[1]", ":2: must be a table with id, questions, not a list"),
        ('{"id": 2, "questons": ["a"]}', ":2: has no 'questions'; its keys are: id, questons"),
        ('{"id": 1, "questions": ["a"]}', ":2: duplicate id '1', first on line 1"),
        ('{"id": 2, "questions": ["a", 7]}', ":2: questions[1] must be a text, not a number"),
        ('{"id": 2, "questions": null}', ":2: questions must be a text, not null"),
        ('{"id": true, "questions": ["a"]}', ":2: id must be a number or a text, not true or false"),
        ('{"id": 2, "caption": {}, "questions": ["a"]}', ":2: caption must be a text, not a table"),
        ('{"id": 2, "questions": ["a"]', ":2: not valid JSON: Expecting ',' delimiter (column 29)"),
        (
            '{"id": 2, "questions": ["\\u0000"]}',
            ":2: questions[0] holds '\\x00', which is not a valid character; the file is damaged",
        ),
        (
            '{"id": 2, "questions": ["\\ud800"]}',
            ":2: questions[0] holds '\\ud800', which is not a valid character; the file is damaged",
        ),
        ("[" * 100_000, ":2: not usable JSON: "),
        (
            '{"id": 2, "questions": ["' + "a" * 1_000_001 + '"]}',
            ":2: questions[0] has 1,000,001 characters; the limit is 1,000,000; the file is damaged",
        ),
    ],
    ids=lambda value: value[:40],
)
def test_bad_jsonl(tmp_path, line, error):
    text = load_error(jsonl(tmp_path, '{"id": 1, "questions": ["What?"]}', line))
    assert text.startswith(f"{tmp_path / 'q.jsonl'}{error}")
    assert "\n" not in text


def test_a_line_without_a_caption_among_lines_with_captions(tmp_path, caplog):
    lines = ['{"id": "a", "caption": "a cat", "questions": ["What?"]}', '{"id": "bare", "questions": ["Why?"]}']
    dataset = jsonl(tmp_path, *lines).build()
    assert [example.id for example in dataset.split("train")] == ["train-a"]
    assert caplog.messages == ["JSONL train: left out 1 image without a caption"]
    counts = dataset.describe()["counts"]["train"]
    assert (counts["images"], counts["without_caption"]) == (0, 1)
    assert dataset.lacking("train") == {"without_caption": ["bare"]}
    keeping = jsonl(tmp_path, *lines, missing="keep").build()
    assert [example.id for example in keeping.split("train")] == ["train-a", "train-bare"]
    assert keeping.lacking("train") == {"without_caption": ["bare"]}
    text = load_error(jsonl(tmp_path, *lines, missing="error"))
    assert (
        text == f'{tmp_path}/q.jsonl: 1 image without a caption; set missing = "drop" to leave their examples out, or '
        '"keep" to keep them'
    )
    bare = jsonl(tmp_path, lines[1]).build()  # where no line has a caption, none is missing
    assert len(bare.split("train")) == 1 and bare.lacking("train") == {}


# --- tables ---


def table(folder: Path, text: str, name: str = "q.csv", **options) -> Csv:
    (folder / name).write_text(text)
    return Csv(folder=folder, files={"train": name}, validation_split="", test_split="train", **options)


def test_a_table_with_one_question_per_row(tmp_path, caplog):
    rows = 'image,split,question\nphotos/b.jpg,x,What?\nc.jpg,x,Who?\nb.jpg,y,"Why, now?"\nb.jpg,y,What?\n'
    with caplog.at_level(logging.INFO, "mmgen"):
        examples = table(tmp_path, rows).build().split("train")
    assert [(example.id, example.inputs, example.targets) for example in examples] == [
        ("train-b", {"image": "b"}, ("What?", "Why, now?")),
        ("train-c", {"image": "c"}, ("Who?",)),
    ]
    assert caplog.messages == [
        "CSV train (2 images): left out 1 repeated question",
        f"{tmp_path}/q.csv: unused columns: split",
    ]


def test_a_table_whose_columns_are_named(tmp_path):
    rows = "key\tfile\tq\tdescription\tsound\n7\ta/b.jpg\tWhat?|Who?\ta cat|a pet\tmeow.wav\n8\t\tWhy?\ta dog\t\n"
    columns = {"id": "key", "image": "file", "questions": "q", "caption": "description", "audio": "sound"}
    first, second = table(tmp_path, rows, "q.tsv", columns=columns, separator="|").build().split("train")
    assert (first.id, first.targets) == ("train-7", ("What?", "Who?"))
    assert first.inputs == {"image": "b", "audio": ("meow.wav",), "caption": ("a cat", "a pet")}
    assert (second.id, second.inputs, second.targets) == ("train-8", {"caption": ("a dog",)}, ("Why?",))


@pytest.mark.parametrize(
    "text, error, columns",
    [
        ("image,qs\n1,What?\n", ":1: no column 'questions'; the columns are: image, qs; name it in data.columns", {}),
        (
            "image,question_text\n1,What?\n",
            ":1: no column 'questions_text'; did you mean 'question_text'?; the columns are: image, question_text",
            {"questions": "questions_text"},
        ),
        ("questions,questions\na,b\n", ":1: the column 'questions' occurs 2 times; keep one of them", {}),
        (
            "id,image,questions\n1,a,b\n1,c,d\n",
            ":3: the id '1' has the image c here, but a in an earlier row; give an id one image",
            {},
        ),
    ],
)
def test_a_table_that_cannot_be_used(tmp_path, text, error, columns):
    assert load_error(table(tmp_path, text, columns=columns)).startswith(f"{tmp_path}/q.csv{error}")


# --- what can be wrong with files ---


def test_all_missing_files_are_listed_at_once(tmp_path):
    with pytest.raises(DataError) as caught:
        Vqa(folder=tmp_path).build()
    lines = str(caught.value).splitlines()
    assert lines[0] == "VQA 1.0: 6 files are missing:"
    assert lines[1] == f"  {tmp_path}/OpenEnded_mscoco_train2014_questions.json  <- visualqa.org/vqa_v1_download.html"
    assert lines[6].startswith(f"  {tmp_path}/captions_test2015.json  <- never published")
    assert lines[7].startswith("  put the files there, or name other files")


def test_unused_splits_need_no_files(tmp_path):
    with pytest.raises(DataError, match="2 files are missing"):
        Vqa(folder=tmp_path, train_split="val", test_split="val").build()


def test_an_unknown_split(tmp_path):
    with pytest.raises(ValidationError, match="test_split: OK-VQA has no split 'test'; there are: train, val"):
        Vqa(folder=tmp_path, release="okvqa")
    vqa_file(tmp_path / "q.json", (1, "What?"))
    with pytest.raises(DataError, match="VQA 1.0: split 'dev' is not in use; the splits are: train"):
        vqa(tmp_path).build().split("dev")


@pytest.mark.parametrize(
    "text, error",
    [
        (
            '{"questions": [{"image_id": 1, "question": "What',
            ":1: not valid JSON: Unterminated string starting at (column 44); the file may be cut short: get it again",
        ),
        (
            '{\n"questions": [\n{"image_id": 1,',
            ":3: not valid JSON: Expecting property name enclosed in double quotes (column 16); the file may be cut "
            "short: get it again",
        ),
        ("", ":1: not valid JSON: Expecting value (column 1); the file may be cut short: get it again"),
        (
            '{"annotations": []}',
            ": not a file of VQA questions: it has no list 'questions' (its keys are: annotations)",
        ),
        ("[]", ": not a file of VQA questions: it has no list 'questions' (it is a list)"),
        (
            '{"questions": [{"image_id": 1, "question": "a"}, {"image_id": 1}]}',
            ": questions[1]: has no 'question'; its keys are: image_id",
        ),
        ('{"questions": [{"image_id": 1, "question": ["a"]}]}', ": questions[0]: question must be a text, not a list"),
        (
            '{"questions": [{"image_id": 1.5, "question": "a"}]}',
            ": questions[0]: image_id must be a number or a text, not a number with a point",
        ),
        ('{"questions": [{"image_id": "", "question": "a"}]}', ": questions[0]: image_id is empty"),
        ('{"questions": []}', ": no examples remain for the split 'train': the file is empty"),
        (
            '{"questions": [{"image_id": 1, "question": " "}]}',
            ": no examples remain for the split 'train': 1 image without a question, 1 empty question",
        ),
        (
            '{"questions": [{"image_id": 1, "question": "a", "question_id": 7}, {"image_id": 1, "question": "b", '
            '"question_id": 7}]}',
            ": questions[1]: duplicate question_id 7, with other words or another image",
        ),
    ],
)
def test_bad_vqa(tmp_path, text, error):
    (tmp_path / "q.json").write_text(text)
    assert load_error(vqa(tmp_path)) == f"{tmp_path / 'q.json'}{error}"


@pytest.mark.parametrize(
    "text, error",
    [
        (
            "image_id,image_url\n1,x\n",
            ":1: no column 'questions'; the columns are: image_id, image_url; VQG's columns are: image_id, image_url, "
            "questions",
        ),
        ("", ":1: no column 'image_id'; the columns are: none; VQG's columns are: image_id, image_url, questions"),
        (
            f"{HEADER}\n1,u,What?\n2,u\n",
            ":3: 2 values under 3 columns; put texts with a comma in quotation marks",
        ),
        (
            f"{HEADER}\n1,u,Yes, what?\n",
            ":2: 4 values under 3 columns; put texts with a comma in quotation marks",
        ),
        (
            f'{HEADER}\n1,u,"What?\n2,u,Who?\n',
            ":3: a quotation mark is not closed before the end of the file; close it",
        ),
        (
            f'{HEADER}\n1,u,"What "he" did?"\n',
            ":2: text follows a closing quotation mark; inside a quoted cell, write every quotation mark twice",
        ),
        (
            f"{HEADER}\n1,u,{'x' * 131_073}\n",
            ":2: a cell has more than 131,072 characters; is a quotation mark before it not closed?",
        ),
        (f"{HEADER}\n,u,What?\n", ":2: image_id is empty"),
        (f"{HEADER}\n1,u,Wh\0at?\n", ":2: contains a NUL byte; the file is damaged or is not a text file"),
        (f"{HEADER}\n1,u,What?\n".encode("utf-16"), ":1: the encoding is UTF-16; save the file as UTF-8"),
        (f"{HEADER}\n1,u,caf\xe9?\n".encode("latin-1"), ":2: the encoding is not UTF-8; save the file as UTF-8"),
    ],
)
def test_bad_csv(tmp_path, text, error):
    assert load_error(vqg(tmp_path, text)) == f"{tmp_path / 'q.csv'}{error}"


def test_csv_with_windows_habits(tmp_path, caplog):
    """A byte-order mark, CRLF, columns in another order, a repeated row, an empty question, a line break."""
    rows = 'questions,image_id\r\n"What, now?------Who\r\nis it?",7\r\nWhy?,8\r\nWhy?,8\r\n'
    with caplog.at_level(logging.INFO, "mmgen"):
        dataset = vqg(tmp_path, b"\xef\xbb\xbf" + rows.encode()).build()
        examples = dataset.split("train")
    assert [(example.id, example.targets) for example in examples] == [
        ("train-7", ("What, now?", "Who is it?")),
        ("train-8", ("Why?",)),
    ]
    assert caplog.messages == ["VQG_COCO train (2 images): left out 1 empty question, 1 repeated question"]
    assert dataset.describe()["counts"]["train"] == ALL_WELL | {
        "images": 2,
        "questions": 3,
        "captions": 0,
        "empty_questions": 1,
        "duplicates": 1,
    }


def test_vqg_rows_of_one_image_with_other_questions_are_joined(tmp_path, caplog):
    rows = f"{HEADER}\n7,u,What?---Who?\n7,u,Who?---Why?\n8,u,Where?\n8,u,When?\n"
    examples = vqg(tmp_path, rows).build().split("train")
    assert [example.targets for example in examples] == [("What?", "Who?", "Why?"), ("Where?", "When?")]
    assert caplog.messages == ["VQG_COCO train (2 images): left out 1 repeated question"]


def test_captions_in_bings_tables(tmp_path):
    """Bing's and Flickr's files have their images' captions in a column."""
    (tmp_path / "q.csv").write_text(
        "image_id,image_url,questions,captions\n7,u,What?---Who?,a cat---a pet\n8,u,Why?,\n"
    )
    files = {"train": "q.csv"}
    dataset = Vqg(release="bing", folder=tmp_path, files=files, validation_split="", test_split="train").build()
    (example,) = dataset.split("train")
    assert example.inputs == {"image": "7", "caption": ("a cat", "a pet")}
    assert dataset.describe()["counts"]["train"]["captions"] == 2 and dataset.lacking("train") == {
        "without_caption": ["8"]
    }


def test_a_file_of_a_split_that_is_not_used_may_be_broken(tmp_path):
    vqa_file(tmp_path / "q.json", (1, "What?"))
    (tmp_path / "broken.json").write_text("{")
    config = vqa(tmp_path).model_copy(update={"files": {"train": Path("q.json"), "test": Path("broken.json")}})
    dataset = config.build()
    assert dataset.splits() == ("train",) and dataset.describe()["examples"] == {"train": 1}


def test_a_missing_folder_of_pictures(tmp_path):
    vqa_file(tmp_path / "q.json", (1, "What?"))
    text = load_error(vqa(tmp_path, images="photos"))
    assert text == f"VQA 1.0: {tmp_path}/photos: no such folder; data.images names the folder of raw images"


def test_a_gzipped_file_that_is_cut_short(tmp_path):
    vqa_file(tmp_path / "q.json", *((n, "What is it?") for n in range(500)))
    packed = gzip.compress((tmp_path / "q.json").read_bytes())
    (tmp_path / "q.json").unlink()
    (tmp_path / "q.json.gz").write_bytes(packed)
    assert len(vqa(tmp_path).build().split("train")) == 500
    (tmp_path / "q.json.gz").write_bytes(packed[:-100])
    text = load_error(vqa(tmp_path))
    assert text.startswith(f"{tmp_path / 'q.json.gz'}: cannot be unpacked (") and text.endswith(
        "; the file may be cut short: get it again"
    )


def test_two_caption_files(tmp_path):
    vqa_file(tmp_path / "q.json", (1, "What?"))
    caption_file(tmp_path / "a.json", (5, 1, "a cat"), (6, 1, " "))
    caption_file(tmp_path / "b.json", (5, 1, "a cat"), (7, 1, "a pet"), (5, 2, "of another image"))
    agreed = vqa(tmp_path, caption_files=("a.json", "b.json")).build()
    assert agreed.split("train")[0].inputs["caption"] == ("a cat", "a pet")
    counts = agreed.describe()["counts"]["train"]
    assert (counts["captions"], counts["duplicate_captions"], counts["empty_captions"]) == (2, 1, 1)
    caption_file(tmp_path / "b.json", (5, 1, "a dog"))
    text = load_error(vqa(tmp_path, caption_files=("a.json", "b.json")))
    assert (
        text
        == f"{tmp_path}/b.json: annotations[0]: caption 5 of image 1 is 'a dog' here and 'a cat' in {tmp_path}/a.json; "
        "keep one of them"
    )


def test_images_without_a_caption(tmp_path):
    vqa_file(tmp_path / "q.json", (1, "What?"), (2, "Who?"))
    caption_file(tmp_path / "c.json", (5, 1, "a cat"))
    drop, keep = (vqa(tmp_path, caption_files=("c.json",), missing=missing).build() for missing in ("drop", "keep"))
    assert [example.id for example in drop.split("train")] == ["train-1"]
    assert [sorted(example.inputs) for example in keep.split("train")] == [["caption", "image"], ["image"]]
    assert (
        drop.describe()["counts"]["train"]["without_caption"]
        == keep.describe()["counts"]["train"]["without_caption"]
        == 1
    )
    text = load_error(vqa(tmp_path, caption_files=("c.json",), missing="error"))
    assert (
        text == f'{tmp_path}/q.json: 1 image without a caption; set missing = "drop" to leave their examples out, or '
        '"keep" to keep them'
    )
    caption_file(tmp_path / "c.json", (5, 3, "a cat"))
    text = load_error(vqa(tmp_path, caption_files=("c.json",)))
    assert (
        text == f"{tmp_path}/q.json: no examples remain for the split 'train': 2 images without a caption; check that "
        f"{tmp_path}/c.json has the same images"
    )


def test_pictures(tmp_path):
    vqa_file(tmp_path / "q.json", (1, "What?"), (2, "Who?"))
    with pytest.raises(DataError, match="VQA 1.0 has no raw images; set data.images"):
        list(vqa(tmp_path).build().pictures())
    (tmp_path / "images" / "train2014").mkdir(parents=True)
    Image.new("L", (8, 6)).save(tmp_path / "images" / "train2014" / "COCO_train2014_000000000001.jpg")
    dataset = vqa(tmp_path, images="images").build()
    (picture,) = dataset.pictures()
    assert (picture.key, picture.load().size, picture.load().mode) == ("1", (8, 6), "RGB")
    assert dataset.describe()["counts"]["train"]["without_picture"] == 1
    broken = tmp_path / "images" / "000000000002.jpg"
    broken.write_bytes(b"no image")
    _, picture = vqa(tmp_path, images="images").build().pictures()
    with pytest.raises(DataError, match="000000000002.jpg: not a readable image"):
        picture.load()
    broken.rename(tmp_path / "images" / "1.png")
    assert (
        load_error(vqa(tmp_path, images="images"))
        == f"{tmp_path}/images: 1.png and train2014/COCO_train2014_000000000001.jpg have the same key '1'; rename one "
        "of them"
    )


class TestVqa(DatasetSuite):
    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        for image, split in enumerate(("train", "val", "test")):
            vqa_file(tmp_path / f"{split}.json", (image, "What?"), (image, "Who?"), (image + 5, "Why?"))
            Image.new("L", (8, 6)).save(tmp_path / f"{image:012}.jpg")
        caption_file(tmp_path / "c.json", *((number, number, f"thing {number}") for number in range(8)))
        self.folder = tmp_path

    def config(self):
        files = {split: f"{split}.json" for split in ("train", "val", "test")}
        return Vqa(
            folder=self.folder, files=files, caption_files=("c.json",), images=".", captions="all", missing="keep"
        )


class TestVqg(DatasetSuite):
    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        for image, split in enumerate(("train", "val", "test")):
            (tmp_path / f"bing_{split}_all.csv").write_text(f"{HEADER}\n{image},u,What?---Who?\n")
        self.folder = tmp_path

    def config(self):
        return Vqg(release="bing", folder=self.folder)


class TestJsonl(DatasetSuite):
    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        for split in ("train", "val", "test"):
            (tmp_path / f"{split}.jsonl").write_text(
                json.dumps({"id": 1, "image": f"{split}.jpg", "caption": "a", "questions": ["What?"]})
            )
        self.folder = tmp_path

    def config(self):
        return Jsonl(folder=self.folder)


class TestCsv(DatasetSuite):
    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        for image, split in enumerate(("train", "val", "test")):
            (tmp_path / f"{split}.csv").write_text(f"image,caption,questions\n{image}.jpg,a,What?---Who?\n")
        self.folder = tmp_path

    def config(self):
        return Csv(folder=self.folder)


# --- anything at all ---

FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(["id", "image", "caption", "questions"]), inner, max_size=4)
    ),
    max_leaves=8,
)
LINE = st.fixed_dictionaries(
    {"id": st.integers() | st.text(), "questions": st.lists(st.text(), max_size=3)},
    optional={"caption": JSON, "image": JSON},
)


def check_usable_or_refused(config) -> None:
    """Either examples, each with texts on one line, or a DataError on one line."""
    try:
        examples = config.build().split("train")
    except DataError as error:
        assert "\n" not in str(error)
        return
    assert len({example.id for example in examples}) == len(examples) > 0
    for example in examples:
        assert example.targets and all(text and "\n" not in text for text in example.targets)
        repr(example).encode()
        " ".join(example.targets).encode()


@pytest.mark.slow
@FUZZ
@given(lines=st.lists(st.text() | JSON.map(json.dumps) | LINE.map(json.dumps), max_size=4))
def test_any_jsonl(tmp_path, lines):
    (tmp_path / "q.jsonl").write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    check_usable_or_refused(Jsonl(folder=tmp_path, files={"train": "q.jsonl"}, validation_split="", test_split="train"))


@FUZZ
@given(
    text=st.binary()
    | st.text(st.sampled_from("a7,\"-\n\r' \0\u2028é")).map(lambda rows: f"{HEADER}\n1,u,What?\n{rows}".encode())
)
def test_any_csv(tmp_path, text):
    check_usable_or_refused(vqg(tmp_path, text))


@FUZZ
@given(text=st.text(st.sampled_from("a7,\"-\n\r' \t\u2028é|")), suffix=st.sampled_from([".csv", ".tsv"]))
def test_any_table(tmp_path, text, suffix):
    check_usable_or_refused(table(tmp_path, f"id,image,caption,questions\n{text}", f"q{suffix}"))


@pytest.mark.slow
@FUZZ
@given(
    value=st.lists(
        st.fixed_dictionaries(
            {"image_id": st.integers() | st.text(), "question": st.text()}, optional={"question_id": JSON}
        ),
        max_size=4,
    )
    | JSON
)
def test_any_vqa(tmp_path, value):
    (tmp_path / "q.json").write_text(json.dumps({"questions": value}))
    check_usable_or_refused(vqa(tmp_path))
