"""An engineer: photos and captions to a model, and the model in Python, on the command line and behind a URL."""

from .steps import ROOT as CHECKOUT
from .steps import TINY, Code, File, Job, Shell

RUN = "runs/first/default/seed-0"
INDEX, API, PROMPTS, EXPORT = "docs/index.md", "docs/api.md", "docs/prompts.md", "docs/export.md"
FIRST = "a recipe of one's own, three seeds"
SAMPLE = "the paper's rows on drawn scenes"
MINE = """\
name = "mine"
[backbone]
type = "bert"
num_hidden_layers = 2
hidden_size = 64
num_attention_heads = 4
dropout = 0.0
[inputs.image]
type = "regions"
normalize = "standard"
extractor = { type = "roi", weights = "pretrained" }
[inputs.caption]
type = "text"
[generator]
type = "masked"
[training]
batch_size = 16
learning_rate = 1e-3
[steps.both]
inputs = ["image", "caption"]
train = ["image", "backbone"]
[data]
type = "csv"
folder = "mine"
images = "photos"
columns = { image = "file", caption = "words", questions = "ask" }
[metrics.overlap]
type = "captioneval"
"""
PROMPTED = MINE.replace('"mine"', '"prompted"', 1).replace(
    'questions = "ask" }', 'questions = "ask", prompt = "level" }'
)
ANY_ENCODER = MINE.replace('"mine"', '"another"', 1).replace(
    'type = "bert"\nnum_hidden_layers = 2\nhidden_size = 64\nnum_attention_heads = 4\ndropout = 0.0\n',
    'type = "encoder"\nweights = "questions/backbone"\n',
)
MORE = """\
extends = "recipes/bertgen_vqa.toml"
name = "more"
[profiles.sample.backbone]
weights = "questions/backbone"
[steps.more]
inputs = ["image", "caption"]
train = ["image", "backbone"]
start = "export:questions"
"""
STREAM = (
    MINE.replace('"mine"', '"stream"', 1).partition("[data]")[0].replace("[training]", "[training]\nupdates = 4")
    + """\
[data]
type = "archives"
train = "mine/photos-{000..000}.tar"
test = "mine/test.tar"
columns = { caption = "caption" }
targets = "questions"
[metrics.overlap]
type = "captioneval"
"""
)
WANTED = """\
{"image": "photo.jpg", "caption": "a dog on the grass"}
{"id": "second", "image": {"picture": "other.jpg", "boxes": [[0, 0, 0.5, 1]]}, "caption": "a cat"}
"""
SMALL = (
    "training.epochs=1",
    'inputs.image.extractor.weights="random"',
    "metrics.overlap.meteor=false",
    "metrics.overlap.tokenizer=own",
)

JOBS = (
    Job(
        "own photos and captions to a model",
        (
            Code(content=(CHECKOUT / "tools/week/pictures.py").read_text(encoding="utf-8")),
            File("mine.toml", content=MINE),
            Shell("mmgen check mine.toml"),
            Shell("mmgen data check mine.toml"),
            Shell("mmgen run mine.toml"),
            Shell("mmgen generate runs/mine/default/seed-0 photo.jpg --caption 'a red box'"),
        ),
        small=SMALL,
        detours=("the page of a run with one update showed an empty plot",),
    ),
    Job(
        "questions about other pictures",
        (
            Shell("cp -r mine/photos folder_of_pictures"),
            File("wanted.jsonl", content=WANTED),
            Shell(f'mmgen generate {RUN} --caption "a red kite to the right of a butterfly" --n 3', INDEX),
            Shell(f'mmgen generate {RUN} photo.jpg --caption "a dog on a beach"', INDEX),
            Shell(f'mmgen generate {RUN} folder_of_pictures --caption "a photo" --out questions.jsonl', INDEX),
            Shell(f'mmgen generate {RUN} --input image=test-00001 --input caption="a dog on a beach"', INDEX),
            Shell(f"mmgen generate {RUN} wanted.jsonl --set decoding.num_beams=4", INDEX),
        ),
        needs=(FIRST, "own photos and captions to a model"),
        detours=("docs/index.md asked first.toml about a folder of pictures, but no step of it reads pictures alone",),
    ),
    Job(
        "the same from Python",
        (
            Code('>>> run = load_run("runs/first/default/seed-0", step="both", threads=2, warm=True)', API),
            Code(
                content=f'from mmgen.inference.load import load_run\nrun = load_run("{RUN}", step="both")\n'
                "queries = ['photo.jpg', 'gone.jpg', {'image': 'other.jpg', 'caption': 'a dog on the grass'}]\n"
                "answers = run.ask(queries, caption='a white horse')\n"
                "assert [bool(answer.error) for answer in answers] == [False, True, False]\n"
            ),
            Code("model = compose(", "README.md"),
        ),
        needs=(FIRST, "own photos and captions to a model"),
    ),
    Job(
        "an export, loaded elsewhere",
        (
            Shell("mmgen export runs/bertgen_vqa/sample/seed-0 questions --step both", EXPORT),
            Shell("mmgen info questions"),
            Shell('mmgen generate questions photo.jpg --input caption="two red tents" --n 3', EXPORT),
            Shell(
                "mkdir -p elsewhere && cp -r questions photo.jpg elsewhere/ && mv runs runs_away && cd elsewhere && "
                'mmgen generate questions photo.jpg --input caption="two red tents" --n 3; cd .. && mv runs_away runs'
            ),
            Code('answer = model.ask("photo.jpg", caption="two red tents", n=3)', EXPORT),
        ),
        needs=(SAMPLE, "own photos and captions to a model"),
    ),
    Job(
        "the model behind a URL",
        (
            Shell("mmgen serve questions", "docs/serving.md", served=True),
            Shell(
                'curl -F picture=@photo.jpg -F caption="two red tents" -F n=3 http://127.0.0.1:8000/v1/ask',
                "docs/serving.md",
                {"curl ": "curl -sf "},
            ),
            Shell("curl -sf http://127.0.0.1:8000/health"),
        ),
        needs=("an export, loaded elsewhere",),
    ),
    Job(
        "training on from an export",
        (File("more.toml", content=MORE), Shell("mmgen run more.toml --step more")),
        small=(*TINY, *SMALL[2:]),
        needs=("an export, loaded elsewhere",),
        detours=(
            "a wrong path of backbone.weights was looked up on the hub, and the error had the words of its library",
        ),
    ),
    Job(
        "questions for a purpose, and exactly five different ones",
        (
            File("prompted.toml", content=PROMPTED),
            Shell("mmgen run prompted.toml"),
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
        needs=("own photos and captions to a model",),
    ),
    Job(
        "a stream of archives",
        (File("stream.toml", content=STREAM), Shell("mmgen run stream.toml")),
        small=(*SMALL[1:],),
        needs=("own photos and captions to a model",),
    ),
    Job(
        "another encoder, from a local folder",
        (File("another.toml", content=ANY_ENCODER), Shell("mmgen check another.toml"), Shell("mmgen run another.toml")),
        small=SMALL,
        needs=("an export, loaded elsewhere",),
    ),
)
