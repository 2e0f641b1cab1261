"""The compiled modules and their flags; everything else of the build is in pyproject.toml.

`gateway/kernels.py` finds the modules: those in `kernel` packages, and those with a .pxd beside
them.
"""

import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError, ExecError

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


NEEDS = """\
hutch: its kernels were not compiled; what the compiler says is above. They need a C compiler and
the headers of Python and of the C library:
    Debian, Ubuntu:  apt install gcc libc6-dev python3-dev
    Fedora, RHEL:    dnf install gcc python3-devel
    Alpine:          apk add gcc musl-dev python3-dev\
"""


class Compiles(build_ext):  # type: ignore[misc]  # setuptools has no types
    """Compiles, and says what that needs where it fails: pip shows the end of what a build said."""

    def build_extensions(self) -> None:
        """Compile all modules. Raises CompileError."""
        try:
            super().build_extensions()
        except (CCompilerError, ExecError) as error:
            raise CompileError(f"{error}\n{NEEDS}") from error


setup(
    cmdclass={"build_ext": Compiles},
    ext_modules=[
        *extensions(FOUND["KERNELS"], "-O3"),
        # Little of their time is spent in loops: what they gain comes from the types.
        *extensions(FOUND["HOT_OBJECTS"], "-O1"),
    ],
)
