"""Models on the Hugging Face Hub: download an export by name, and push one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..files import hub_errors, read_table
from ..recipe.tables import NO_DATA

HUB = "hf:"
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
FILES = ("README.md", "*.json", "*.safetensors", "extractor/*.txt")  # nothing else is downloaded or pushed


def hub_name(text: str) -> tuple[str, str | None]:
    """The repository and the revision, or None, of "hf:user/name" or "hf:user/name@revision". Raises RunError."""
    repository, _, revision = text.removeprefix(HUB).partition("@")
    if not text.startswith(HUB) or not REPOSITORY.fullmatch(repository):
        raise RunError(f"{text}: not a name of the hub; write hf:user/name or hf:user/name@revision")
    return repository, revision or None


def find_folder(where: str | Path, **hub: Any) -> Path:
    """The folder of a model: that of a run or an export, or the downloaded files of a name on the hub. Raises RunError
    and UnavailableError."""
    if not (name := str(where)).startswith(HUB):
        return Path(where)
    from huggingface_hub import snapshot_download

    repository, revision = hub_name(name)
    with hub_errors(name, "downloaded"):
        folder = Path(snapshot_download(repository, revision=revision, allow_patterns=[*FILES], **hub))
    check_export(folder, name)
    return folder


def check_export(folder: Path, name: str = "") -> None:
    """Raises RunError for a folder that is not an export, a run folder without data. `name`: of the hub."""
    path = folder / "recipe.json"
    data = read_table(path).get("data") if path.is_file() else None
    if not isinstance(data, dict) or data.get("type") != NO_DATA:
        raise RunError(f"{name or folder}: not an export; write one with `mmgen export RUN FOLDER`")


def push(folder: str | Path, where: str, *, private: bool = False, token: str | bool | None = None) -> str:
    """Upload an export to the hub, after the hub has validated its model card. Returns the URL of the commit.

    where    "hf:user/name", or "hf:user/name@branch"; the repository and the branch are created if they are missing
    private  create the repository as a private one

    Raises RunError and UnavailableError."""
    path, (repository, branch) = Path(folder), hub_name(where)
    check_export(path)
    from huggingface_hub import HfApi, ModelCard

    api = HfApi(token=token)
    with hub_errors(where, "pushed"):
        ModelCard.load(path / "README.md").validate()
        api.create_repo(repository, private=private, exist_ok=True)
        if branch:
            api.create_branch(repository, branch=branch, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repository,
            folder_path=path,
            revision=branch,
            allow_patterns=[*FILES],
            commit_message="Model exported by mmgen",
        )
    return str(commit.commit_url)
