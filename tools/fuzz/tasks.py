"""Fuzzing of the tasks' published data sets: JSON, JSON lines, pickles, marked captions and XML. A naive reader
checks each."""

from __future__ import annotations

import json
import logging
import pickle
import re
import struct
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from kit import published

from mmgen.files import image_key

from . import mutations
from .harness import Surface

VOCABULARY = ("<unk>", "yes", "no", "2", "3", "dog", "a lion")
ANNOTATIONS = "v2_mscoco_train2014_annotations.json"
HARMFUL = [
    b"cos\nsystem\n(S'touch harm'\ntR.",
    b"\x8c\x02os\x94\x8c\x06system\x94\x93\x94",
    b"r\xff\xff\xff\x7f",
    b"\x96" + struct.pack("<Q", 1 << 40),
    b"\x8d" + struct.pack("<Q", 1 << 50),
    b"\x8e" + struct.pack("<Q", 1 << 50),
    b"\x95" + struct.pack("<Q", 1 << 40),
    b"Pid\n",
    b"]" * 20_000,
    b"(" * 20_000,
    b"I" + b"9" * 6000 + b"\n",
    b"\x8b" + struct.pack("<i", 1 << 30),
    b"F1e999\n",
    b"2",
    b"0",
]
HOSTILE_XML = [
    "<!DOCTYPE a [<!ENTITY b 'x'>]>",
    "<!DOCTYPE a SYSTEM 'http://example.org/a'>",
    "&b;",
    "&#0;",
    "&#x41;",
    "<!-- -->",
    "<![CDATA[1]]>",
    "<?x y?>",
    "<a>" * 500,
    "<object><name>9</name><bndbox/></object>",
    "1e400",
    "nan",
]
CLOSE = 1e-9
PLACED = (
    r":\d+|\[\d+\]|byte \d+|answer \d+|not a file of|no examples remain|cannot be read|cannot be unpacked|: boxes|"
    r"not a complete pickle|has no '|must be|the picture.s size|has no expressions|not usable JSON|is empty|"
    r"unpack it first|name it \."
)
NAMED = {"instances": r"instances\.json|refs\(unc\)\.p", "vqa_answers": r"annotations\.json|questions without answers"}


def surfaces() -> list[Surface]:
    """The surfaces of all files: how each is damaged and read, and what it contains."""
    return [
        _surface("vqa_answers", published.vqa, ANNOTATIONS, _spoilt_json, _vqa, _naive_vqa),
        _surface("answers_file", published.vqa, "answers.txt", _spoilt_lines, _vocabulary, _naive_vocabulary),
        _surface("nlvr2", published.nlvr2, "train.json", _spoilt_json_lines, _nlvr2, _naive_nlvr2),
        _surface("vcr", published.vcr, "train.jsonl", _spoilt_json_lines, _vcr, _naive_vcr),
        _surface(
            "vcr_boxes", published.vcr, "vcr1images/lsmdc_film/train_00.23@0.json", _spoilt_json, _boxes, _naive_boxes
        ),
        _surface("refs", published.refcoco, "refs(unc).p", _spoilt_pickle, _refcoco, _naive_refs),
        _surface("instances", published.refcoco, "instances.json", _spoilt_json, _refcoco, _naive_instances),
        _surface("flickr_captions", published.flickr30k, "Sentences/1000.txt", _spoilt_lines, _flickr, _naive_captions),
        _surface("flickr_boxes", published.flickr30k, "Annotations/1000.xml", _spoilt_xml, _flickr_boxes, _naive_xml),
    ]


