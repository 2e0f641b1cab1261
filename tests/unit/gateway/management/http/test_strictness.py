"""A start without the strict reading of requests is refused, whatever h11 is installed."""

from importlib.metadata import version

import h11
import pytest

from gateway.management.http import protocol
from gateway.management.http.protocol import NotStrict, check_strictness, make_strict
from gateway.management.port import ManagementPort
from gateway.settings.errors import ConfigError
from gateway.settings.model import ManagementSettings, Settings


def test_the_installed_h11_is_read_strictly() -> None:
    check_strictness()


def test_an_h11_that_keeps_what_it_receives_elsewhere_is_refused() -> None:
    connection = h11.Connection(h11.SERVER)
    del connection._receive_buffer

    with pytest.raises(NotStrict, match=version("h11")):
        make_strict(connection)


@pytest.mark.parametrize("name", ["maybe_extract_lines", "maybe_extract_next_line"])
def test_an_h11_that_does_not_ask_for_lines_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delattr(protocol.StrictLines, name)

    with pytest.raises(ConfigError, match="h11"):
        ManagementPort.configured(Settings(management=ManagementSettings(port=0)))
    disabled = Settings(management=ManagementSettings(enabled=False))
    assert ManagementPort.configured(disabled) is None
