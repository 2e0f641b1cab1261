"""The package `hutch` runs where there is nothing but Python."""

import subprocess
import sys
from pathlib import Path

from tests.tidy.sources import ROOT
from tests.waiting import HANG_S

# A kernel needs Cython, where it is not compiled.
PROGRAM = """
import importlib, pkgutil, sys

sys.path.insert(0, sys.argv[1])
import hutch

for found in pkgutil.walk_packages(hutch.__path__, "hutch."):
    if ".kernel" not in found.name and found.name not in sys.argv[2:]:
        importlib.import_module(found.name)
        print(found.name)
"""
NEEDS_BSON = "hutch.mewbase"


def imported(folder: Path, *left_out: str) -> subprocess.CompletedProcess[str]:
    """Import all modules where neither what is installed nor another package of ours is found."""
    (folder / "hutch").symlink_to(ROOT / "hutch")
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(folder), *left_out]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)


def test_all_but_the_client_of_mewbase_needs_pythons_own_library_alone(tmp_path: Path) -> None:
    done = imported(tmp_path, NEEDS_BSON)

    assert done.stderr == ""
    found = done.stdout.split()
    assert {"hutch.client.client", "hutch.formats.amqp.message", "hutch.pravega.codec"} <= {*found}


def test_the_client_of_mewbase_names_what_it_lacks(tmp_path: Path) -> None:
    assert "hutch.mewbase needs bson of pymongo" in imported(tmp_path).stderr
