"""An engineer: photos and captions to a model, and the model in Python, on the command line and behind a URL."""

from .steps import ROOT as CHECKOUT
from .steps import TINY, Code, File, Job, Shell

RUN = "runs/first/default/seed-0"
INDEX, API, PROMPTS, EXPORT = "docs/index.md", "docs/api.md", "docs/prompts.md", "docs/export.md"
RECIPES, SERVING, SCALE, DATA = (f"docs/{page}.md" for page in ("recipes", "serving", "scale", "data"))
FIRST = "a recipe of one's own, three seeds"
SAMPLE = "the paper's rows on drawn scenes"
PHOTOS = "own photos and captions to a model"
SMALL_DATA = """\
extends = "recipes/bertgen_vqa.toml"
name = "small_data"
[profiles.sample.data]
train_size = 16
val_size = 4
test_size = 4
image_size = 64
[metrics.overlap]
meteor = false
tokenizer = "own"
"""
SIDE = """\
extends = "first.toml"
name = "side"
[steps.image]
inputs = ["image"]
train = ["image", "backbone"]
"""
SERVED = {"curl ": "curl -sf "}
SMALL = (
    "training.epochs=1",
    'inputs.image.extractor.weights="random"',
    "metrics.meaning.meteor=false",
    "metrics.meaning.tokenizer=own",
)
ONE_MODEL = {"--type detector --set model=facebook/detr-resnet-50": "--type roi"}
ONE_EXTRACTOR = {"--type detector": "--type roi"}
NEW_SHARDS = {"$SLURM_ARRAY_TASK_ID/64": "1/2", **ONE_EXTRACTOR}
OTHER_SHARDS = {"$SLURM_ARRAY_TASK_ID/64": "2/2", **ONE_EXTRACTOR}
SHARD = " --shard $SLURM_ARRAY_TASK_ID/64"
CHAT = """\
curl http://127.0.0.1:8000/v1/chat/completions -H "Content-Type: application/json" -d '{
  "model": "bertgen_vqa/both", "n": 3, "messages": [{"role": "user", "content": [
    {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,'$(base64 -w0 photo.jpg)'"}},
    {"type": "text", "text": "two red tents"}]}]}'"""

