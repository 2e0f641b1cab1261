"""Hutch and RabbitMQ answer the same bytes alike, but for a written list."""

import sys
from functools import partial
from pathlib import Path

import pytest

from compat.broker import RunningBroker
from compat.comparison import compare
from compat.differential.administration import HutchAdministration, RabbitMQAdministration
from compat.differential.coverage import missing, shown, unlisted
from compat.differential.expected import EXPECTED
from compat.differential.runner import play_all
from compat.differential.scripts import SCRIPTS
from tests.integration.server import HutchServer


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_difference_is_a_meant_one(
    rabbitmq: RunningBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = partial(
        play_all,
        address=rabbitmq.stream_address,
        administration=RabbitMQAdministration(rabbitmq),
    )
    environment = {"HUTCH_USERS__ANONYMOUS": "guest"}
    with HutchServer(tmp_path / "data", environment=environment) as hutch:
        ours = partial(
            play_all,
            address=(hutch.host, hutch.port),
            administration=HutchAdministration(hutch.data_dir),
        )
        found = compare(SCRIPTS, theirs, ours, EXPECTED)
        hutch.terminate()
        assert "Traceback" not in hutch.logs
    with capsys.disabled():
        for difference in found.unsteady:
            sys.stderr.write(f"\ndiffered once, and not when played again:\n{difference}\n")
    assert missing(shown(found.theirs)) == []
    assert unlisted(shown(found.theirs)) == []
    assert "\n\n".join(map(str, found.verdict.unexpected)) == ""
    assert [f"{entry.script}: {entry.reason}" for entry in found.verdict.stale] == []
