"""Both builds of a kernel: the compiled extension, and the same source run by the interpreter."""

import importlib
import importlib.util
from importlib.machinery import EXTENSION_SUFFIXES, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
BUILDS: Final = ("compiled", "interpreted")


def source_of(name: str) -> Path:
    """Where a kernel's source is."""
    return ROOT.joinpath(*name.split(".")).with_suffix(".py")


def load(name: str, build: str) -> ModuleType:
    """Load one build of a kernel; skips the test where there is no built file.

    >>> load("gateway.log.kernel.chunks", "interpreted").__file__.endswith("chunks.py")
    True
    """
    source = source_of(name)
    if build == "compiled":
        built = [source.with_name(source.stem + suffix) for suffix in EXTENSION_SUFFIXES]
        if not any(path.exists() for path in built):
            pytest.skip(f"{name} is not compiled (make kernel)")
        module = importlib.import_module(name)
        assert module.__file__ is not None
        assert not module.__file__.endswith(".py")
        return module
    loader = SourceFileLoader(f"{name}_interpreted", str(source))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