JOBS = (
    Job(
        PHOTOS,
        (
            Code(content=(CHECKOUT / "tools/week/pictures.py").read_text(encoding="utf-8")),
            File("mine.toml", RECIPES),
            Shell("mmgen check mine.toml", RECIPES),
            Shell("mmgen data check mine.toml", RECIPES),
            Shell("mmgen run mine.toml", RECIPES),
            Shell('mmgen generate runs/mine/default/seed-0 photo.jpg --caption "a dog on a beach"', RECIPES),
        ),
        small=SMALL,
        needs=(FIRST,),
        detours=(
            "the page of a run with one update showed an empty plot",
            "docs/recipes.md had tables to replace in first.toml, but no whole recipe and no command for own photos",
        ),
    ),
    Job(
        "questions about other pictures",
        (
            Shell("cp -r mine/photos folder_of_pictures"),
            File("wanted.jsonl", INDEX),
            Shell(f'mmgen generate {RUN} --caption "a red kite to the right of a butterfly" --n 3', INDEX),
            Shell(f'mmgen generate {RUN} photo.jpg --caption "a dog on a beach"', INDEX),
            Shell(f'mmgen generate {RUN} folder_of_pictures --caption "a photo" --out questions.jsonl', INDEX),
            Shell(f'mmgen generate {RUN} --input image=test-00001 --input caption="a dog on a beach"', INDEX),
            Shell(f"mmgen generate {RUN} wanted.jsonl --set decoding.num_beams=4", INDEX),
        ),
        needs=(FIRST, PHOTOS),
        detours=("docs/index.md asked first.toml about a folder of pictures, but no step of it reads pictures alone",),
    ),
    Job(
        "the same from Python",
        (
            Code('>>> run = load_run("runs/first/default/seed-0", step="both", threads=2, warm=True)', API),
            Code(
                '>>> queries = ["photo.jpg", "gone.jpg", {"image": "other.jpg", "caption": "a dog on the grass"}]',
                API,
                f'from mmgen.inference.load import load_run\nrun = load_run("{RUN}", step="both")\n',
            ),
            Code('run = load_run("runs/first/default/seed-0", step="both")', INDEX),
            Code("model = compose(", "README.md"),
        ),
        needs=(FIRST, PHOTOS),
    ),
    Job(
        "models without a recipe",
        (Code(Code.ALL, API),),
        detours=("docs/api.md, a second time, failed at a folder that was already there",),
    ),
    Job(
        "features: extracted, in shards, indexed, trained on",
        (
            Shell("rm -rf photos && cp -r mine/photos ."),
            Shell(
                "mmgen features extract photos/ data/photos/regions.h5 --type detector "
                "--set model=facebook/detr-resnet-50",
                DATA,
                {"data/photos": "data/mine", **ONE_MODEL},
            ),
            Shell("mmgen features info data/vqa1/regions.h5", DATA, {"vqa1": "mine"}),
            *(
                Shell(
                    "mmgen features extract photos/ regions.h5 --type detector --shard $SLURM_ARRAY_TASK_ID/64",
                    SCALE,
                    shards,
                )
                for shards in (NEW_SHARDS, OTHER_SHARDS)
            ),
            Shell("mmgen merge regions.h5 --check --source photos/", SCALE),
            Shell("mkdir -p regions && mv regions-*-of-2.h5 regions/"),
            Shell('mmgen features info "regions/*.h5"', SCALE),
            Shell('mmgen features index "regions/*.h5"', SCALE),
            File("stored.toml", SCALE),
            Shell("mmgen run stored.toml", SCALE),
            Shell(
                "mmgen features extract photos/part1 regions/part1.h5 --type detector "
                "--set model=facebook/detr-resnet-50",
                SCALE,
                {"photos/part1 regions/part1.h5": "mine/photos-000.tar tar.h5", **ONE_MODEL},
            ),
        ),
        small=SMALL,
        needs=(PHOTOS,),
        detours=("docs/scale.md had no recipe and no run on stores that were made beforehand",),
    ),
    Job(
        "two processes, and two steps at a time",
        (
            Shell(
                "torchrun --nproc-per-node 8 -m mmgen run recipes/bertgen_vqa.toml --profile paper "
                "--set training.micro_batch_size=16",
                SCALE,
                {"-node 8": "-node 2", "recipes/bertgen_vqa.toml --profile paper": "second.toml", "=16": "=8"},
            ),
            File("side.toml", content=SIDE),
            Shell("mmgen run recipes/bertgen_vqa.toml --jobs 2", SCALE, {"recipes/bertgen_vqa.toml": "side.toml"}),
        ),
        small=TINY,
        needs=("another recipe beside it",),
        detours=("docs/scale.md, about several processes, did not have `--jobs`",),
    ),
    Job(
        "an export, loaded elsewhere",
        (
            Shell("mmgen export runs/bertgen_vqa/sample/seed-0 questions --step both", EXPORT),
            Shell("mmgen info questions", EXPORT),
            Shell('mmgen generate questions photo.jpg --input caption="two red tents" --n 3', EXPORT),
            Shell(
                "mkdir -p elsewhere && cp -r questions photo.jpg elsewhere/ && mv runs runs_away && "
                "trap 'mv ../runs_away ../runs' EXIT && cd elsewhere && "
                'mmgen generate questions photo.jpg --input caption="two red tents" --n 3'
            ),
            Code('answer = model.ask("photo.jpg", caption="two red tents", n=3)', EXPORT),
        ),
        needs=(SAMPLE, PHOTOS),
    ),
    Job(
        "answers in shards",
        (
            *(
                Shell(
                    "mmgen generate questions photos/ --out questions.jsonl --shard $SLURM_ARRAY_TASK_ID/64",
                    SCALE,
                    {"questions.jsonl": f'answers.jsonl --caption "a photo" --shard {shard}', SHARD: ""},
                )
                for shard in ("1/2", "2/2")
            ),
            Shell("mmgen merge questions.jsonl", SCALE, {"questions.jsonl": "answers.jsonl"}),
        ),
        needs=(
            "an export, loaded elsewhere",
            "features: extracted, in shards, indexed, trained on",
        ),
    ),
    Job(
        "an export: smaller, scored, probed, opened by transformers",
        (
            Shell("mmgen export runs/bertgen_vqa/sample/seed-0 half --step both --half", EXPORT),
            Shell("mmgen export runs/bertgen_vqa/sample/seed-0 bare --step both --without-extractor", EXPORT),
            Shell(
                'mmgen generate bare photo.jpg --input caption="two red tents" --set inputs.image.extractor.type=roi',
                EXPORT,
            ),
            File("small_data.toml", content=SMALL_DATA),
            Shell(
                "mmgen score questions --data recipes/bertgen_vqa.toml",
                EXPORT,
                {"recipes/bertgen_vqa.toml": "small_data.toml"},
            ),
            Shell(
                "mmgen probe questions --data recipes/bertgen_vqa.toml --out probes",
                EXPORT,
                {"recipes/bertgen_vqa.toml": "small_data.toml"},
            ),
            Code(
                content="from transformers import AutoModelForMaskedLM\n"
                'AutoModelForMaskedLM.from_pretrained("questions/backbone")\n'
            ),
        ),
        needs=("an export, loaded elsewhere",),
        detours=("docs/export.md predicted with an export `answers` that no command of the page had made",),
    ),
    Job(
        "the model behind a URL",
        (
            Shell("mmgen serve questions", SERVING, served=True),
            Shell("curl http://127.0.0.1:8000/health", SERVING, SERVED),
            Shell("curl http://127.0.0.1:8000/v1/models", SERVING, SERVED),
            Shell(
                'curl -F picture=@photo.jpg -F caption="two red tents" -F n=3 http://127.0.0.1:8000/v1/ask',
                SERVING,
                SERVED,
            ),
            Shell(CHAT, SERVING, SERVED),
            Shell(CHAT, SERVING, {**SERVED, '"n": 3': '"stream": true'}),
            Shell("for path in / /page.js /metrics /openapi.json; do curl -sf http://127.0.0.1:8000$path; done"),
        ),
        needs=("an export, loaded elsewhere",),
        detours=(
            "docs/serving.md asked in OpenAI's shape only with OpenAI's package",
            "a form without a caption was refused with advice for JSON only",
        ),
    ),
    Job(
        "training on from an export",
        (File("more.toml", EXPORT), Shell("mmgen run more.toml --step more", EXPORT)),
        small=(*TINY, "metrics.overlap.meteor=false", "metrics.overlap.tokenizer=own"),
        needs=("an export, loaded elsewhere",),
        detours=(
            "a wrong path of backbone.weights was looked up on the hub, and the error had the words of its library",
            "docs/export.md had parts of a recipe that trains on, but no whole one and no command",
        ),
    ),
    Job(
        "questions for a purpose, and exactly five different ones",
        (
            File("prompted.toml", PROMPTS),
            Shell("mmgen run prompted.toml", PROMPTS),
            *(
                Shell(
                    command,
                    PROMPTS,
                    {"RUN": "runs/prompted/default/seed-0", "photo.jpg": "photo.jpg --caption 'a red box'"},
                )
                for command in (
                    'mmgen generate RUN photo.jpg --prompt "answer: yes"',
                    'mmgen generate RUN photo.jpg --prompt "answer: yes" --prompt "answer: red" --n 3',
                    "mmgen generate RUN photo.jpg --n 5 --set decoding.candidates=20",
                    'mmgen generate RUN photo.jpg --n 5 --avoid "what color is the dog?" --avoid "where is the dog?"',
                )
            ),
        ),
        small=SMALL,
        needs=(PHOTOS,),
        detours=("docs/prompts.md had the column of a prompt, but no whole recipe and no run",),
    ),
    Job(
        "a stream of archives",
        (
            File("stream.toml", SCALE),
            Shell(
                "mmgen run stream.toml",
                SCALE,
            ),
        ),
        small=(
            *SMALL[2:],
            "data.train=mine/photos-000.tar",
            "data.test=mine/test.tar",
            "data.val=mine/val.tar",
            "training.updates=4",
            "training.batch_size=16",
        ),
        needs=(PHOTOS,),
    ),
    Job(
        "another encoder, from a local folder",
        (
            File("another.toml", "docs/encoders.md"),
            Shell("mmgen run another.toml", "docs/encoders.md"),
        ),
        small=(*TINY[:5], "backbone.weights=questions/backbone"),
        needs=("an export, loaded elsewhere",),
    ),
    Job(
        "a network that trains along",
        (File("along.toml", "docs/pictures.md"), Shell("mmgen run along.toml", "docs/pictures.md")),
        small=("backbone.num_hidden_layers=1", "data.train_size=16"),
        detours=("docs/pictures.md had a whole recipe, but no command that runs it",),
    ),
)
