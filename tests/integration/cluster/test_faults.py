"""Faults of members and servers of the log in a row: clients go on, and nothing confirmed is lost.

By day there are two, of kinds that the day decides; at night fifty.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

import pytest

from tests.integration.cluster.faults import FaultRun
from tests.integration.cluster.members import Cluster

FACTOR = float(os.environ.get("HUTCH_TEST_FACTOR") or 1)
FAULTS = round(2 * FACTOR)
SEED = int(os.environ.get("HUTCH_TEST_SEED") or datetime.now(UTC).toordinal())


@pytest.mark.slow
@pytest.mark.timeout(120 + 60 * FAULTS)
def test_clients_go_on_through_faults_and_nothing_that_was_promised_is_lost(
    cluster: Cluster,
) -> None:
    run = FaultRun(cluster, SEED)
    for kind in run.kinds(FAULTS):
        run.fault(kind)

    twice = run.finish()

    confirmed = [len(each.confirmed) for each in run.publishing]
    faults = " ".join(run.told)
    sys.stdout.write(f"{faults}: {confirmed} confirmed, {twice} twice, seed {SEED}\n")
