import importlib
import runpy
from pathlib import Path
from typing import Final

import pytest

from gateway import kernels
from gateway.kernels import HOT_OBJECTS, KERNELS, uncompiled

ROOT: Final = Path(__file__).parents[3]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Give a folder whose only module is the one that finds what is compiled."""
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "kernels.py").write_text(Path(kernels.__file__).read_text())
    return tmp_path


def make(tree: Path, *files: str) -> None:
    for file in files:
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).touch()


def found(tree: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = runpy.run_path(str(tree / "gateway" / "kernels.py"))
    return names["KERNELS"], names["HOT_OBJECTS"]


@pytest.mark.parametrize("name", KERNELS + HOT_OBJECTS)
def test_a_kernel_is_reported_as_what_an_import_gives(name: str) -> None:
    file = importlib.import_module(name).__file__

    assert file is not None
    assert file.endswith(".py") == (name in uncompiled())


def test_modules_of_kernel_packages_are_kernels_and_those_with_types_beside_them_hot_objects(
    tree: Path,
) -> None:
    make(tree, "store/b.py", "store/b.pxd", "store/a/c.py", "store/a/c.pxd", "store/plain.py")
    make(tree, "store/kernel/__init__.py", "store/kernel/e.py", "store/kernel/e.pxd")
    make(tree, "pyspark_hutch/kernel/d.py", "store/kernel/d.so", "hutch/f.py", "hutch/f.pxd")

    assert found(tree) == (
        ("pyspark_hutch.kernel.d", "store.kernel.e"),
        ("hutch.f", "store.a.c", "store.b"),
    )


def test_other_packages_types_without_a_module_and_folders_below_a_kernel_are_not_compiled(
    tree: Path,
) -> None:
    make(
        tree, "tests/kernel/a.py", "tests/b.py", "tests/b.pxd", "store/c.pxd", "store/kernel/d/e.py"
    )

    assert found(tree) == ((), ())


def test_nothing_is_compiled_that_belongs_to_no_module_of_the_two() -> None:
    # Such a file would be loaded in place of the source beside it.
    names = {
        ".".join((*file.relative_to(ROOT).parts[:-1], file.name.partition(".")[0]))
        for package in ("gateway", "hutch", "pyspark_hutch", "store")
        for file in (ROOT / package).rglob("*.so")
    }

    assert names <= {*KERNELS, *HOT_OBJECTS}, "make kernel-clean kernel"
