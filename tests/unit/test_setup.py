import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from gateway.kernels import HOT_OBJECTS, KERNELS

ROOT: Final = Path(__file__).parents[2]
BUILT_FROM: Final = (
    *("gateway", "hutch", "pyspark_hutch", "store"),
    *("LICENSE", "README.md", "pyproject.toml", "setup.py"),
)
DESCRIBE: Final = """
import json, setuptools, distutils.core as core
described = core.run_setup("setup.py", stop_after="init")
print(json.dumps([[x.name, x.sources, x.extra_compile_args] for x in described.ext_modules]))
"""
BUILD_SDIST: Final = "import sys, setuptools.build_meta as b; b.build_sdist(sys.argv[1])"


def test_kernels_are_compiled_for_speed_and_hot_objects_for_their_types() -> None:
    asked = subprocess.run(
        [sys.executable, "-c", DESCRIBE], cwd=ROOT, check=True, capture_output=True, text=True
    )

    kernels = [[name, [f"{name.replace('.', '/')}.py"], ["-O3", "-g0"]] for name in KERNELS]
    others = [[name, [f"{name.replace('.', '/')}.py"], ["-O1", "-g0"]] for name in HOT_OBJECTS]
    assert json.loads(asked.stdout) == kernels + others


@pytest.mark.slow
def test_the_source_distribution_has_what_the_same_modules_are_compiled_from(
    tmp_path: Path,
) -> None:
    tree, packed = tmp_path / "tree", tmp_path / "packed"
    ignored = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=ignored, symlinks=True)
        else:
            shutil.copy2(ROOT / name, tree / name)

    build = [sys.executable, "-c", BUILD_SDIST, str(packed)]
    subprocess.run(build, cwd=tree, check=True, capture_output=True)

    (archive,) = packed.iterdir()
    subprocess.run(["tar", "-xf", archive, "-C", tmp_path], check=True)
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    found = runpy.run_path(str(unpacked / "gateway" / "kernels.py"))
    assert (found["KERNELS"], found["HOT_OBJECTS"]) == (KERNELS, HOT_OBJECTS)
    for file in (tree / "setup.py", *tree.rglob("*.pxd")):
        assert (unpacked / file.relative_to(tree)).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("compiler", ["/bin/false", "no-such-compiler"])
def test_a_compilation_that_fails_ends_with_what_it_needs(tmp_path: Path, compiler: str) -> None:
    kernel = tmp_path / "gateway" / "kernel"
    kernel.mkdir(parents=True)
    (kernel / "__init__.py").touch()
    (kernel / "one.py").write_text("x = 1\n")
    for name in ("setup.py", "gateway/kernels.py"):
        shutil.copy2(ROOT / name, tmp_path / name)

    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext"],
        cwd=tmp_path,
        env={**os.environ, "CC": compiler},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    end = done.stderr[done.stderr.rindex("error: ") :]
    assert compiler in end
    assert "apt install gcc libc6-dev python3-dev" in end
