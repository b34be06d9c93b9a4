"""Names of the hub, and what is pushed to it and loaded from it: the client's three calls write into a folder."""

import shutil
from pathlib import Path

import pytest
from huggingface_hub.utils import filter_repo_objects
from kit import small_runs
from kit.refusals import refusal
from kit.toys import mmgen_here
from PIL import Image

import mmgen
from mmgen.inference.hub import hub_name, push

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    return mmgen.load(small_runs.drawn("writes"), "both").save(tmp_path_factory.mktemp("hub") / "export")


def test_names():
    assert hub_name("hf:user/name@v1") == ("user/name", "v1") and hub_name("hf:user/name") == ("user/name", None)
    assert refusal(hub_name, "hf:name") == "hf:name: not a name of the hub; write hf:user/name or hf:user/name@revision"


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Path:
    """The folder of what the hub has: USER/NAME/FILES; `hub/calls` lists what it was asked for."""

    def copy(source: Path, target: Path, patterns) -> None:
        for name in filter_repo_objects(files(source), allow_patterns=patterns):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, target / name)

    def download(repository, revision, allow_patterns, **_) -> Path:
        if not (place / repository).exists():
            raise OSError("Repository not found\nfor this url")
        copy(place / repository, tmp_path / "cache", allow_patterns)
        return tmp_path / "cache"

    def upload(api, repo_id, folder_path, revision, allow_patterns, commit_message):
        copy(Path(folder_path), place / repo_id, allow_patterns)
        return type("Commit", (), {"commit_url": f"https://hub/{repo_id}"})

    place = tmp_path / "hub"
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    monkeypatch.setattr("huggingface_hub.HfApi.upload_folder", upload)
    monkeypatch.setattr("huggingface_hub.HfApi.create_repo", lambda *_, **keys: (place / f"{keys}").mkdir(parents=True))
    monkeypatch.setattr("huggingface_hub.ModelCard.validate", lambda card: (place / "card").write_text(card.content))
    place.mkdir()
    return place


def test_only_an_exports_own_files_are_pushed_and_loaded(exported, hub, tmp_path):
    folder = Path(shutil.copytree(exported, tmp_path / "export"))
    for name in ("secret.txt", "backbone/optimizer.pt", "extractor/image/code.py", ".env"):
        (folder / name).write_text("not for others")
    done = mmgen_here(tmp_path, "push", folder, "hf:me/toy", "--private")
    assert done.returncode == 0 and "https://hub/me/toy" in done.stdout, done.stderr
    assert files(hub / "me/toy") == files(exported) and (hub / "card").read_text() == (folder / "README.md").read_text()
    assert (hub / "{'private': True, 'exist_ok': True}").exists()
    (hub / "me/toy/pytorch_model.bin").write_bytes(b"a pickle")
    Image.new("RGB", (40, 30), "red").save(tmp_path / "photo.png")
    query = {"image": tmp_path / "photo.png", "caption": "a red dog"}
    assert mmgen.load("hf:me/toy").ask(query).texts == mmgen.load(exported).ask(query).texts
    assert files(tmp_path / "cache") == files(exported)


def test_what_the_hub_refuses_is_a_line(exported, hub, tmp_path, monkeypatch):
    assert refusal(mmgen.load, "hf:me/other").startswith("hf:me/other: cannot be downloaded: Repository not found for ")
    shutil.copytree(small_runs.drawn("writes"), hub / "me/run")
    advice = "not an export; write one with `mmgen export RUN FOLDER`"
    assert refusal(mmgen.load, "hf:me/run") == f"hf:me/run: {advice}"
    assert refusal(push, tmp_path, "hf:me/toy") == f"{tmp_path}: {advice}"

    def refuse(card):
        raise ValueError("license is not known")

    monkeypatch.setattr("huggingface_hub.ModelCard.validate", refuse)
    assert refusal(push, exported, "hf:me/toy").startswith("hf:me/toy: cannot be pushed: license is not known; check ")
    assert not (hub / "me/toy").exists()
