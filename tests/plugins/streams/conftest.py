import io
import json
import tarfile

import pytest


@pytest.fixture
def write_tar():
    """Writes an archive of members: name -> content, or a `TarInfo` of another kind."""

    def write(path, members):
        with tarfile.open(path, "w") as tar:
            for name, content in members.items():
                if isinstance(content, tarfile.TarInfo):
                    tar.addfile(content)
                    continue
                info = tarfile.TarInfo(name)
                content = content if isinstance(content, bytes) else json.dumps(content).encode()
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        return str(path)

    return write


@pytest.fixture
def captions(write_tar, tmp_path):
    """Three archives of captions and questions, 5, 6 and 7 of them, and their place."""
    for part, (first, size) in enumerate(((0, 5), (5, 6), (11, 7))):
        members = {}
        for number in range(first, first + size):
            sample = {"caption": f"{number} dogs on the grass", "questions": [f"what are {number} dogs doing?"]}
            members[f"s{number:02}.json"] = sample
        write_tar(tmp_path / f"part-{part}.tar", members)
    write_tar(tmp_path / "test.tar", {"t0.json": {"caption": "a cat", "questions": ["what does the cat see?"]}})
    return str(tmp_path / "part-{0..2}.tar")
