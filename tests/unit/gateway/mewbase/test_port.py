"""The ports of mewbase name the setting that is wrong."""

import pytest

from gateway.mewbase.port import MewbasePort
from gateway.settings.errors import ConfigError
from gateway.settings.mewbase import MewbaseSettings
from gateway.settings.model import Settings


def configured(settings: MewbaseSettings) -> MewbasePort:
    made = MewbasePort.configured(Settings(mewbase=settings))
    assert made is not None
    return made


def blamed(settings: MewbaseSettings) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        configured(settings).bind()
    (problem,) = caught.value.problems
    return problem.setting, problem.reason


def test_without_a_port_in_the_settings_there_is_none() -> None:
    assert MewbasePort.configured(Settings()) is None


def test_a_port_over_tls_needs_a_certificate() -> None:
    setting, reason = blamed(MewbaseSettings(tls_port=0))
    assert setting == "mewbase.tls_port"
    assert "tls.certificate" in reason


@pytest.mark.parametrize("kind", ["channels", "binders"])
def test_a_name_that_none_can_have_is_refused_before_anything_is_opened(kind: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MewbasePort.configured(Settings(mewbase=MewbaseSettings(port=0, **{kind: ("a\nb",)})))
    (problem,) = caught.value.problems
    assert problem.setting == f"mewbase.{kind}"
    assert "control characters" in problem.reason


async def test_the_host_is_that_of_the_streams_unless_it_is_set() -> None:
    setting, _ = blamed(MewbaseSettings(port=0, host="192.0.2.1"))
    assert setting == "mewbase.host"
    port = configured(MewbaseSettings(port=0))
    port.bind()
    assert port.ready.startswith("mewbase=127.0.0.1:")
    await port.close()
