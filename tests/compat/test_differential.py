"""Hutch and RabbitMQ answer the same bytes alike, but for a written list."""

import secrets
from pathlib import Path

import pytest

from compat.broker import RunningBroker
from compat.differential.administration import HutchAdministration, RabbitMQAdministration
from compat.differential.comparison import differences, judge
from compat.differential.coverage import missing, shown, unlisted
from compat.differential.expected import EXPECTED
from compat.differential.runner import play_all
from compat.differential.scripts import SCRIPTS
from tests.integration.server import HutchServer


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_difference_is_a_meant_one(rabbitmq: RunningBroker, tmp_path: Path) -> None:
    theirs = play_all(
        SCRIPTS, rabbitmq.stream_address, secrets.token_hex(2), RabbitMQAdministration(rabbitmq)
    )
    environment = {"HUTCH_USERS__ANONYMOUS": "guest"}
    with HutchServer(tmp_path / "data", environment=environment) as hutch:
        ours = play_all(
            SCRIPTS,
            (hutch.host, hutch.port),
            secrets.token_hex(2),
            HutchAdministration(hutch.data_dir),
        )
        hutch.terminate()
        assert "Traceback" not in hutch.logs
    assert missing(shown(theirs)) == []
    assert unlisted(shown(theirs)) == []
    verdict = judge(differences(theirs, ours), EXPECTED)
    assert "\n\n".join(map(str, verdict.unexpected)) == ""
    assert [f"{entry.script}: {entry.reason}" for entry in verdict.stale] == []
