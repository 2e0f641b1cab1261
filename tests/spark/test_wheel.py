"""The wheel that Spark's workers install has every compiled module, and its source."""

from __future__ import annotations

import runpy
import zipfile
from pathlib import Path

import pytest

from gateway.kernels import HOT_OBJECTS, KERNELS
from tests.integration.server import REPOSITORY


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Give a folder with the files of the wheel that `make test-spark` has built."""
    found = list((REPOSITORY / "dist").glob("hutch_streams-*.whl"))
    if len(found) != 1:
        pytest.skip("no wheel in dist; `make wheel` builds it")
    zipfile.ZipFile(found[0]).extractall(tmp_path)
    return tmp_path


def test_the_wheel_has_the_compiled_modules_and_no_other(installed: Path) -> None:
    built = [file.relative_to(installed) for file in installed.rglob("*.so")]

    names = [".".join((*file.parts[:-1], file.name.partition(".")[0])) for file in built]

    assert sorted(names) == sorted(KERNELS + HOT_OBJECTS)


def test_an_installation_knows_which_modules_are_compiled(installed: Path) -> None:
    found = runpy.run_path(str(installed / "gateway" / "kernels.py"))

    assert (found["KERNELS"], found["HOT_OBJECTS"]) == (KERNELS, HOT_OBJECTS)
