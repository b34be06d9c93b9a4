"""Models on the Hugging Face Hub: download an export by name, and push one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..errors import RunError, UnavailableError
from ..files import read_table
from ..recipe.tables import NO_DATA
from ..storage.recipe_file import missing

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
    text, path = str(where), Path(where)
    if text.startswith(HUB):
        return _download(text, **hub)
    if not path.exists() and REPOSITORY.fullmatch(text.partition("@")[0]):
        raise RunError(
            f"{text}: no such folder; for a model on the Hugging Face Hub write hf:{text}, for a folder ./{text}"
        )
    return path


def check_folder(where: str) -> None:
    """Raises RunError for a folder that does not exist, before torch is imported. Names of the hub are not checked."""
    if not where.startswith(HUB) and not (folder := find_folder(where)).exists():
        raise missing(folder)


def _download(name: str, **hub: Any) -> Path:
    from huggingface_hub import snapshot_download

    repository, revision = hub_name(name)
    try:
        folder = Path(snapshot_download(repository, revision=revision, allow_patterns=[*FILES], **hub))
    except Exception as error:  # the hub's client and the network raise errors of many kinds
        raise _unavailable(name, "downloaded", error) from None
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
    try:
        ModelCard.load(path / "README.md").validate()
        api.create_repo(repository, private=private, exist_ok=True)
        if branch:
            api.create_branch(repository, branch=branch, exist_ok=True)
        message = "Model exported by mmgen"
        return str(
            api.upload_folder(
                repo_id=repository,
                folder_path=path,
                revision=branch,
                allow_patterns=[*FILES],
                commit_message=message,
            ).commit_url
        )
    except Exception as error:  # the hub's client and the network raise errors of many kinds
        raise _unavailable(where, "pushed", error) from None


def _unavailable(name: str, what: str, error: Exception) -> UnavailableError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return UnavailableError(f"{name}: cannot be {what}: {reason}; check the name, the connection, and `hf auth login`")
