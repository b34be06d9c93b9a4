"""Shards: every key is in exactly one, on every machine; their files are found, and what is missing is named."""

import pytest

from mmgen.errors import DataError
from mmgen.features.shards import Shard, shard_files

KEYS = [f"picture {number}" for number in range(2000)]


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_every_key_is_in_exactly_one_shard_of_about_the_same_size(count):
    shards = [Shard(number, count) for number in range(1, count + 1)]
    owned = [[key for key in KEYS if shard.owns(key)] for shard in shards]
    assert sorted(key for keys in owned for key in keys) == sorted(KEYS)
    assert min(map(len, owned)) > 0 and max(map(len, owned)) < 2 * len(KEYS) / count + 20


def test_a_shard_does_not_change_from_version_to_version():
    keys = ("a", "b", "photo.jpg", "\ud800")
    assert [next(n for n in range(1, 9) if Shard(n, 8).owns(key)) for key in keys] == [8, 6, 2, 1]


@pytest.mark.parametrize("text", ["0/8", "9/8", "3", "3/0", "a/b", "-1/2", "1/2/3", "01/2", "1/9999999", "1/\uff12"])
def test_what_is_no_shard(text):
    with pytest.raises(DataError) as error:
        Shard.parse(text)
    assert str(error.value) == f"--shard {text}: write NUMBER/COUNT, such as 3/8 for the third of eight shards"


def test_names_of_files(tmp_path):
    path = tmp_path / "a.jsonl"
    assert Shard.parse("3/8").path(path) == tmp_path / "a-3-of-8.jsonl" and str(Shard(3, 8)) == "3/8"
    with pytest.raises(DataError) as error:
        shard_files(path)
    assert str(error.value) == f"{path}: no shards; they are named a-1-of-8.jsonl, by --shard 1/8"
    for number in (1, 3):
        Shard(number, 3).path(path).touch()
    with pytest.raises(DataError) as error:
        shard_files(path)
    assert str(error.value) == f"{path}: 1 of 3 shards are missing; run again with --shard 2/3"
    assert [*shard_files(path, lambda shard: shard.number != 2)] == [Shard(1, 3), Shard(3, 3)]
    Shard(2, 3).path(path).touch()
    assert [*shard_files(path)] == [Shard(1, 3), Shard(2, 3), Shard(3, 3)]
    Shard(2, 4).path(path).touch()
    with pytest.raises(DataError) as error:
        shard_files(path)
    assert str(error.value) == f"{path}: has shards of 3 and of 4; delete those that you do not need"


@pytest.mark.parametrize("name", ["a-1-of-999999999999", "a-01-of-1", "a-\uff11-of-1", "a-0-of-1", "a-1-of-0"])
def test_other_names_are_no_shards(tmp_path, name):
    (tmp_path / f"{name}.jsonl").touch()
    with pytest.raises(DataError, match="no shards; they are named a-1-of-8.jsonl, by --shard 1/8"):
        shard_files(tmp_path / "a.jsonl")
