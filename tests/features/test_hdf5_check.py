"""The process that walks through a strange HDF5 file: its own memory."""

from pathlib import Path

import pytest

from mmgen.features import hdf5_check


@pytest.mark.skipif(not hdf5_check.STATUS.exists(), reason="needs /proc")
def test_memory_of_this_process():
    assert 10 << 20 < hdf5_check._memory_used("VmHWM") <= hdf5_check._memory_used("VmSize")


def test_a_file_that_takes_too_much_memory_ends_the_process(monkeypatch):
    monkeypatch.setattr(hdf5_check, "_memory_used", lambda kind: {"VmHWM": hdf5_check.TOO_MUCH + 1}[kind])
    with pytest.raises(SystemExit) as error:
        hdf5_check._stop_if_too_much()
    assert error.value.code == "libhdf5 used too much memory while reading the file"


def test_the_process_imports_no_package_but_h5py():
    source = Path(hdf5_check.__file__).read_text(encoding="utf-8")
    assert "from ." not in source and "import mmgen" not in source  # run as a file, apart from the package
