"""A researcher: tables, seeds, comparisons, other models, rivals, and results for a paper."""

from .steps import FEW, ROOT, TINY, Code, File, Job, Shell

README, RECIPES, SCORING, RIVALS = "README.md", "docs/recipes.md", "docs/scoring.md", "docs/rivals.md"
TASKS, JUDGING, PROBES, DATA = "docs/tasks.md", "docs/judging.md", "docs/probes.md", "docs/data.md"
VISUALBERT, VLBERT, PERFORMANCE = "docs/visualbert.md", "docs/vlbert.md", "docs/performance.md"
PAPER = "the paper's rows on drawn scenes"
OWN = "a recipe of one's own, three seeds"
EVERY_TASK = "every task, with the picture and without"
STARTED = "python rater.py & until test -s port; do sleep 0.2; done"
SMALLEST = {"--rounds 3": "--rounds 1 --layers 1 --width 32 --words 1000"}
ONE_ROW_MORE = """
recipe = open("first.toml").read()
open("first.toml", "w").write(recipe + '''
[steps.image]
inputs = ["image"]
train = ["image", "backbone"]
start = "caption"
''')
"""
RATER = """
import http.server
import json


class Rater(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [{"message": {"content": "4"}}]}).encode())


server = http.server.HTTPServer(("127.0.0.1", 0), Rater)
open("port", "w").write(str(server.server_port))
for line in open("sheet.requests.jsonl"):
    if "key" in json.loads(line):
        server.handle_request()
"""
CLIP = """
from mmgen_encoders.vocabulary import train_tokenizer
from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
tokenizer = train_tokenizer(["a photo depicts a red ball", "what is it ?"] * 9, 200)
text = {**sizes, "vocab_size": len(tokenizer), "eos_token_id": tokenizer.sep_token_id}
vision = {**sizes, "image_size": 32, "patch_size": 16}
CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)).save_pretrained("clip")
tokenizer.save_pretrained("clip")
CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained("clip")
"""
CAPTIONS = "".join(
    f'{{"id": "{number}", "caption": "a {color} ball near a dog", "questions": ["what is there?"]}}\n'
    for number, color in enumerate(("red", "blue", "green", "white"))
)
OVERLAP = ("metrics.overlap.meteor=false", "metrics.overlap.tokenizer=own")
SIZES = ("data.train_size=16", "data.val_size=4", "data.test_size=8", "data.image_size=64")

ROWS = ("", "_not_pretrained", "_text_alone", "_no_matching")


def smaller(*steps: str) -> tuple[str, ...]:
    """Settings for steps that have epochs of their own."""
    return tuple(f"steps.{step}.training.epochs=1" for step in steps)


def sizes(*steps: str) -> tuple[str, ...]:
    """Settings for steps that have data of their own."""
    return tuple(f"steps.{step}.{size}" for step in steps for size in SIZES)


