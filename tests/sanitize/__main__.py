"""Compiled modules with the compiler's own checks of memory and arithmetic built in.

    python -m tests.sanitize --folder FOLDER [--kernels] [--seconds N] [--kept FOLDER]

A copy of the sources is compiled with AddressSanitizer and UndefinedBehaviorSanitizer, and their
tests and the corpus of the fuzz targets run on it, then damaged inputs for as long as is asked.
Python takes every object from the C library there, so that a byte read beyond the end of one is
found. What is found ends the run with a report. The count of damaged inputs is kept in the folder,
and the same command goes on with others.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
COPIED: Final = (
    *("gateway", "hutch", "store", "tests", "compat", "docs"),
    *("conftest.py", "pyproject.toml"),
)
LIBRARIES: Final = ("libasan.so", "libubsan.so")
KERNEL_TESTS: Final = (
    "tests/unit/gateway/log/kernel",
    "tests/unit/gateway/mewbase/wire/kernel",
    "tests/unit/gateway/stream/kernel",
    "tests/unit/store/local/kernel",
    "tests/property/gateway/test_publish_kernel.py",
    "tests/property/gateway/test_chunk_kernel.py",
    "tests/fuzz/test_fuzz.py::test_the_corpus_is_taken_without_a_finding",
)
OBJECT_TESTS: Final = (
    "tests/unit/hutch/formats",
    "tests/unit/gateway/log",
    "tests/unit/gateway/server",
    "tests/unit/gateway/stream",
    "tests/unit/store/local",
)
BEYOND: Final = """
import ctypes
buffer = ctypes.create_string_buffer(8)
ctypes.string_at(ctypes.addressof(buffer), 64)
"""
NOT_RUN: Final = (
    "memory or processor or without_one or turns_to_the_others or worked_on_for_long or at_once"
)
"""Tests of what memory and time something takes, which are other ones here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, run, report; exit status 0 if nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.sanitize", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".sanitize"))
    parser.add_argument("--kernels", action="store_true", help="only them, not the hot objects")
    parser.add_argument("--seconds", type=int, default=60, help="how long for damaged inputs")
    parser.add_argument(
        "--kept", type=Path, help="folder of `make fuzz`, whose inputs are taken too"
    )
    options = parser.parse_args(arguments)
    libraries = [library(name) for name in LIBRARIES]
    if None in libraries:
        sys.stderr.write("needs gcc with libasan and libubsan (Debian: apt install gcc)\n")
        return 2
    folder: Path = options.folder.absolute()
    tree = prepared(folder, *(["--kernels"] if options.kernels else []))
    environment = os.environ | {
        "LD_PRELOAD": ":".join(filter(None, libraries)),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:handle_segv=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    proof = subprocess.run(
        [sys.executable, "-c", BEYOND], env=environment, capture_output=True, check=False
    )
    if b"heap-buffer-overflow" not in proof.stderr:
        sys.stderr.write("the checks are not in force: a read beyond a buffer passes\n")
        return 2
    tests = [*KERNEL_TESTS, *(() if options.kernels else OBJECT_TESTS)]
    pytest = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--timeout=300",
        *("-n", "2", "--dist", "loadfile"),
        "-k",
        f"not ({NOT_RUN})",
    ]
    damaged = ["-m", "tests.sanitize.damaged", "--state", str(folder / "damaged.json")]
    damaged += ["--seconds", str(options.seconds)]
    damaged += ["--kept", str(options.kept.absolute())] if options.kept else []
    for command in ([*pytest, *tests], damaged):
        done = subprocess.run([sys.executable, *command], cwd=tree, env=environment, check=False)
        if done.returncode:
            return done.returncode
    return 0


def library(name: str) -> str | None:
    """Return where the compiler has one of its libraries."""
    compiler = os.environ.get("CC", "gcc")
    if shutil.which(compiler) is None:
        return None
    found = subprocess.run(
        [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return found if Path(found).is_absolute() else None


def prepared(folder: Path, *choice: str) -> Path:
    """Copy the sources and compile what has changed of that choice; return where they are."""
    tree = folder / "tree"
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "node_modules", "target")
            shutil.copytree(ROOT / name, tree / name, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy2(ROOT / name, tree / name)
    command = [sys.executable, "-m", "tests.sanitize.compiling", *choice]
    subprocess.run(command, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, check=True)
    return tree


if __name__ == "__main__":
    sys.exit(main())