def _surface(
    name: str, make: Callable, file: str, spoilt: Callable, read: Callable[[Path], Any], naive: Callable[[Path], Any]
) -> Surface:
    def prepare(folder: Path) -> None:
        logging.getLogger("mmgen").setLevel(logging.ERROR)
        make(folder)
        (folder / "answers.txt").write_text("".join(f"{answer}\n" for answer in VOCABULARY))

    def spoil(draw: Random, folder: Path, _) -> Path:
        path = folder / file
        data = path.read_bytes()
        if draw.random() < 0.35:
            path.write_bytes(mutations.bytes_(draw, data))
        else:
            spoilt(draw, path, data)
        return path

    def check(path: Path, content: Any, _) -> None:
        expected = naive(path)
        assert _alike(content, expected), f"{content} where the file says {expected}"

    return Surface(name, prepare, spoil, lambda path, _: read(path), check, PLACED, named=NAMED.get(name, ""))


def _alike(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float | int):
        return abs(left - right) < CLOSE
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(_alike(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_alike, left, right))
    return bool(left == right)


# --- ways to spoil


def _spoilt_json(draw: Random, path: Path, data: bytes) -> None:
    mutations.write(path, mutations.json_(draw, json.loads(data)))


def _spoilt_json_lines(draw: Random, path: Path, data: bytes) -> None:
    rows = data.decode().splitlines()
    place = draw.randrange(len(rows))
    rows[place] = mutations.json_(draw, json.loads(rows[place]))
    if draw.random() < 0.3:
        rows.insert(draw.randrange(len(rows) + 1), draw.choice(rows))
    mutations.write(path, draw.choice(("\n", "\n", "\r\n", "\n\n")).join(rows))


def _spoilt_lines(draw: Random, path: Path, data: bytes) -> None:
    odd = [
        "",
        " ",
        "[/EN#1/people a]",
        "[/EN#1/people ]",
        "[/EN#x/people a]",
        "[/EN#2/a/b c",
        "]",
        "[",
        "\x1b[2J",
        "x" * 3000,
    ]
    mutations.write(path, mutations.lines(draw, data.decode(), odd))


def _spoilt_pickle(draw: Random, path: Path, data: bytes) -> None:
    try:
        value = json.loads(mutations.json_(draw, published.refs(7)))
        data = pickle.dumps(value, draw.choice((0, 1, 2, 4)))
    except (ValueError, RecursionError):
        pass
    if draw.random() < 0.4:
        place = draw.randrange(len(data) + 1)
        data = data[:place] + draw.choice(HARMFUL) + data[place:]
    path.write_bytes(data)


def _spoilt_xml(draw: Random, path: Path, data: bytes) -> None:
    text = data.decode()
    if draw.random() < 0.5:
        text = mutations.lines(draw, text, HOSTILE_XML)
    else:
        place = draw.choice([0, *(match.start() for match in re.finditer(r"[<>]|\d+", text))])
        text = text[:place] + draw.choice(HOSTILE_XML) + text[place:]
    mutations.write(path, text)


# --- mmgen's readers


def _examples(dataset: Any) -> dict[str, Any]:
    return {
        example.id: (dict(example.inputs), example.targets, dict(example.labels)) for example in dataset.split("train")
    }


def _vqa(path: Path) -> Any:
    from mmgen_tasks import VqaAnswers

    return _examples(
        VqaAnswers(folder=path.parent, vocabulary="answers.txt", test_split="train", validation_split="").build()
    )


def _vocabulary(path: Path) -> Any:
    from mmgen_tasks.vqa.vocabulary import read_vocabulary

    return list(read_vocabulary(path))


def _nlvr2(path: Path) -> Any:
    from mmgen_tasks import Nlvr2

    examples = _examples(Nlvr2(folder=path.parent, test_split="train", validation_split="").build())
    return {
        key: (list(inputs["image"].values), inputs["statement"], labels)
        for key, (inputs, _, labels) in examples.items()
    }


def _vcr(path: Path) -> Any:
    from mmgen_tasks import Vcr

    dataset = Vcr(folder=path.parent, test_split="train", validation_split="", subtask="every").build()
    return {
        key: (inputs["image"], inputs["question"], labels["choices"], labels.get("choice"))
        for key, (inputs, _, labels) in _examples(dataset).items()
    }


