"""Questions and answers in tables, JSON lines and published files: what is read of small files (golden/*.jsonl), and
what cannot be used."""

import gzip
import json
import pickle
from pathlib import Path

import pytest
from kit import golden, published
from mmgen_data import Table, Vqa, Vqg
from mmgen_tasks import VqaAccuracy
from mmgen_vision.lines import read_answers
from pydantic import ValidationError

from mmgen.errors import DataError
from mmgen.examples import Prediction
from mmgen.testing import DatasetSuite

GOLDEN = Path(__file__).parent / "golden"


def questions(*rows) -> str:
    """A file of VQA's format: (image, text)."""
    items = [{"image_id": image, "question": text, "question_id": n} for n, (image, text) in enumerate(rows)]
    return json.dumps({"questions": items})


def captions(*rows) -> str:
    """A file of COCO's format: (image, text)."""
    items = [{"image_id": image, "id": n, "caption": text} for n, (image, text) in enumerate(rows)]
    return json.dumps({"annotations": items})


def lines(*rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def config_of(folder: Path, kind, files: dict, options: dict):
    """Writes the files; the first is the split "train", unless the options say otherwise."""
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    keys = {"files": {"train": next(iter(files))}, "validation_split": "", "test_split": "train", **options}
    return kind(folder=folder, **keys)


PROMPTS = "image,questions,level\n1,what is it?---where is it?,remember\n1,why is it there?,analyse\n2,who?,\n"
ANSWERS = "file,ask,answer\na.jpg,what is it ?,A dog.\na.jpg,how many ?,two\nb.jpg,what is it ?,Cat\n"
LABELS = (
    "file,ask,options,correct,yes,where,things,grade\n"
    'a.jpg,which ?,red---blue,blue,Yes,"0.1 0.2, 0.5;1",0 0 1 1---0 0 .5 .5,2\n'
)
ASKED = {"image": "file", "question": "ask"}
COLUMNS = {**ASKED, "answers": "answer"}
BARE = '{"id": "bare", "questions": ["Why?"]}\n'
CAPTIONED = '{"id": "a", "caption": "a cat", "questions": ["What?"]}\n' + BARE
CHOICES = lines(
    {"id": 1, "image": "a.jpg", "q": "which ?", "c": ["red", "blue"], "n": 1, "level": 2},
    {"id": 2, "image": "a.jpg", "q": "which ?", "c": ["red", "blue"], "n": None, "level": 1},
)
FEW = questions((1, "What?"), (2, "Who?"))
ONE_CAPTIONED = {"q.json": FEW, "c.json": captions((1, "a cat"))}
CAPTIONS = {"caption_files": ("c.json",)}
TYPES = (("a dog", "other", "what is the"), ("yes", "yes/no", "is it"), ("2", "number", "how many"))
ANNOTATIONS = [
    {"question_id": n, "multiple_choice_answer": answer, "answers": [{"answer": answer}]}
    | {"answer_type": answer_type, "question_type": question_type}
    for n, (answer, answer_type, question_type) in enumerate(TYPES)
]
ANNOTATED = {
    "q.json": questions(("1", "what is it?"), ("1", "is it red?"), ("2", "how many?")),
    "mscoco_train2014_annotations.json": json.dumps({"annotations": ANNOTATIONS}),
}
CASES = {
    "questions": (
        Table,
        {"q.csv": 'image,split,question\nphotos/b.jpg,x,What?\nc.jpg,x,Who?\nb.jpg,y,"Why, now?"\nb.jpg,y,What?\n'},
        {},
    ),
    "columns": (
        Table,
        {"q.tsv": "key\tfile\tq\tabout\tsound\n7\ta/b.jpg\tWhat?|Who?\ta cat|a pet\tmeow.wav\n8\t\tWhy?\ta dog\t\n"},
        {
            "columns": {"id": "key", "image": "file", "questions": "q", "caption": "about", "audio": "sound"},
            "separator": "|",
        },
    ),
    "prompts": (
        Table,
        {"q.csv": PROMPTS, "t.csv": PROMPTS.replace("\n1", "\n3").replace("\n2", "\n4")},
        {"columns": {"prompt": "level"}, "files": {"train": "q.csv", "test": "t.csv"}, "test_split": "test"},
    ),
    "lines": (
        Table,
        {
            "q.jsonl": '{"id": 1, "image": "a/b.jpg", "caption": "a cat", "questions": ["What?", " Who? "], "audio": '
            '"b.wav"}\r\n\n{"id": "two", "captions": ["x", "y"], "questions": "Why?"}'
        },
        {},
    ),
    "lines_with_prompts": (
        Table,
        {"q.jsonl": '{"key": "1", "asked": ["what?", "who?"], "level": ["easy", "hard"]}\n'},
        {"columns": {"id": "key", "questions": "asked", "prompt": "level"}},
    ),
    "a_caption_dropped": (Table, {"q.jsonl": CAPTIONED}, {}),
    "no_captions": (Table, {"q.jsonl": BARE}, {}),  # then none is missing
    "answers": (Table, {"q.csv": ANSWERS}, {"columns": COLUMNS}),
    "answers_to_train": (
        Table,
        {"q.csv": ANSWERS, "t.csv": ANSWERS.replace(" ?", "?")},
        {"columns": COLUMNS, "files": {"train": "q.csv", "test": "t.csv"}, "test_split": "test", "num_answers": 1},
    ),
    "people": (
        Table,
        {"q.csv": ANSWERS.replace("how many ?,two", "what is it ?,wolf---dog")},
        {"columns": COLUMNS},
    ),
    "labels": (
        Table,
        {"q.csv": LABELS, "images/a.jpg": b""},
        {
            "columns": {**ASKED, "choices": "options", "choice": "correct", "truth": "yes", "box": "where"}
            | {"boxes": "things"},
            "facts": ("grade",),
            "images": "images",
        },
    ),
    "choices": (
        Table,
        {"q.jsonl": CHOICES},
        {"columns": {"question": "q", "choices": "c", "choice": "n"}, "facts": ("level",)},
    ),
    "windows": (  # a byte-order mark, CRLF, columns in another order, a repeated row, an empty question, a line break
        Vqg,
        {"q.csv": '\ufeffquestions,image_id\r\n"What, now?------Who\r\nis it?",7\r\nWhy?,8\r\nWhy?,8\r\n'},
        {"caption_files": ()},
    ),
    "bing": (
        Vqg,
        {"q.csv": "image_id,image_url,questions,captions\n7,u,What?---Who?,a cat---a pet\n8,u,Why?,\n"},
        {"release": "bing"},
    ),
    **{
        f"prompts_of_{kind}s": (Vqa, ANNOTATED, {"caption_files": (), "prompts": kind})
        for kind in ("answer", "answer_type", "question_type")
    },
    "vqa_caption_dropped": (Vqa, ONE_CAPTIONED, CAPTIONS),
    "captioners_results": (  # bare
        Vqa,
        {
            "q.json": questions((9, "What?")),
            "c.json": '[{"image_id": "COCO_val2014_000000000009.jpg", "caption": "a  cat\\n"}]',
        },
        CAPTIONS,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_read(tmp_path, name):
    golden.check(GOLDEN / f"{name}.jsonl", golden.given(config_of(tmp_path, *CASES[name]).build()))


def test_what_is_left_out_is_said_once(tmp_path, caplog):
    caplog.set_level("INFO", "mmgen")
    config_of(tmp_path, *CASES["questions"]).build().split("train")
    config_of(tmp_path, *CASES["windows"]).build().split("train")
    assert caplog.messages == [
        "table train: left out 1 repeated question",
        "VQG_COCO train: left out 1 empty question, 1 repeated question",
    ]


PUBLISHED = {
    "vqg": lambda folder: Vqg(folder=published.vqg(folder), images="images"),
    "vqa_answers": lambda folder: Vqa(**published_vqa(folder)),
    "vqa_vocabulary": lambda folder: Vqa(**published_vqa(folder), vocabulary="answers.txt"),
    "vqa_without_answers": lambda folder: Vqa(**published_vqa(folder) | {"test_split": "test"}),
    "vqa_joined": lambda folder: Vqa(
        **published_vqa(folder) | {"test_split": "test"}, **joined("both"), train_split="both", validation_split=""
    ),
    "vqa_held_out": lambda folder: Vqa(**published_vqa(folder), **joined("train"), held_out="minival.txt"),
}


def published_vqa(folder: Path) -> dict:
    (published.vqa(folder) / "answers.txt").write_text("<unk>\nno\nyes\n2\ntwo\nthe dog\n")
    (folder / "minival.txt").write_text("20\n")
    return {"folder": folder, "release": "2.0", "targets": "answers", "test_split": "val"}


def joined(split: str) -> dict:
    """The files of training and validation as one split."""
    years = ("train2014", "val2014")
    return {
        "files": {split: [f"v2_OpenEnded_mscoco_{year}_questions.json" for year in years]},
        "annotations": {split: [f"v2_mscoco_{year}_annotations.json" for year in years]},
    }


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_read_of_published_files(tmp_path, name):
    golden.check(GOLDEN / f"{name}.jsonl", golden.given(PUBLISHED[name](tmp_path).build()))


@pytest.mark.parametrize("prefix", ["OpenEnded", "MultipleChoice", "v2_OpenEnded"])
def test_vqa_under_its_published_names(tmp_path, prefix):
    (tmp_path / "annotations").mkdir()
    for image, year in enumerate(("train2014", "val2014", "test2015")):
        text = questions((image, "What is it?"), (image, "Who is it?"))
        (tmp_path / f"{prefix}_mscoco_{year}_questions.json").write_text(text)
        (tmp_path / f"annotations/captions_{year}.json").write_text(captions((image, f"a thing of {year}")))
    dataset = Vqa(folder=tmp_path, release="2.0" if "v2" in prefix else "1.0").build()
    assert dataset.splits() == ("train", "val", "test")
    assert dataset.split("test")[0].inputs == {"image": "2", "caption": ("a thing of test2015",)}
    assert dataset.split("test")[0].targets == ("What is it?", "Who is it?")


def test_blanks_inside_an_answer_stay_as_in_the_official_evaluation(tmp_path):
    config = Vqa(**published_vqa(tmp_path))
    _, annotations = published.vqa_rows("val")
    for answer in annotations[0]["answers"]:
        answer["answer"] = " light\tblue  sky\n"
    (tmp_path / "v2_mscoco_val2014_annotations.json").write_text(json.dumps({"annotations": annotations}))
    first = config.build().split("val")[0]
    assert first.targets == ("light blue  sky",) * 10
    predicted = [Prediction(first.id, {"label": label}, 1.0) for label in ("light blue sky", "light blue  sky")]
    scores = VqaAccuracy().build().score(predicted, [first] * 2)  # ten people agree, so nothing is normalised
    assert scores.per_example["accuracy"] == [0.0, 100.0]


def test_the_vocabulary_has_the_most_common_answers(tmp_path):
    keys = published_vqa(tmp_path)
    _, annotations = published.vqa_rows("train")
    for row in annotations[1:]:
        row["multiple_choice_answer"] = "The dog"
    (tmp_path / "v2_mscoco_train2014_annotations.json").write_text(json.dumps({"annotations": annotations}))
    assert Vqa(**keys, num_answers=1).build().vocabularies() == {"answers": ("dog",)}
    with pytest.raises(DataError, match="the split 'train' has no annotations, so its answers cannot be counted"):
        Vqa(**keys, annotations={"train": []}).build().vocabularies()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", b"<unk>\r\nno\nyes\n\n"),
        ("a.json", b'["<unk>", "no", "yes"]'),
        ("a.json", b'{"yes": 2, "<unk>": 0, "no": 1}'),
        ("a.pkl", pickle.dumps(["<unk>", "no", "yes"], 2)),
    ],
)
def test_vocabularies_of_every_form(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert read_answers(tmp_path / name) == ("<unk>", "no", "yes")


def test_prompts_need_annotations(tmp_path):
    files = {"train": "q.json", "test": "q.json"}
    config = config_of(tmp_path, *CASES["prompts_of_answers"]).model_copy(update={"files": files, "test_split": "test"})
    with pytest.raises(DataError, match="no annotations of 'test'; choose another split, such as test_split = .val."):
        config.build().split("train")


@pytest.mark.parametrize(
    ("kind", "files", "options", "message"),
    [
        (
            Table,
            {"q.csv": "image,question_text\n1,What?\n"},
            {"columns": {"questions": "questions_text"}},
            ":1: no column 'questions_text'; did you mean 'question_text'?; the columns are: image, question_text; ",
        ),
        (
            Table,
            {"q.csv": "id,image,questions\n1,a,b\n1,c,d\n"},
            {},
            ":3: an earlier row with the same id has the image a; use one per id",
        ),
        (
            Table,
            {"q.csv": ANSWERS.replace("a.jpg", "7,a.jpg").replace("file", "id,file")},
            {"columns": COLUMNS},
            ":3: an earlier row with the same id has other inputs or labels; give every example its own id",
        ),
        (
            Table,
            {"q.csv": "image,questions,level\n1,a?---b?---c?,x---y\n"},
            {"columns": {"prompt": "level"}},
            ":2: 2 prompts for 3 questions; give one, or one per question",
        ),
        (
            Table,
            {"q.jsonl": '{"b": "10 20 30 40"}'},
            {"columns": {"box": "b"}},
            ":1: box must be x0 < x1 and y0 < y1 from 0 to 1, relative to the picture's size, not '10 20 30 40'",
        ),
        (
            Vqa,
            {"q.json": FEW, "c.json": captions((3, "a cat"))},
            CAPTIONS,
            ": no examples remain for the split 'train': 2 examples without a caption",
        ),
        (
            Vqa,
            {"q.json.gz": gzip.compress(questions(*[(1, "What?")] * 500).encode())[:-100]},
            {"files": {"train": "q.json"}, "caption_files": ()},
            ": cannot be unpacked (",
        ),
    ],
)
def test_what_cannot_be_used_is_a_line(tmp_path, kind, files, options, message):
    with pytest.raises(DataError) as error:
        config_of(tmp_path, kind, files, options).build().split("train")
    text = str(error.value)
    assert text.startswith(f"{tmp_path / next(iter(files))}{message}") and "\n" not in text


def test_keys_that_do_not_fit(tmp_path):
    for kind, keys, message in (
        (Table, {"columns": {"prompt": "x", "answers": "a"}}, "only questions to generate have a prompt; remove it"),
        (Vqa, {"release": "okvqa"}, "test_split: OK-VQA has no split 'test'; choose from: train, val"),
    ):
        with pytest.raises(ValidationError, match=message):
            kind(folder=tmp_path, **keys)


class Made(DatasetSuite):
    """The data set of files that are made for each test."""

    def make(self):
        """Write the files."""

    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        self.folder = tmp_path
        self.make()


class TestLabelledRows(Made):
    def make(self):
        published.pictures(self.folder / "images", "a.jpg", "b.jpg")
        for number, split in enumerate(("train", "val", "test")):
            (self.folder / f"{split}.csv").write_text(ANSWERS.replace(" ?", f" {number}"))

    def config(self):
        return Table(folder=self.folder, images="images", columns=COLUMNS)


class TestVqaAnswers(Made):
    def make(self):
        published.vqa(self.folder)

    def config(self):
        return Vqa(folder=self.folder, release="2.0", targets="answers", test_split="val", images="images")


class TestVqg(Made):
    def make(self):
        for image, split in enumerate(("train", "val", "test")):
            rows = f"image_id,image_url,questions\n{image},u,What?---Who?\n"
            (self.folder / f"bing_{split}_all.csv").write_text(rows)

    def config(self):
        return Vqg(release="bing", folder=self.folder)
