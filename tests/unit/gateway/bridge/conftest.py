"""Fixtures of the bridge's tests."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.bridge import amqp, routes
from gateway.bridge.amqp import AmqpLink
from gateway.bridge.routes import (
    Route,
    WrongFile,
)
from gateway.bridge.topics import MqttLink
from tests.unit.gateway.bridge.amqp_rig import Channel
from tests.unit.gateway.bridge.file_rig import Load, Mistakes
from tests.unit.gateway.bridge.topics_rig import Rig


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Channel]:
    made = Channel()

    async def to(end: Any, name: str, *, has_confirms: bool) -> AmqpLink:  # noqa: ANN401
        made.asked.append(("connect", name, has_confirms))
        link = AmqpLink(end)
        link.channel = made  # type: ignore[assignment]
        link.connection = SimpleNamespace(close=lambda: asyncio.sleep(0))  # type: ignore[assignment]
        return link

    monkeypatch.setattr(AmqpLink, "to", to)
    amqp._largest.clear()
    yield made
    amqp._largest.clear()


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    made = Rig()
    monkeypatch.setattr(MqttLink, "to", made.to)
    return made


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def loaded(text: str, **environment: str) -> tuple[Route, ...]:
        file = tmp_path / "routes.toml"
        file.write_text(text, "utf-8")
        return routes.load(file, environment)

    return loaded


@pytest.fixture
def mistakes(load: Load, tmp_path: Path) -> Mistakes:
    """Return the mistakes in a file, without its name."""

    def found(text: str, **environment: str) -> list[str]:
        with pytest.raises(WrongFile) as caught:
            load(text, **environment)
        name = f"{tmp_path / 'routes.toml'}: "
        lines = str(caught.value).splitlines()
        assert all(line.startswith(name) for line in lines)
        return [line.removeprefix(name) for line in lines]

    return found
