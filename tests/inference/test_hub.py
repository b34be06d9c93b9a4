"""Names of the hub, and pushing to and loading from a stand-in of the hub on loopback."""

import contextlib
import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import RepoCard
from kit import hub, small_runs
from kit.refusals import refusal
from PIL import Image

import mmgen
from mmgen.inference.hub import hub_name, push

COMMANDS = """
import json, os, sys
import accelerate, timm, torch._dynamo, transformers.models.bert.modeling_bert
from click.testing import CliRunner
for line in sys.stdin:
    if not os.fork():
        from mmgen.cli import main
        results = [CliRunner().invoke(main, arguments) for arguments in json.loads(line)]
        print(json.dumps([{"code": done.exit_code, "stdout": done.stdout, "stderr": done.stderr} for done in results]))
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return mmgen.load(small_runs.drawn("writes"), "both").save(tmp_path_factory.mktemp("hub") / "export")


def test_names():
    assert hub_name("hf:user/name@v1") == ("user/name", "v1") and hub_name("hf:user/name") == ("user/name", None)
    assert refusal(hub_name, "hf:name") == "hf:name: not a name of the hub; write hf:user/name or hf:user/name@revision"


def test_only_exports_come_from_the_hub_and_go_there(exported, tmp_path, monkeypatch):
    folder = small_runs.drawn("writes")
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(folder))
    assert refusal(mmgen.load, "hf:me/toy") == ("hf:me/toy: not an export; write one with `mmgen export RUN FOLDER`")
    message = f"{tmp_path}: not an export; write one with `mmgen export RUN FOLDER`"
    assert refusal(push, tmp_path, "hf:me/toy") == message


@pytest.mark.slow
@pytest.mark.skipif(
    "https://huggingface.co" in inspect.getsource(RepoCard.validate),
    reason="the installed huggingface_hub validates cards at huggingface.co alone",
)
def test_push_and_load(exported, tmp_path):
    """In new processes, since huggingface_hub reads the address of the hub when it is imported: one pushes, the other
    loads, asks for what is not there, and pushes what the hub refuses. Both are forked from one that has imported the
    libraries, and import mmgen."""
    Image.new("RGB", (40, 30), "red").save(tmp_path / "photo.png")
    with contextlib.ExitStack() as stack:
        state, address = stack.enter_context(hub.running())
        errors = stack.enter_context((tmp_path / "errors.txt").open("w"))
        environment = {
            "PATH": "/usr/bin",
            "HOME": str(tmp_path / "home"),
            "HF_ENDPOINT": address,
            "HF_TOKEN": "hf_secretsecret",
            "HF_HUB_DISABLE_XET": "1",
        }
        command, pipe = [sys.executable, "-c", COMMANDS], subprocess.PIPE
        process = stack.enter_context(
            subprocess.Popen(command, env=environment, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=errors, text=True)
        )

        def call(*commands: tuple[str, ...]) -> list[dict]:
            print(json.dumps(commands), file=process.stdin, flush=True)
            answer, stderr = process.stdout.readline(), (tmp_path / "errors.txt").read_text()
            assert answer and "hf_secret" not in stderr, stderr
            return json.loads(answer)

        folder = Path(shutil.copytree(exported, tmp_path / "export"))
        for name in ("secret.txt", "backbone/optimizer.pt", "extractor/image/code.py", ".env"):
            (folder / name).write_text("not for others")
        (pushed,) = call(("push", str(folder), "hf:me/toy", "--private"))
        assert pushed["code"] == 0, pushed["stderr"] + str(state.requests)
        assert "hf_secret" not in pushed["stdout"] + pushed["stderr"]
        assert state.private == {"me/toy": True} and state.tokens <= {"Bearer hf_secretsecret", None}
        assert state.requests[0] == "POST /api/validate-yaml"
        files = {str(path.relative_to(exported)) for path in exported.rglob("*") if path.is_file()}
        assert state.files["me/toy"].keys() == files
        state.files["me/toy"]["pytorch_model.bin"] = b"a pickle"
        state.card_errors = ["license is not known"]

        result, missing, refused = call(
            ("generate", "hf:me/toy", "photo.png", "--input", "caption=a red dog"),
            ("info", "hf:me/other"),
            ("push", str(exported), "hf:me/toy"),
        )
        assert result["code"] == 0, result["stderr"] + str(state.requests)
        assert not any("pytorch_model" in request for request in state.requests)
        text = mmgen.load(exported).ask({"image": tmp_path / "photo.png", "caption": "a red dog"}).texts[0]
        assert text.text in result["stdout"]

        assert missing["code"] == 1
        assert missing["stderr"].startswith("error: hf:me/other: cannot be downloaded: ")
        assert "hf_secret" not in missing["stderr"] and "Traceback" not in missing["stderr"]

        assert refused["code"] == 1 and "license is not known" in refused["stderr"]
