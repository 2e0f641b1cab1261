"""Which hot functions exist as compiled modules, and whether this process has them compiled.

The kernels are ordinary Python files that Cython can compile as they stand. Whether an import
finds the built module or the source is decided by what lies on the disk, nowhere else.
"""

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import Final

KERNELS: Final = (
    "gateway.log.kernel.chunks",
    "gateway.stream.wire.kernel.publish",
)
"""Every kernel module, as in the `ext-modules` of pyproject.toml."""


def uncompiled() -> tuple[str, ...]:
    """Name the kernels that would run as plain Python: correct, but about ten times slower."""
    return tuple(name for name in KERNELS if not _is_compiled(name))


def _is_compiled(name: str) -> bool:
    spec = find_spec(name)
    origin = "" if spec is None or spec.origin is None else spec.origin
    return origin.endswith(tuple(EXTENSION_SUFFIXES))