MIXED = (
    '[{type="scenes", train_size=16, val_size=4, image_size=64, objectives=["words", "regions"]}, '
    '{type="scene_stories", train_size=16, val_size=4, inputs=["caption"], objectives=["words_alone"]}]'
)

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
            Shell("mmgen report RUN", PROBES, {"RUN": "runs/first/default"}),
            Shell("mmgen judge make runs/bertgen_vqa/sample/seed-0", "README.md", {"judge make": "judge make --n 5"}),
        ),
        needs=("another recipe beside it", "the paper's rows on drawn scenes"),
        detours=("tables and scores left mmgen as Markdown only: nothing for LaTeX, nothing for a spreadsheet",),
    ),
    Job(
        EVERY_TASK,
        (
            Shell(
                "mmgen run recipes/tasks.toml",
                TASKS,
                small=(
                    *sizes("expressions", "expressions_blind", "truth", "truth_blind", "choices", "choices_blind"),
                    *sizes("phrases", "phrases_blind"),
                    *smaller("expressions_blind", "answers", "answers_written", "answers_blind"),
                    *smaller("truth", "truth_blind", "choices", "choices_blind"),
                ),
            ),
            Shell(
                "mmgen predict runs/tasks/default/seed-0 --as vqa --split test --step answers --out results.json", TASKS
            ),
            Shell(
                "mmgen score results.json --references runs/tasks/default/seed-0 --step answers --metric vqa_accuracy",
                TASKS,
            ),
            Shell("mmgen show RECIPE", README, {"RECIPE": "recipes/tasks.toml"}),
        ),
        small=TINY,
        detours=(
            "docs/tasks.md wrote result files for runs of downloaded data only, and did not say that without --step a "
            "row without pictures answers",
        ),
    ),
    Job(
        "the tasks in published files",
        (
            Shell(
                "mmgen data export recipes/tasks.toml vqa --as vqa2 --step answers",
                TASKS,
                {"answers": "answers --set data.train_size=8 --set data.val_size=4 --set data.test_size=8"},
            ),
            Shell("mmgen features import vqa/regions.tsv regions.h5 --type bottom_up_tsv", TASKS),
            Shell("mmgen features info data/vqa1/regions.h5", DATA, {"data/vqa1/": ""}),
            Shell(
                "mmgen features extract photos/ data/photos/regions.h5 --type detector",
                DATA,
                {"photos/ ": "vqa/images ", "detector": "timm_grid"},
            ),
            Shell(
                'mmgen predict runs/tasks/default/seed-0 photo.jpg --step choices --input question="what is the dog '
                'looking at?" \\\n  --input choices=\'["the dog is looking at the tree.", "the dog is looking at the '
                "ball.\"]'",
                TASKS,
                {"photo.jpg": "vqa/images/test-00000.png"},
            ),
            Shell(
                "mmgen score results.json --references v2_mscoco_val2014_annotations.json --metric vqa_accuracy",
                SCORING,
                {"v2_mscoco_val2014": "vqa/v2_mscoco_test2015"},
            ),
        ),
        needs=(EVERY_TASK,),
        detours=(
            "docs/tasks.md exported a recipe that is not where it said",
            "mmgen predict --as ignored a setting of the data if the step has its own, or said that its key is unknown",
        ),
    ),
    Job(
        "pictures for captions",
        (
            Shell("mmgen run recipes/retrieval.toml", TASKS),
            Shell(
                'mmgen predict RUN photos/ --input caption="a red ball near a dog"',
                TASKS,
                {"RUN photos/": "runs/retrieval/default/seed-0 vqa/images"},
            ),
            *(
                Shell(
                    'mmgen find RUN photos/ --input caption="a red ball near a dog" --index photos.vectors',
                    TASKS,
                    {"RUN photos/": "runs/retrieval/default/seed-0 vqa/images", "red": color},
                )
                for color in ("red", "blue")
            ),
        ),
        small=TINY,
        needs=("the tasks in published files",),
    ),
    Job(
        "from simple to all: choices, statements, matching",
        (
            Shell(
                "mmgen run recipes/choices.toml",
                TASKS,
                small=(*sizes("color", "places", "rationales"), *smaller("color"), *SIZES),
            ),
            Shell(
                "mmgen run recipes/statements.toml",
                TASKS,
                small=(
                    *sizes("expressions", "one", "few", "all"),
                    *smaller("assign", "one", "few", "all"),
                    *(f"steps.{step}.data.pairings=4" for step in ("one", "few", "all")),
                ),
            ),
            Shell(
                "mmgen run recipes/matching.toml",
                "recipes/matching.toml",
                small=(*sizes("expressions", "truth"), *smaller("expressions", "fits", "matching", "truth")),
            ),
            Shell("mmgen probe runs/matching/default/seed-0", "recipes/matching.toml"),
        ),
        small=TINY,
    ),
    Job(
        "VisualBERT and VL-BERT, and their ablations",
        (
            Shell(
                "mmgen run recipes/visualbert.toml",
                VISUALBERT,
                small=(
                    *sizes("expressions", "answers", "truth", "choices", "phrases"),
                    *smaller("coco", "answers", "choices", "questions_blind"),
                ),
            ),
            Shell(
                "mmgen run recipes/vlbert.toml",
                VLBERT,
                {"vlbert.toml": "vlbert.toml --step choices"},
                small=(
                    *sizes("expressions", "answers", "choices"),
                    *smaller("pretrain", "choices"),
                    f"steps.pretrain.data={MIXED}",
                ),
            ),
            Shell(
                "mmgen run recipes/visualbert_ablations.toml",
                "recipes/visualbert_ablations.toml",
                {"ablations.toml": "ablations.toml --step truth_text_alone"},
                small=(
                    *sizes("regions", *(f"{task}{row}" for task in ("answers", "truth") for row in ROWS)),
                    *smaller("regions", "pretrain_text", "truth_text_alone"),
                ),
            ),
            Shell(
                "mmgen run recipes/vlbert_ablations.toml",
                "recipes/vlbert_ablations.toml",
                {"ablations.toml": "ablations.toml --step answers_words"},
                small=(
                    *sizes("words", "regions", "matching"),
                    *sizes(*(f"expressions_{row}" for row in ("none", "words", "regions", "matching", "text"))),
                    *smaller("words", "answers_words"),
                    f"steps.text.data={MIXED}",
                ),
            ),
        ),
        small=TINY,
        detours=("docs/recipes.md did not say that a run of one step makes the features of all",),
    ),
    Job(
        "can the questions be answered, and do they serve their purpose?",
        (
            Shell(
                "mmgen run recipes/answerable.toml",
                SCORING,
                small=(*sizes("expressions", "answers"), *smaller("answers", "blind", "both")),
            ),
            Shell(
                "mmgen score runs/first/default/seed-0 --metric answerable --set "
                "answerable.answerer=runs/tasks/default/seed-0 --set answerable.step=answers",
                SCORING,
            ),
            Code(content=CLIP),
            Shell(
                "mmgen score runs/first/default/seed-0 --metric clip_score --set "
                "clip_score.model=openai/clip-vit-base-patch32",
                SCORING,
                {"openai/clip-vit-base-patch32": "clip"},
            ),
            Shell(
                "mmgen run recipes/conditions.toml",
                "docs/prompts.md",
                small=(*sizes("things", "unprompted"), *smaller("things", "prompted")),
            ),
            Shell(
                "mmgen run recipes/learning_along.toml --profile stage",
                "recipes/learning_along.toml",
            ),
        ),
        small=TINY,
        needs=(OWN, EVERY_TASK),
        detours=(
            "a run whose only step is not scored said that no step is finished",
            "docs/scoring.md had no command of clip_score",
        ),
    ),
    Job(
        "other encoders, and a grid",
        (
            *(
                Shell(
                    f"mmgen run recipes/bertgen_vqa_{name}.toml",
                    page,
                    {".toml": ".toml --step image_frozen"},
                    small=(*smaller("image_frozen"), *OVERLAP),
                )
                for name, page in (
                    ("roberta", "docs/encoders.md"),
                    ("modernbert", "docs/encoders.md"),
                    ("grid", "docs/pictures.md"),
                    ("modernvbert", "docs/pictures.md"),
                )
            ),
            Shell("mmgen compare runs/bertgen_vqa/sample runs/bertgen_vqa_grid/sample", README),
            Shell("mmgen check RECIPE", README, {"RECIPE": "recipes/*.toml"}),
        ),
        small=TINY,
        needs=(PAPER,),
        detours=(
            "README.md compared a run with one of the grid that no command of a page had made",
            "no page had the commands of RoBERTa, ModernBERT and the grid",
        ),
    ),
    Job(
        "drawn scenes in the files of VQG_COCO, and the recipes for it",
        (
            Shell(
                "mmgen data export recipes/bertgen_vqa.toml data/vqg_coco --as vqg",
                DATA,
                {"--as vqg": "--as vqg --set data.train_size=24 --set data.val_size=4 --set data.test_size=8"},
            ),
            Shell(
                "mmgen features import data/vqg_coco/regions.tsv data/vqg_coco/regions.h5 --type bottom_up_tsv", DATA
            ),
            Shell("mmgen export runs/bertgen_vqa/sample/seed-0 weights --step caption", DATA),
            Shell(
                "mmgen run recipes/bertgen_vqg_coco.toml --profile small --set backbone.weights=weights/backbone",
                DATA,
                {"small ": "small --step image_frozen "},
            ),
            Shell(
                "mmgen run recipes/bertgen_vqg_coco_warm.toml",
                "recipes/bertgen_vqg_coco_warm.toml",
                {".toml": ".toml --step caption --set backbone.weights=weights/backbone"},
                small=(
                    *smaller("okvqa", "seeing"),
                    "steps.okvqa.data.type=vqg",
                    "steps.okvqa.data.folder=data/vqg_coco",
                ),
            ),
            File("data/coco/train.jsonl", content=CAPTIONS),
            Shell(
                "mmgen run recipes/bertgen_vqg_coco_words.toml",
                "recipes/bertgen_vqg_coco_words.toml",
                {".toml": ".toml --step caption --set backbone.weights=weights/backbone"},
                small=smaller("words"),
            ),
            Shell("mmgen run recipes/rivals_vqg_coco.toml", "recipes/rivals_vqg_coco.toml"),
            Shell(
                "mmgen run recipes/writing_vqg_coco.toml",
                "recipes/writing_vqg_coco.toml",
                {".toml": ".toml --set backbone.weights=weights/backbone"},
            ),
        ),
        small=("training.epochs=1", *OVERLAP),
        needs=(PAPER,),
        detours=("no page said how to try a recipe for published files without these files",),
    ),
    Job(
        "a program as a judge",
        (
            Shell(
                "mmgen judge make runs/bertgen_vqa/sample/seed-0 --n 50 --out judge.html",
                JUDGING,
                {"50": "3", "--out judge.html": "--out sheet.html"},
            ),
            Shell("mmgen judge requests judge.html", JUDGING, {"judge.html": "sheet.html"}),
            File("rater.py", content=RATER),
            Shell(
                "python examples/judge_openai.py judge.requests.jsonl ratings.jsonl http://localhost:8000/v1 MODEL",
                JUDGING,
                {
                    "python examples": f"{STARTED}; python {ROOT}/examples",
                    "judge.req": "sheet.req",
                    "localhost:8000": "127.0.0.1:$(cat port)",
                },
            ),
            Shell("mmgen judge fill judge.requests.jsonl ratings.jsonl", JUDGING, {"judge.req": "sheet.req"}),
            Shell(
                "mmgen judge score judge.key.json first-judge.json second-judge.json ratings.sheet.json",
                JUDGING,
                {"judge.key": "sheet.key", "first-judge.json second-judge.json ": ""},
            ),
        ),
        needs=(PAPER,),
    ),
    Job(
        "inside the model, and how fast it is",
        (
            Shell(
                "mmgen probe runs/bertgen_vqa/sample/seed-0 --probe attention --step both --set attention.layer=1 "
                "--set attention.head=11",
                PROBES,
                {"head=11": "head=2"},
            ),
            Shell(
                "mmgen compare runs/first/default runs/second/long --out table.tex",
                RECIPES,
                {"table.tex": "scores.csv"},
            ),
            Shell("mmgen schema > recipe.schema.json", RECIPES),
            Shell("mmgen bench train  --threads 1 --batch 8 --rounds 3 --markdown", PERFORMANCE, SMALLEST),
            Shell(
                "mmgen bench decode --threads 1 --batch 32 --rounds 2 --without naive --markdown",
                PERFORMANCE,
                {"--batch 32 --rounds 2": "--batch 4 --rounds 1 --layers 1 --width 32 --words 1000"},
            ),
            Shell(
                "mmgen bench scaling --threads 1 --layers 4 --width 256 --words 8000 --rounds 3 --svg docs/scaling.svg",
                PERFORMANCE,
                {
                    "--layers 4 --width 256 --words 8000 --rounds 3": "--layers 1 --width 32 --words 1000 --rounds 1",
                    "docs/": "",
                },
            ),
        ),
        needs=(PAPER, "another recipe beside it"),
        detours=("mmgen bench wrote 1 layers and 1 rounds",),
    ),
)
