"""The compiled modules and their flags; everything else of the build is in pyproject.toml.

`gateway/kernels.py` finds the modules: those in `kernel` packages, and those with a .pxd beside
them.
"""

import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from setuptools import Extension, setup

# Run, not imported: a build has only its own requirements, and the folder is not on its path.
FOUND: dict[str, Any] = runpy.run_path(str(Path(__file__).parent / "gateway" / "kernels.py"))


def extensions(names: Iterable[str], *flags: str) -> list[Extension]:
    """Return what setuptools needs to compile some modules with those flags of the C compiler.

    Debug information is left out: it takes a quarter of the time.
    """
    return [
        Extension(name, [f"{name.replace('.', '/')}.py"], extra_compile_args=[*flags, "-g0"])
        for name in names
    ]


setup(
    ext_modules=[
        *extensions(FOUND["KERNELS"], "-O3"),
        # Little of their time is spent in loops: what they gain comes from the types.
        *extensions(FOUND["HOT_OBJECTS"], "-O1"),
    ]
)
