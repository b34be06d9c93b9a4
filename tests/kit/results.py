"""Published results and references of the tasks, and checks of the files that read and write them."""

import json
import re

import pytest
from click.testing import CliRunner

from mmgen.cli import main
from mmgen.errors import DataError
from mmgen.examples import Example

PEOPLE = {
    "1": ("yes/no", ("yes",) * 10),
    "2": ("other", ("red",) * 6 + ("dark red",) * 4),
    "3": ("number", ("2",) * 10),
}

ANNOTATIONS = {
    "annotations": [
        {
            "question_id": int(question_id),
            "image_id": 9,
            "question_type": "what",
            "answer_type": kind,
            "answers": [{"answer": answer, "answer_id": place} for place, answer in enumerate(answers)],
        }
        for question_id, (kind, answers) in PEOPLE.items()
    ]
}

PAIRS = "".join(
    json.dumps({"identifier": f"dev-{set_}-{pair}-0", "sentence": "two dogs", "label": str(pair == 0)}) + "\n"
    for set_ in range(3)
    for pair in range(2)
)

ITEMS = [
    {
        "annot_id": f"val-{n}",
        "img_fn": "film/still.jpg",
        "objects": ["person"],
        "question": ["why", "?"],
        "answer_choices": [["it", "is"]] * 4,
        "rationale_choices": [["so"]] * 4,
        "answer_label": n,
        "rationale_label": 3 - n,
    }
    for n in range(3)
]

BOXES = [{"id": n, "box": [0, 0, 50, 40 + n], "type": "people"} for n in range(3)]


def vcr(best_choices):
    """VCR's file: per item five groups, each with one likeliest choice."""
    groups = ["answer", *(f"rationale_conditioned_on_a{k}" for k in range(4))]
    lines = [",".join(["annot_id", *(f"{group}_{choice}" for group in groups for choice in range(4))])]
    for item, best_by_group in best_choices.items():
        lines.append(
            ",".join([item, *("0.7" if choice == best else "0.1" for best in best_by_group for choice in range(4))])
        )
    return "\n".join(lines) + "\n"


VCR = vcr({"val-0": (0, 3, 0, 0, 0), "val-1": (1, 0, 2, 0, 0), "val-2": (0, 0, 0, 1, 0)})


def score(*arguments):
    return CliRunner().invoke(main, ["score", *map(str, arguments)])


def cells(output):
    """First cell of every row of the table -> the remaining cells."""
    rows = [re.split(r" *\| *", line.strip("| ")) for line in output.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows}


def assert_refused(read, words: str) -> None:
    """`read` raises one DataError with these words."""
    with pytest.raises(DataError) as caught:
        read()
    assert words in str(caught.value)


def assert_read_again(metric, values, path) -> None:
    """Written predictions are read again from a file at `path`."""
    examples = [
        Example(example_id, {}, facts={"item": example_id.split("-answer")[0].split("-rationale")[0]})
        for example_id in values
    ]
    path.write_text(metric.result_files().write(values, examples), encoding="utf-8")
    assert metric.result_files().read(path, examples) == values
