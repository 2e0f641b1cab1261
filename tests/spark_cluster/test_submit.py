"""A job of `spark-submit` on workers that have nothing of ours but a zip."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.integration.server import HutchServer, server_environment
from tests.spark_cluster.filling import fill_stream, found_by
from tests.spark_cluster.sessions import Session
from tests.spark_cluster.standalone import HOME, ROUND_TRIP, Cluster, environment, settings_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

SUBMIT_SECONDS: Final = 120.0
NEEDED: Final = ("numpy", "pyarrow")


def lean_environment(folder: Path) -> Path:
    """Make an environment with pyarrow and numpy, links to those that are installed here."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60
    )
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = folder / "lib" / version / "site-packages"
    for place in map(Path, sys.path):
        if place.name == "site-packages":
            for found in [path for name in NEEDED for path in place.glob(f"{name}*")]:
                if not (own / found.name).exists():
                    (own / found.name).symlink_to(found)
    return folder / "bin" / "python"


def modules_of(python: Path, folder: Path) -> list[str]:
    """Return which of the packages that others have this Python finds."""
    names = ("pyspark_hutch", "hutch", "gateway", "store", "cramjam", "Cython", "pandas", *NEEDED)
    asked = f"import importlib.util as u; print(*(n for n in {names} if u.find_spec(n)))"
    done = subprocess.run(
        [str(python), "-c", asked],
        cwd=folder,
        env=without_paths(environment()),
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.split()


def without_paths(variables: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in variables.items() if key != "PYTHONPATH"}


def test_a_submitted_job_needs_the_zip_and_nothing_else_of_ours_on_its_workers(
    cluster: Cluster, hutch: HutchServer, tmp_path: Path
) -> None:
    bodies = [b"row %d" % number for number in range(5_000)]
    fill_stream(hutch, "submitted", bodies)
    archive = tmp_path / "hutch.zip"
    zipping = [sys.executable, "-m", "gateway", "pipeline", "zip", str(archive)]
    subprocess.run(zipping, check=True, env=server_environment(), cwd=tmp_path, timeout=30)
    python = lean_environment(tmp_path / "lean")
    assert modules_of(python, tmp_path) == [*NEEDED]
    job = tmp_path / "round_trip.py"
    job.write_text(ROUND_TRIP.read_text(encoding="utf-8"), encoding="utf-8")
    settings = [
        word for key, value in settings_of().items() for word in ("--conf", f"{key}={value}")
    ]
    command = [
        *(str(HOME / "bin" / "spark-submit"), "--master", cluster.url),
        *(*settings, "--py-files", str(archive), str(job)),
        *(f"{hutch.host}:{hutch.port}", "submitted", "returned"),
    ]

    own = without_paths(environment(str(python)))
    with Session(command, tmp_path / "submit.log", tmp_path, own) as submitted:
        said = submitted.finish(SUBMIT_SECONDS)

    assert found_by(said) == {"rows": len(bodies), "bytes": sum(map(len, bodies))}
