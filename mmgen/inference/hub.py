"""Models on the Hugging Face Hub: download an export by name, and push one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import RunError, UnavailableError
from ..storage import recipe_file
from ..storage.exports import BACKBONE, CARD, CONFIG, EXAMPLES, EXTRACTORS, SHARD, VOCABULARIES, is_export

HUB = "hf:"
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
REVISION = "@"
FILES = (  # of an export; nothing else is downloaded or pushed, such as a pickle
    CONFIG,
    VOCABULARIES,
    "*.safetensors",
    "*.safetensors.index.json",
    f"{BACKBONE}/*",
    f"{EXTRACTORS}/*",
)
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt", "*.msgpack", "*.h5", "*.py")


@dataclass(frozen=True)
class HubName:
    """A repository of the hub, and a revision (a branch, a tag or a commit) or None."""

    repository: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{HUB}{self.repository}" + (f"{REVISION}{self.revision}" if self.revision else "")


def hub_name(text: str) -> HubName:
    """The repository of "hf:user/name" or "hf:user/name@revision". Raises RunError."""
    repository, _, revision = text.removeprefix(HUB).partition(REVISION)
    if not text.startswith(HUB) or not REPOSITORY.fullmatch(repository):
        raise RunError(f"{text}: not a name of the hub; write hf:user/name or hf:user/name@revision")
    return HubName(repository, revision or None)


def find_folder(
    where: str | Path,
    *,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
) -> Path:
    """The folder of a model: a folder as it is, or the downloaded files of a name on the hub. Raises RunError and
    UnavailableError."""
    text = str(where)
    if text.startswith(HUB):
        return _download(hub_name(text), token, cache_dir, local_files_only)
    path = Path(where)
    if not path.exists() and REPOSITORY.fullmatch(text.partition(REVISION)[0]):
        raise RunError(
            f"{text}: no such folder; for a model on the Hugging Face Hub write hf:{text}, for a folder ./{text}"
        )
    return path


def check_folder(where: str) -> None:
    """Raises RunError for a folder that does not exist, before torch is imported. Names of the hub are not checked."""
    if not where.startswith(HUB) and not (folder := find_folder(where)).exists():
        raise recipe_file.missing(folder)


def _download(name: HubName, token: str | bool | None, cache_dir: str | Path | None, local_files_only: bool) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                name.repository,
                revision=name.revision,
                token=token,
                cache_dir=cache_dir,
                local_files_only=local_files_only,
                allow_patterns=list(FILES),
                ignore_patterns=list(PICKLES),
            )
        )
    except Exception as error:  # the hub's client and the network raise errors of many kinds
        raise _unavailable(name, "cannot be downloaded", error) from None


@dataclass(frozen=True)
class Upload:
    """A file to push: its path in the export, and its size in bytes."""

    path: str
    size: int


def uploads(folder: Path) -> list[Upload]:
    """The files of an export that `push` uploads. Raises RunError for a folder that is not an export."""
    if not folder.is_dir() or not is_export(folder):
        raise RunError(f"{folder}: not an export; write one with `mmgen export RUN FOLDER`")
    return sorted(_files_to_upload(folder), key=lambda upload: upload.path)


def _files_to_upload(folder: Path) -> Iterator[Upload]:
    known = {CONFIG, VOCABULARIES, CARD, "model.safetensors.index.json"}
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        inside = relative.parts[0] in (BACKBONE, EXTRACTORS, EXAMPLES) and not any(
            path.match(pattern) for pattern in PICKLES
        )
        if path.is_file() and (inside or relative.as_posix() in known or SHARD.fullmatch(relative.as_posix())):
            yield Upload(relative.as_posix(), path.stat().st_size)


def push(
    folder: str | Path,
    where: str,
    *,
    private: bool = False,
    token: str | bool | None = None,
    endpoint: str | None = None,
) -> str:
    """Upload an export to the hub, after the hub has validated its model card. Returns the URL of the commit.

    where    "hf:user/name", or "hf:user/name@branch"; the repository and the branch are created if they are missing
    private  create the repository as a private one

    Raises RunError and UnavailableError; an error never contains the token."""
    from huggingface_hub import HfApi, ModelCard

    path, name = Path(folder), hub_name(where)
    files = uploads(path)
    api = HfApi(endpoint=endpoint, token=token)
    try:
        if (path / CARD).exists():
            ModelCard.load(path / CARD).validate()
        api.create_repo(name.repository, private=private, exist_ok=True)
        if name.revision:
            api.create_branch(name.repository, branch=name.revision, exist_ok=True)
        commit = api.upload_folder(
            repo_id=name.repository,
            folder_path=path,
            revision=name.revision,
            allow_patterns=[file.path for file in files],
            commit_message="Model exported by mmgen",
        )
    except Exception as error:  # the hub's client and the network raise errors of many kinds
        raise _unavailable(name, "cannot be pushed", error) from None
    return str(commit.commit_url)


def _unavailable(name: HubName, what: str, error: Exception) -> UnavailableError:
    """An error in one line, without tokens."""
    reason = re.sub(r"(?<=Bearer )[^'\"]+|hf_\w+", "***", " ".join(str(error).split()))[:200] or type(error).__name__
    return UnavailableError(f"{name}: {what}: {reason}; check the name, the connection, and `hf auth login`")
