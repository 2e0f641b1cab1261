"""Compile modules in place with the checks built in; run by `tests.sanitize` in its copy.

    python -m tests.sanitize.compiling [--kernels]

Of the modules that are compiled elsewhere it takes those that the copy has.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from Cython.Build import cythonize
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

from gateway.kernels import HOT_OBJECTS, KERNELS

CHECKS: Final = "-fsanitize=address,undefined"
FLAGS: Final = (CHECKS, "-fno-omit-frame-pointer", "-g1", "-O1")


def compile_in_place(modules: Sequence[str]) -> None:
    """Compile what is newer than its module."""
    extensions = [
        Extension(
            name,
            [name.replace(".", "/") + ".py"],
            extra_compile_args=list(FLAGS),
            extra_link_args=[CHECKS],
        )
        for name in modules
    ]
    # Not `setup`, which would read this project's own settings, flags included.
    compiled = cythonize(extensions, quiet=True)  # type: ignore[no-untyped-call]
    command = build_ext(Distribution({"ext_modules": compiled}))
    command.inplace = True
    command.parallel = 2
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":
    compile_in_place(KERNELS if "--kernels" in sys.argv else KERNELS + HOT_OBJECTS)
