import pytest
from pydantic import ValidationError

from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import (
    LogLevel,
    LogsSettings,
    Settings,
    StreamSettings,
    allowed_of,
    field_of,
    sections,
    variable_of,
)
from store.api import Durability

EVERY_KEY = [
    (section, name) for section, model in sections().items() for name in model.model_fields
]


def test_the_defaults_are_the_documented_ones() -> None:
    settings = Settings()

    assert settings.stream.host == "localhost"
    assert settings.stream.port == 5552
    assert settings.stream.advertised_host == "localhost"
    assert settings.stream.advertised_port is None
    assert settings.stream.frame_bytes_max == 1_048_576
    assert settings.stream.initial_frame_bytes_max == 8_192
    assert settings.stream.heartbeat_s == 60
    assert settings.store.durability is Durability.DISK
    assert settings.store.interval_ms == 100
    assert settings.streams.publisher_references_max == 10_000
    assert settings.users.guest_loopback_only is True


def test_settings_read_no_environment_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUTCH_STREAM__PORT", "6000")

    assert Settings().stream.port == 5552


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().stream.port = 1  # type: ignore[misc]


@pytest.mark.parametrize("key", EVERY_KEY, ids=".".join)
def test_every_setting_says_what_it_means_and_takes(key: tuple[str, str]) -> None:
    field = field_of(key)

    assert field is not None
    assert (field.description or "").endswith(".")
    assert allowed_of(field)
    is_number = allowed_of(field).startswith("a whole number")
    assert is_number == ("int" in str(field.annotation)), "a number has both ends of its range"


@pytest.mark.parametrize("key", EVERY_KEY, ids=".".join)
def test_the_unit_ends_the_name_and_is_told(key: tuple[str, str]) -> None:
    field = field_of(key)
    assert field is not None
    words = key[1].removesuffix("_max").removesuffix("_pause").removesuffix("_resume").split("_")
    units = {
        "us": "microseconds",
        "ms": "milliseconds",
        "s": "seconds",
        "bytes": "bytes",
        "entries": "entries",
    }

    told = field.json_schema_extra

    assert isinstance(told, dict)
    assert told["unit"] == units.get(words[-1], "")


def test_an_unknown_setting_has_no_field() -> None:
    assert field_of(("stream", "prot")) is None
    assert field_of(("steam", "port")) is None


def test_what_a_setting_takes_is_told_in_words() -> None:
    def allowed(section: str, name: str) -> str:
        field = field_of((section, name))
        assert field is not None
        return allowed_of(field)

    assert allowed("stream", "port") == "a whole number from 0 to 65535"
    assert allowed("stream", "advertised_port") == "a whole number from 1 to 65535"
    assert allowed("store", "durability") == "one of disk, interval, os"
    assert allowed("users", "guest_loopback_only") == "true or false"
    assert allowed("users", "file") == "a path"
    assert allowed("users", "anonymous") == "text"
    assert allowed("stream", "host").startswith("a host of 1 to 255")


def test_a_settings_variable_is_its_path_in_capitals() -> None:
    assert variable_of(("stream", "port")) == "HUTCH_STREAM__PORT"


def test_a_log_level_has_the_number_of_the_logging_module() -> None:
    assert LogsSettings(level=LogLevel.WARNING).level.number == 30


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        ("port", [0, 65_535], [-1, 65_536]),
        ("advertised_port", [1, 65_535], [0, 65_536]),
        ("heartbeat_s", [0, 4_294_967], [-1, 4_294_968]),
        ("initial_frame_bytes_max", [1_024, 1_048_576], [1_023, 1_048_577]),
    ],
)
def test_ranges_include_both_ends(name: str, accepted: list[int], refused: list[int]) -> None:
    for value in accepted:
        assert getattr(StreamSettings.model_validate({name: value}), name) == value
    for value in refused:
        with pytest.raises(ValidationError, match=name):
            StreamSettings.model_validate({name: value})


def test_true_is_no_port() -> None:
    with pytest.raises(ValidationError, match="port"):
        StreamSettings.model_validate({"port": True})


def test_a_configuration_error_has_a_line_for_each_problem() -> None:
    error = ConfigError(Problem("--port", "is odd"), Problem("--host", "is even"))

    assert str(error) == "--port: is odd\n--host: is even"
