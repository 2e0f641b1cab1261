"""Staged writes of a cluster: each row once, whatever is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.client import Client
from tests.integration.server import HutchServer
from tests.sink_rig import bodies_in
from tests.spark_cluster.copying import BATCHES, SOURCE, TARGET, Copy, bodies_to_copy
from tests.spark_cluster.filling import fill_super_stream
from tests.spark_cluster.standalone import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

EXECUTOR_KILLED, WORKER_KILLED = 1, 2


def test_rows_are_there_once_after_an_executor_and_a_worker_are_killed(
    mortal_cluster: Cluster, hutch: HutchServer, tmp_path: Path
) -> None:
    bodies = bodies_to_copy()
    fill_super_stream(hutch, SOURCE, bodies)
    with Client.opened(hutch.host, hutch.port) as client:
        client.create(TARGET)
    options = {"endpoints": f"{hutch.host}:{hutch.port}", "advertised": "ignore"}

    stops = (EXECUTOR_KILLED, WORKER_KILLED)
    copy = Copy(hutch, mortal_cluster, tmp_path, options, stops=stops)
    with copy.driver:
        task = copy.stopped(EXECUTOR_KILLED)
        os.kill(mortal_cluster.executor_of(task), signal.SIGKILL)
        worker = mortal_cluster.worker_of(copy.stopped(WORKER_KILLED))
        assert worker is not None
        mortal_cluster.workers[worker].end()
        last = copy.finish()

    assert last >= BATCHES > WORKER_KILLED, "the worker that is left went on"
    assert sorted(bodies_in(hutch, TARGET)) == sorted(body for part in bodies for body in part)
    assert copy.stages() == []
