"""The five tasks on small drawn scenes: data sets with labels of every kind, and a recipe that trains on them."""

import json
from typing import Literal

from mmgen_scenes import Scenes

import mmgen
from mmgen.examples import All, Example
from mmgen.parts import Dataset
from mmgen.registry import Part, Registry, Source, installed

SCENES = 6
INPUTS = {
    "answers": ("image", "question"),
    "pairs": ("image", "statement"),
    "choices": ("image", "question", "choice"),
    "expressions": ("image", "expression"),
    "phrases": ("image", "caption"),
}
OBJECTIVES = {
    "answers": "answer_classes",
    "pairs": "true_or_false",
    "choices": "multiple_choice",
    "expressions": "region_choice",
    "phrases": "phrase_regions",
}


LABELS = {
    "answers": ("answers",),
    "pairs": ("truth",),
    "choices": ("choices", "choice"),
    "expressions": ("box",),
    "phrases": ("phrases",),
}


def task_config(task):
    """The config of one of the tasks about drawn scenes."""

    class Asked(mmgen.DatasetConfig):
        """A data set of drawn scenes."""

        type: Literal[f"asked_{task}"] = f"asked_{task}"
        labels = LABELS[task]

        def build(self):
            return TaskDataset(task)

    return Asked


class TaskDataset(Dataset):
    def __init__(self, task):
        self.task, self.scenes = task, Scenes(train_size=1, val_size=1, test_size=SCENES).build()

    def splits(self):
        return ("train", "test")

    def split(self, name):
        return [MAKE[self.task](f"{name}-{i}", i, self.seen(i)) for i in range(SCENES)]

    def seen(self, i):
        """Two scenes, as their examples."""
        scenes = self.scenes.split("test")
        return scenes[i], scenes[(i + 1) % SCENES]

    def vocabularies(self):
        return {"answers": ("red", "blue", "green", "yes", "no"), "truth": ("False", "True")}

    def describe(self):
        return {"name": f"drawn {self.task}"}

    def pictures(self):
        return self.scenes.pictures()


def thing(scene, place=0):
    return scene.facts["things"][place]


def answers(id_, i, seen):
    given_answers = ("red",) * 7 + ("dark <red>",) * 3
    return Example(
        id_,
        {"image": seen[0].id, "question": f"what color is the {thing(seen[0])['kind']} ?"},
        given_answers if i else (),
        {"question_type": "what color", "answer_type": "other"},
        {"answers": {"red": 1.0, "blue": 0.9}},
    )


def pairs(id_, i, seen):
    keys, labels = All(tuple(scene.id for scene in seen)), {"truth": bool(i % 2)}
    statement = f"both pictures have a {thing(seen[0])['kind']}"
    return Example(id_, {"image": keys, "statement": statement}, (), {"group": f"g{i // 2}"}, labels)


def choices(id_, i, seen):
    texts = ("it is near the tree", "it flies over the house , and nobody has seen it do so before", "it is red", "no")
    inputs = {"image": seen[0].id, "question": "why is person1 here ?", "question_mentions": All(((7, 14, (1,)),))}
    mentions = (((0, 2, (0,)), (15, 19, (1, 0))), (), (), ())
    labels = {"choices": texts, "choice_mentions": mentions, "choice": i % 4}
    return Example(id_, inputs, (), {"asks": "answer", "item": id_}, labels)


def expressions(id_, i, seen):
    box = tuple(thing(seen[0])["box"])
    return Example(id_, {"image": seen[0].id, "expression": "left"}, (), {}, {"box": box})


def phrases(id_, i, seen):
    caption, box = f"there is a {thing(seen[0])['kind']} on the grass", tuple(thing(seen[0])["box"])
    span = (9, caption.index(" on the grass"), box)
    return Example(id_, {"image": seen[0].id, "caption": caption}, (), {"type": "other"}, {"phrases": (span,)})


MAKE = {"answers": answers, "pairs": pairs, "choices": choices, "expressions": expressions, "phrases": phrases}


def recipe_text(blind=True):
    """Five steps, each with its own data; with `blind`, three more without pictures."""
    inputs = "\n".join(
        f'[inputs.{name}]\ntype = "text"\n'
        + {"question": "append_mask = true\n", "choice": 'fields = ["choice"]\n'}.get(name, "")
        for name in ("question", "statement", "choice", "expression", "caption")
    )
    steps = ""
    for task, read in INPUTS.items():
        for step in [task, *([f"{task}_blind"] if blind and task in ("answers", "choices", "expressions") else [])]:
            steps += f'[steps.{step}]\ninputs = {json.dumps(read)}\ntrain = ["backbone"]\nobjectives = ["{task}"]\n'
            steps += f'evaluate = "own"\ndata = {{ type = "asked_{task}" }}\n'
    objectives = "".join(f'[objectives.{task}]\ntype = "{kind}"\n' for task, kind in OBJECTIVES.items())
    metrics = ("vqa_accuracy", "pair_accuracy", "choice_accuracy", "box_accuracy", "phrase_recall")
    return f"""
name = "answers"
[backbone]
type = "bert"
num_hidden_layers = 1
hidden_size = 32
num_attention_heads = 2
[training]
epochs = 1
batch_size = 8
[inputs.image]
type = "regions"
extractor = {{ type = "roi", model = "test_resnet", image_size = 64 }}
{inputs}
[generator]
type = "masked"
{objectives}{steps}
[data]
type = "scenes"
train_size = 4
val_size = 1
test_size = 2
""" + "".join(f'[metrics.{name}]\ntype = "{name}"\n' for name in metrics)


def registry():
    source = Source("asked", "tests", "0")
    return Registry(
        (*installed().parts, *(Part("dataset", f"asked_{task}", task_config(task), source) for task in LABELS)), ()
    )
