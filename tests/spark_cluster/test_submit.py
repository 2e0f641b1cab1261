"""A job of `spark-submit` on workers that have nothing of ours but a zip."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.integration.server import HutchServer, server_environment
from tests.spark_cluster.filling import fill_stream, found_by
from tests.spark_cluster.lean import lean_environment, without_paths
from tests.spark_cluster.sessions import Session
from tests.spark_cluster.standalone import HOME, ROUND_TRIP, Cluster, environment, settings_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

SUBMIT_SECONDS: Final = 120.0


def test_a_submitted_job_needs_the_zip_and_nothing_else_of_ours_on_its_workers(
    cluster: Cluster, hutch: HutchServer, tmp_path: Path
) -> None:
    bodies = [b"row %d" % number for number in range(5_000)]
    fill_stream(hutch, "submitted", bodies)
    archive = tmp_path / "hutch.zip"
    zipping = [sys.executable, "-m", "gateway", "pipeline", "zip", str(archive)]
    subprocess.run(zipping, check=True, env=server_environment(), cwd=tmp_path, timeout=30)
    python = lean_environment(tmp_path / "lean")
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
