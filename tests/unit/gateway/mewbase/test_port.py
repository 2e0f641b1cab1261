"""Ports of mewbase name the setting that is wrong."""

import asyncio
from collections.abc import Iterator

import pytest

from gateway.mewbase_ports import MewbasePorts
from gateway.settings.errors import ConfigError
from gateway.settings.mewbase import MewbaseSettings
from gateway.settings.model import Settings


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def blamed(settings: MewbaseSettings, loop: asyncio.AbstractEventLoop) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        MewbasePorts(Settings(mewbase=settings), loop).bind()
    (problem,) = caught.value.problems
    return problem.setting, problem.reason


def test_a_port_over_tls_needs_a_certificate(loop: asyncio.AbstractEventLoop) -> None:
    setting, reason = blamed(MewbaseSettings(tls_port=0), loop)
    assert setting == "mewbase.tls_port"
    assert "tls.certificate" in reason


def test_the_host_is_that_of_the_streams_unless_it_is_set(loop: asyncio.AbstractEventLoop) -> None:
    setting, _ = blamed(MewbaseSettings(port=0, host="192.0.2.1"), loop)
    assert setting == "mewbase.host"
    ports = MewbasePorts(Settings(mewbase=MewbaseSettings(port=0)), loop)
    ports.bind()
    assert ports.ready.startswith("mewbase=127.0.0.1:")
    assert ports._plain is not None
    ports._plain.close()
