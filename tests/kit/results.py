"""Published results and references of the tasks, and checks of the files that read and write them."""

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


def assert_read_again(metric, values, path) -> None:
    """Written predictions are read again from a file at `path`."""
    examples = [
        Example(example_id, {}, facts={"item": example_id.split("-answer")[0].split("-rationale")[0]})
        for example_id in values
    ]
    path.write_text(metric.result_files().write(values, examples), encoding="utf-8")
    assert metric.result_files().read(path, examples) == values
