"""The job of README.md, as printed, in an environment that has nothing but the built wheel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from pyspark_hutch.jobs.preparation.installed import java_trouble
from tests.integration.server import REPOSITORY, HutchServer

ADDRESS = "localhost:5552"
PINNED = ("cramjam", "numpy", "pyarrow", "pyspark")
INSTALL_LIMIT_S = 240
"""pip builds pyspark from its sources, unless it has kept what it built before."""

RUN_LIMIT_S = 120

pytestmark = [pytest.mark.slow, pytest.mark.timeout(INSTALL_LIMIT_S + 2 * RUN_LIMIT_S)]


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def wheel() -> Path:
    """Return the wheel that `make test-spark` has built."""
    found = sorted((REPOSITORY / "dist").glob("hutch_streams-*.whl"))
    if len(found) != 1:
        pytest.skip("no wheel in dist; `make wheel` builds it")
    return found[0]


def clean() -> dict[str, str]:
    """Return the variables without those that lead Python to the repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def fresh_environment(folder: Path) -> Path:
    """Make an environment with the wheel and its extra, in the versions that are tested."""
    pins = folder / "pins.txt"
    pins.write_text("".join(f"{name}=={version(name)}\n" for name in PINNED), encoding="utf-8")
    making = [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")]
    subprocess.run(making, check=True, timeout=60)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # Only the modules that a job imports are compiled, by the job.
    pip += ["--python", str(python), "install", "--no-compile"]
    subprocess.run(
        [*pip, "--constraint", str(pins), f"{wheel()}[spark]"],
        cwd=folder,
        env=clean(),
        check=True,
        timeout=INSTALL_LIMIT_S,
    )
    return python


def run(python: Path | str, script: Path, folder: Path) -> str:
    """Run a script from a folder of its own; return what it printed."""
    places = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [python, script],
        cwd=folder,
        env=clean()
        | {"PATH": places, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=RUN_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_job_of_the_readme_runs_from_the_wheel_alone(tmp_path: Path) -> None:
    trouble = java_trouble()
    if trouble is not None:
        pytest.skip(trouble)
    publish, job, *_ = python_blocks((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    assert 'format("hutch")' in job
    assert sum(1 for line in job.splitlines() if line.strip()) <= 12, "the first job is short"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    python = fresh_environment(tmp_path)
    with HutchServer(tmp_path / "data", "--durability", "os") as server:
        address = f"localhost:{server.port}"
        for name, text in (("publish", publish), ("job", job)):
            code = text.replace(ADDRESS, address).replace("port=5552", f"port={server.port}")
            (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
        run(sys.executable, tmp_path / "publish.py", elsewhere)
        printed = run(python, tmp_path / "job.py", elsewhere)

    assert re.search(r"^\|\s*0\|.*\|\s*hello, stream\|$", printed, re.MULTILINE), printed
    assert re.search(r"^\|\s*0\|\s*HELLO, STREAM\|$", printed, re.MULTILINE), printed
