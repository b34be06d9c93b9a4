"""A researcher: tables, seeds, comparisons, other models, rivals, and results for a paper."""

from .steps import FEW, TINY, Code, File, Job, Shell

RECIPES, SCORING, RIVALS = "docs/recipes.md", "docs/scoring.md", "docs/rivals.md"
ONE_ROW_MORE = """
recipe = open("first.toml").read()
open("first.toml", "w").write(recipe + '''
[steps.image]
inputs = ["image"]
train = ["image", "backbone"]
start = "caption"
''')
"""

JOBS = (
    Job(
        "the paper's rows on drawn scenes",
        (
            Shell("mmgen init", "docs/index.md"),
            Shell("mmgen run recipes/bertgen_vqa.toml", "docs/index.md"),
            Shell("mmgen probe runs/bertgen_vqa/sample/seed-0", "README.md"),
        ),
        small=(
            *TINY,
            "steps.image_frozen.training.epochs=1",
            "steps.image.training.epochs=1",
            "steps.both.training.epochs=1",
            "metrics.overlap.meteor=false",
            "metrics.overlap.tokenizer=own",
        ),
    ),
    Job(
        "a recipe of one's own, three seeds",
        (
            File("first.toml", "docs/index.md"),
            Shell("mmgen check first.toml", "docs/index.md"),
            Shell("mmgen run first.toml --seeds 3", RECIPES),
        ),
        small=TINY,
    ),
    Job(
        "another recipe beside it",
        (
            File("second.toml", RECIPES),
            Shell("mmgen show second.toml --profile long --set training.batch_size=8", RECIPES),
            Shell("mmgen run second.toml --profile long", RECIPES),
            Shell("mmgen compare runs/first/default runs/second/long", RECIPES),
        ),
        small=TINY,
        needs=("a recipe of one's own, three seeds",),
        detours=("docs/recipes.md compared a run of second.toml that no command of the page had made",),
    ),
    Job(
        "another metric, another search",
        (
            Shell(
                "mmgen score runs/first/default/seed-0 --metric diversity --metric captioneval "
                "--set captioneval.meteor=false",
                SCORING,
            ),
            Shell("mmgen write runs/first/default/seed-0 --set decoding.num_beams=4", RECIPES),
        ),
        needs=("a recipe of one's own, three seeds",),
    ),
    Job(
        "one row more in a finished table",
        (Code(content=ONE_ROW_MORE), Shell("mmgen run first.toml --seeds 3", RECIPES)),
        small=TINY,
        needs=("a recipe of one's own, three seeds",),
        detours=(
            "a finished run refused a recipe with one more step: every row had to be trained again, under another name",
        ),
    ),
    Job(
        "pretraining and questions with BERT, VisualBERT and VL-BERT",
        (
            Shell(
                "for start in bert visualbert vlbert; do mmgen run recipes/three_initialisations.toml --profile $start "
                "--seeds 3; done",
                "recipes/three_initialisations.toml",
                {"--seeds 3": "--step question_both"},
            ),
        ),
        small=(
            *TINY,
            *(
                f"steps.{step}.data.{size}"
                for step in ("expressions", "answers")
                for size in ("train_size=32", "val_size=4", "test_size=8", "image_size=64")
            ),
            "steps.pretrain.training.epochs=1",
            "steps.question_both.training.epochs=1",
            "metrics.overlap.tokenizer=own",
        ),
        needs=("the paper's rows on drawn scenes",),
    ),
    Job(
        "ways to write, side by side",
        (
            Shell(
                "for way in left_to_right causal any_order blocks; "
                "do mmgen run recipes/writing.toml --profile $way; done",
                "recipes/writing.toml",
            ),
            Shell("mmgen write runs/writing/any_order/seed-0 --set decoding.steps=4", "docs/any_order.md"),
        ),
        small=TINY,
        needs=("the paper's rows on drawn scenes",),
        detours=("docs/any_order.md set decoding.steps for runs/first, whose generator has no steps",),
    ),
    Job(
        "the systems of the paper's tables",
        (
            Shell("mmgen run recipes/rivals.toml --seeds 3", RIVALS),
            Shell(
                "mmgen write runs/rivals/sample/seed-0 --step max --name sample --set decoding.do_sample=true", RIVALS
            ),
            Shell("mmgen compare runs/bertgen_vqa/sample runs/rivals/sample", RIVALS),
        ),
        small=(*FEW, "backbone.hidden_size=32", "metrics.overlap.meteor=false", "metrics.overlap.tokenizer=own"),
        needs=("the paper's rows on drawn scenes",),
    ),
    Job(
        "tables for a paper",
        (
            Shell("mmgen compare runs/first/default runs/second/long --out table.tex", RECIPES),
            Shell("mmgen report runs/first/default"),
            Shell("mmgen judge make runs/bertgen_vqa/sample/seed-0", "README.md", {"judge make": "judge make --n 5"}),
        ),
        needs=("another recipe beside it", "the paper's rows on drawn scenes"),
        detours=("tables and scores left mmgen as Markdown only: nothing for LaTeX, nothing for a spreadsheet",),
    ),
)
