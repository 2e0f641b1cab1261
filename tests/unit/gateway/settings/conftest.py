"""Settings are read as on a machine that sets none."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HUTCH_"):
            monkeypatch.delenv(name)