def _boxes(path: Path) -> Any:
    from mmgen_tasks import Vcr

    dataset = Vcr(folder=path.parents[2], images="vcr1images", test_split="train", validation_split="").build()
    (picture,) = dataset.pictures()
    return list(picture.boxes), list(picture.region_names)


def _refcoco(path: Path) -> Any:
    from mmgen_tasks import Refcoco

    dataset = Refcoco(folder=path.parent, test_split="train", validation_split="").build()
    return {
        key: (inputs["image"], inputs["expression"], labels["box"])
        for key, (inputs, _, labels) in _examples(dataset).items()
    }


def _flickr(path: Path) -> Any:
    from mmgen_vl.flickr30k_files import read_sentences

    return [
        (text, [(text[first:end], chain, types) for first, end, chain, types in marked])
        for text, marked in read_sentences(path)
    ]


def _flickr_boxes(path: Path) -> Any:
    from mmgen_vl.flickr30k_files import read_annotation

    return read_annotation(path).around()


# --- the same, naively


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8-sig")


def _plain(text: str) -> str:
    assert isinstance(text, str)
    return " ".join(text.split())


def _id_text(value: Any) -> str:
    assert isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
    return _plain(str(value))


def _naive_vqa(path: Path) -> Any:
    from mmgen_vl.answers import normalise

    known, common = {}, {}
    for row in json.loads(_text(path))["annotations"]:
        key = _id_text(row["question_id"])
        assert key not in known
        known[key] = [re.sub(r"[\n\t]", " ", answer["answer"]).strip() for answer in row["answers"]]  # as officially
        first = row.get("multiple_choice_answer")
        common[key] = max(known[key], key=known[key].count) if first is None else _plain(first)
    examples = {}
    for row in published.vqa_rows("train")[0]:
        key = str(row["question_id"])
        if key in known:
            counts = Counter(map(normalise, known[key]))
            spelt = {normalise(answer): answer for answer in VOCABULARY[1:]}
            weights = {spelt[answer]: min(1, 0.3 * n) for answer, n in counts.items() if answer in spelt}
            inputs = {"image": str(row["image_id"]), "question": _plain(row["question"])}
            inputs |= {"answer": common[key]} if common[key] else {}
            examples[key] = (inputs, known[key], {"answers": weights})
    return examples


def _naive_vocabulary(path: Path) -> Any:
    lines = [_plain(line) for line in _text(path).rstrip().split("\n")]
    assert all(lines) and len(set(lines)) == len(lines)
    return lines


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in _text(path).split("\n") if line.strip()]


def _naive_nlvr2(path: Path) -> Any:
    examples: dict[str, Any] = {}
    for row in _rows(path):
        key = _plain(row["identifier"])
        assert key not in examples
        pair = key.rpartition("-")[0]
        label = row.get("label")
        truth = {} if label is None else {"truth": label if isinstance(label, bool) else label.lower() == "true"}
        if _plain(row["sentence"]):
            examples[key] = ([f"{pair}-img0", f"{pair}-img1"], _plain(row["sentence"]), truth)
    return examples


def _naive_vcr(path: Path) -> Any:
    names = ["Casey", "Riley", "Jessie", "Jackie", "Avery", "Jaime", "Peyton", "Kerry", "Jody", "Kendall"]
    examples = {}
    for row in _rows(path):
        waiting = iter(names * 1000)
        called = [next(waiting) if _plain(kind) == "person" else _plain(kind) for kind in row["objects"]]

        def join_words(words: list, called: list = called) -> str:
            text = ""
            for word in words:
                plain = " and ".join(called[n] for n in word) if isinstance(word, list) else _plain(word)
                attached = not plain or not isinstance(word, list) and plain[0] in ".,?!;:'"
                text += plain if attached or not text else f" {plain}"
            return text

        row_key, image, question = (
            _plain(row["annot_id"]),
            image_key(_plain(row["img_fn"])),
            join_words(row["question"]),
        )
        answers, rationales = (tuple(map(join_words, row[key])) for key in ("answer_choices", "rationale_choices"))
        right, why = row.get("answer_label"), row.get("rationale_label")
        examples[f"{row_key}-answer"] = (image, question, answers, right)
        if right is not None:
            examples[f"{row_key}-rationale"] = (image, f"{question} {answers[right]}", rationales, why)
        for number, answer in enumerate(answers):
            examples[f"{row_key}-rationale-{number}"] = (image, f"{question} {answer}", rationales, None)
    return examples


