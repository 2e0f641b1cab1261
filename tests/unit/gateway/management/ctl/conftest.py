"""A server that takes what commands ask, and no settings of the developer's."""

import os
from pathlib import Path
from typing import Any

import pytest

from gateway.management.ctl import ctl
from gateway.management.requests.table import ROWS


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HUTCH_"):
            monkeypatch.delenv(name)


class Server:
    """Takes what is asked and gives the answer of the test."""

    def __init__(self) -> None:
        self.asked: list[tuple[Path, str, dict[str, Any]]] = []
        self.answer: object = None
        self.answers: dict[str, object] = {}

    def ask(self, directory: Path, name: str, arguments: dict[str, Any]) -> object:
        assert name in ROWS
        self.asked.append((directory, name, arguments))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answers.get(name, self.answer)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    asked = Server()
    monkeypatch.setattr(ctl, "ask", asked.ask)
    return asked
