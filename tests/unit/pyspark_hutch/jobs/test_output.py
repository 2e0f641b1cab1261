import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from pyspark_hutch.jobs.errors import JobFailed
from pyspark_hutch.jobs.output import write_archive, written_whole
from tests.waiting import HANG_S

ROOT = Path(__file__).resolve().parents[4]

# Runs where nothing is importable but the archive, pyarrow, numpy and Python's own modules.
WORKER = """
import importlib, pkgutil, sys

REFUSED = {
    "cython", "Cython", "cramjam", "isal", "typing_extensions", "gateway", "store", "pyspark",
    "pydantic", "uvloop", "starlette", "pandas",
}

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"no module {name} on a worker", name=name)

sys.meta_path.insert(0, Refusing())
sys.path.insert(0, sys.argv[1])
OURS = ("client", "planning", "decoding", "encoding", "offsets", "options", "sink")
SHARED = ("client", "formats", "stream")
for package in (*(f"hutch.{name}" for name in SHARED), *(f"pyspark_hutch.{name}" for name in OURS)):
    whole = importlib.import_module(package)
    assert ".zip/" in whole.__file__, whole.__file__
    for found in pkgutil.walk_packages(whole.__path__, f"{whole.__name__}."):
        importlib.import_module(found.name)
        print(found.name)
import pyspark_hutch.split_task
from pyspark_hutch.decoding.ways import fastest_way
print(fastest_way().__name__)
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("archive") / "hutch.zip"
    write_archive(file)
    return file


def names_of(archive: Path) -> list[str]:
    with ZipFile(archive) as opened:
        return opened.namelist()


def test_a_worker_with_only_pyarrow_and_numpy_imports_all_of_it(archive: Path) -> None:
    folders = {str(Path(str(find_spec(name).origin)).parents[1]) for name in ("pyarrow", "numpy")}  # type: ignore[union-attr]  # both are installed

    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys\nsys.path += {sorted(folders)}\n{WORKER}",
            archive,
        ],
        cwd=archive.parent,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    imported = done.stdout.split()
    assert "hutch.client.connection" in imported
    assert "pyspark_hutch.client.pool" in imported
    assert "pyspark_hutch.decoding.decoder" in imported
    assert imported[-1] == "pyspark_hutch.decoding.vectors"


def test_it_holds_what_is_shared_with_the_server(archive: Path) -> None:
    with ZipFile(archive) as opened:
        for name in ("hutch/stream/messages.py", "hutch/formats/chunk.py"):
            assert opened.read(name) == (ROOT / name).read_bytes()


def test_it_holds_sources_alone(archive: Path) -> None:
    names = names_of(archive)

    assert {name.partition("/")[0] for name in names} == {"hutch", "pyspark_hutch"}
    assert all(name.endswith(".py") and "test" not in name for name in names)
    assert {"hutch/__init__.py", "pyspark_hutch/__init__.py"} <= {*names}


def test_it_has_the_same_bytes_each_time(archive: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"

    write_archive(again)

    assert again.read_bytes() == archive.read_bytes()
    assert names_of(archive) == sorted(names_of(archive))


def test_an_older_archive_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "hutch.zip"
    file.write_bytes(b"old")

    assert write_archive(file) == len(names_of(file))
    assert [path.name for path in tmp_path.iterdir()] == ["hutch.zip"]


def test_an_archive_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match=r"cannot write .*/missing/hutch.zip: No such file"):
        write_archive(tmp_path / "missing" / "hutch.zip")


def test_a_file_that_is_written_goes_through_no_link_that_lies_beside_it(tmp_path: Path) -> None:
    victim, target = tmp_path / "victim", tmp_path / "hutch.zip"
    victim.write_bytes(b"kept")
    for name in (f".hutch.zip.{os.getpid()}", ".hutch.zip", "hutch.zip"):
        (tmp_path / name).symlink_to(victim)
    with written_whole(target) as out:
        out.write(b"new")
    assert victim.read_bytes() == b"kept"
    assert (target.is_symlink(), target.read_bytes()) == (False, b"new")


def test_two_writers_of_a_file_do_not_meet(tmp_path: Path) -> None:
    target = tmp_path / "page"
    with written_whole(target) as one, written_whole(target) as other:
        one.write(b"one")
        other.write(b"other")
    assert target.read_bytes() == b"one"
    assert [each.name for each in tmp_path.iterdir()] == ["page"]
