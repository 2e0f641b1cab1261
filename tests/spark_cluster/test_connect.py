"""A job of a client of Spark Connect, both from pip."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.integration.server import HutchServer
from tests.spark_cluster.conftest import need_java
from tests.spark_cluster.filling import fill_stream, found_by
from tests.spark_cluster.sessions import Session
from tests.spark_cluster.standalone import (
    HOME,
    ROUND_TRIP,
    START_SECONDS,
    environment,
    settings_of,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

CONNECT: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
JOB_SECONDS: Final = 120.0
STARTED: Final = "Spark Connect server started at: "


def test_a_job_makes_the_round_trip_through_spark_connect(
    hutch: HutchServer, tmp_path: Path
) -> None:
    need_java()
    bodies = [b"row %d" % number for number in range(5_000)]
    fill_stream(hutch, "asked", bodies)
    settings = settings_of() | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.log.level": "INFO",
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    serve = [str(HOME / "bin" / "spark-submit"), "--master", "local[2]", "--class", CONNECT]
    for name in ("server", "client"):
        (tmp_path / name).mkdir()

    with Session(
        [*serve, *words, "spark-internal"], tmp_path / "server.log", tmp_path, environment()
    ) as server:
        said = server.wait_for(STARTED, START_SECONDS)
        port = re.search(STARTED + r"\S*:(\d+)", said)
        assert port is not None, said
        asking = [sys.executable, str(ROUND_TRIP), f"{hutch.host}:{hutch.port}"]
        asking += ["asked", "answered", f"sc://127.0.0.1:{port[1]}"]
        with Session(asking, tmp_path / "client.log", tmp_path, environment()) as client:
            answer = client.finish(JOB_SECONDS)

    assert found_by(answer) == {"rows": len(bodies), "bytes": sum(map(len, bodies))}
