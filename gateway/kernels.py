"""Hot modules that exist compiled, and those that this process runs compiled.

They are ordinary Python files that Cython can compile as they stand. Which of them are compiled is
decided here alone, by where a file lies: the build (`setup.py`, Makefile) and the tests ask this
module. Whether an import finds the built module or the source is decided by what lies on the disk,
nowhere else.

The build runs this file by itself, so it imports nothing but the standard library.
"""

import os
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[1]
"""The folder of the packages: a work tree, or the place that they are installed into."""
_TAKEN_IN: Final = {"bytes"}
"""A .pxd with whole functions, which other modules take into themselves; its .py stays as it is."""
_PACKAGES: Final = ("gateway", "hutch", "pyspark_hutch", "store")


def _compiled() -> Iterator[tuple[str, bool]]:
    """Yield the name of each module that is compiled, and whether it is a kernel."""
    for folder, _, files in chain.from_iterable(os.walk(_ROOT / each) for each in _PACKAGES):
        place = Path(folder)
        is_kernel = place.name == "kernel"
        modules = {file.removesuffix(".py") for file in files if file.endswith(".py")}
        typed = {file.removesuffix(".pxd") for file in files if file.endswith(".pxd")} - _TAKEN_IN
        for module in modules - {"__init__"} if is_kernel else modules & typed:
            yield ".".join((*place.relative_to(_ROOT).parts, module)), is_kernel


_FOUND: Final = sorted(_compiled())

KERNELS: Final = tuple(name for name, is_kernel in _FOUND if is_kernel)
"""Every module in a `kernel` package."""

HOT_OBJECTS: Final = tuple(name for name, is_kernel in _FOUND if not is_kernel)
"""Ordinary modules that a message passes through; the .pxd beside each types their attributes for
the compiler, and nothing else knows of it."""


def uncompiled() -> tuple[str, ...]:
    """Name the modules that would run as plain Python: correct, but several times slower."""
    return tuple(name for name in KERNELS + HOT_OBJECTS if not _is_compiled(name))


def _is_compiled(name: str) -> bool:
    spec = find_spec(name)
    origin = "" if spec is None or spec.origin is None else spec.origin
    return origin.endswith(tuple(EXTENSION_SUFFIXES))
