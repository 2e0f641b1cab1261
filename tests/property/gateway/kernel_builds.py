"""Both builds of a kernel: the compiled extension, and the same source run by the interpreter."""

import importlib
import importlib.util
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
BUILDS: Final = ("compiled", "interpreted")


def source_of(name: str) -> Path:
    """Where a kernel's source is."""
    return ROOT.joinpath(*name.split(".")).with_suffix(".py")


@cache
def load(name: str, build: str) -> ModuleType:
    """Load one build of a kernel; skips the test where there is no built file.

    >>> load("gateway.log.kernel.chunks", "interpreted").__file__.endswith("chunks.py")
    True
    """
    if build == "compiled":
        module = importlib.import_module(name)
        assert module.__file__ is not None
        if module.__file__.endswith(".py"):
            pytest.skip(f"{name} is not compiled (make kernel)")
        return module
    loader = SourceFileLoader(f"{name}_interpreted", str(source_of(name)))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