def _naive_boxes(path: Path) -> Any:
    table = json.loads(_text(path))
    boxes = [_cut([value for value in box[:4]], table["width"], table["height"]) for box in table["boxes"]]
    assert all(boxes)
    return [*boxes, (0, 0, 1, 1)], [*map(_plain, table["names"]), "the whole picture"]


def _cut(box: list, width: float, height: float) -> tuple | None:
    x0, y0, x1, y1 = (min(max(edge / size, 0), 1) for edge, size in zip(box, (width, height) * 2, strict=True))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def _expressions(refs: list, table: dict) -> Any:
    things = {_id_text(row["id"]): row for row in table["annotations"]}
    images = {_id_text(row["id"]): row for row in table["images"]}
    examples = {}
    for ref in refs:
        if _plain(ref["split"]) == "train":
            thing = things[_id_text(ref["ann_id"])]
            row_key = _id_text(thing["image_id"])
            image, (x, y, width, height) = images[row_key], thing["bbox"]
            box = _cut([x, y, x + width, y + height], image["width"], image["height"])
            key = image_key(_plain(image["file_name"])) if image.get("file_name") else row_key
            for sentence in ref["sentences"]:
                if box and _plain(sentence["sent"]):
                    assert _id_text(sentence["sent_id"]) not in examples
                    examples[_id_text(sentence["sent_id"])] = (key, _plain(sentence["sent"]), box)
    return examples


def _naive_refs(path: Path) -> Any:
    """A pickle that mmgen accepts contains no classes, so the standard reader is safe."""
    return _expressions(pickle.loads(path.read_bytes(), encoding="utf-8"), published.instances())


def _naive_instances(path: Path) -> Any:
    return _expressions(published.refs(7), json.loads(_text(path)))


def _naive_captions(path: Path) -> Any:
    captions = []
    mark = r"\[/EN#(\d+)/([^\s\[\]]+) ([^\[\]]*)\]"
    for line in filter(None, map(_plain, _text(path).split("\n"))):
        phrases = [(_plain(words), chain, kinds.split("/")) for chain, kinds, words in re.findall(mark, line)]
        assert all(words for words, _, _ in phrases) and all(all(kinds) for _, _, kinds in phrases)
        text = re.sub(mark, lambda match: match[3].strip(), line)
        assert "[/EN#" not in text
        captions.append((text, phrases))
    return captions


def _naive_xml(path: Path) -> Any:
    root = ElementTree.fromstring(path.read_bytes())
    boxes: dict[str, list] = {}
    for thing in root.findall("object"):
        for box in thing.findall("bndbox")[-1:]:
            edges = [float(box.findall(name)[-1].text.strip()) for name in ("xmin", "ymin", "xmax", "ymax")]
            for name in thing.findall("name"):
                boxes.setdefault((name.text or "").strip(), []).append(edges)
    width, height = (float(root.findall(f"size/{name}")[-1].text) for name in ("width", "height"))
    boxes_by_key = {}
    for name, several in boxes.items():
        low, high = ([pick(box[n] for box in several) for n in range(4)] for pick in (min, max))
        boxes_by_key[name] = _cut([edge - 1 for edge in (*low[:2], *high[2:])], width, height)
    return boxes_by_key
