"""Valid sequences of commands that Hypothesis draws are answered alike and leave the same."""

import os
from pathlib import Path

import pytest

from compat.broker import RunningBroker
from compat.differential.generated import Both, compare
from tests.integration.server import HutchServer

# `make differential` plays longer ones, and many more.
SEQUENCES = int(os.environ.get("HUTCH_TEST_SEQUENCES", "15"))
COMMANDS_MAX = 60


@pytest.mark.timeout(60 + 10 * SEQUENCES)
def test_drawn_sequences_are_answered_alike(rabbitmq: RunningBroker, tmp_path: Path) -> None:
    with HutchServer(tmp_path / "data") as hutch:
        both = Both(rabbitmq.stream_address, (hutch.host, hutch.port))
        compare(both, count=SEQUENCES, commands_max=COMMANDS_MAX, number=0)
        hutch.terminate()
        assert "Traceback" not in hutch.logs
    assert both.played >= SEQUENCES
