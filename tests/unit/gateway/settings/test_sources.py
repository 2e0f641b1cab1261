import os
import threading
from pathlib import Path

import pytest

from gateway.settings.errors import ConfigError, Problem
from gateway.settings.fields import HOST_IN_WORDS
from gateway.settings.model import LogFormat, sections
from gateway.settings.sources import FLAGS, STORE_FLAGS, WrongSettings, as_written, load
from store.api import Durability
from tests.unit.gateway.settings.config_file import config_file


def problems_of(flags: dict[str, str], config: str | None = None) -> list[tuple[str, str]]:
    with pytest.raises(ConfigError) as caught:
        load(flags, config)
    return [(problem.setting, problem.reason) for problem in caught.value.problems]


def test_nothing_given_is_all_defaults_without_origins() -> None:
    loaded = load({})

    assert loaded.settings.stream.port == 5552
    assert loaded.origins == {}


def test_a_flag_counts_before_the_environment_before_the_file_before_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = config_file(
        tmp_path, '[stream]\nport = 1\nhost = "file"\nadvertised_host = "file"\nheartbeat_s = 1\n'
    )
    monkeypatch.setenv("HUTCH_STREAM__PORT", "2")
    monkeypatch.setenv("HUTCH_STREAM__HOST", "environment")
    flags = {"--port": "3"}

    loaded = load(flags, config)

    stream = loaded.settings.stream
    assert (stream.port, stream.host, stream.advertised_host) == (3, "environment", "file")
    assert stream.heartbeat_s == 1
    assert stream.close_timeout_ms == 2_000
    assert loaded.origins == {
        ("stream", "port"): "--port",
        ("stream", "host"): "HUTCH_STREAM__HOST",
        ("stream", "advertised_host"): f"{config}: stream.advertised_host",
        ("stream", "heartbeat_s"): f"{config}: stream.heartbeat_s",
    }


def test_a_variable_names_the_file_unless_a_flag_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HUTCH_CONFIG", config_file(tmp_path, "[stream]\nport = 1\n"))
    other = tmp_path / "other.toml"
    other.write_text("[stream]\nport = 2\n", encoding="utf-8")

    assert load({}).settings.stream.port == 1
    assert load({}, str(other)).settings.stream.port == 2


@pytest.mark.parametrize(
    ("flags", "wrong", "reason"),
    [
        ({"--tls-cert": "a.pem"}, "--tls-cert", "needs tls.key beside it"),
        ({"--tls-key": "a.pem"}, "--tls-key", "needs tls.certificate beside it"),
        ({"--tls-ca": "a.pem"}, "--tls-ca", "needs tls.certificate beside it"),
        ({"--tls-port": "6000"}, "--tls-port", "needs tls.certificate beside it"),
    ],
)
def test_a_setting_says_which_other_one_it_needs(
    flags: dict[str, str], wrong: str, reason: str
) -> None:
    assert problems_of(flags) == [(wrong, reason)]


def test_every_flag_reaches_its_setting(tmp_path: Path) -> None:
    values = {
        "--data": str(tmp_path),
        "--host": "0.0.0.0",
        "--port": "6000",
        "--durability": "interval",
        "--interval-ms": "7",
        "--log": "nats://a,tls://user:secret@b:4222",
        "--member": "one",
        "--advertised-host": "example.org",
        "--advertised-port": "7000",
        "--tls-port": "6001",
        "--tls-cert": "server.pem",
        "--tls-key": "server-key.pem",
        "--tls-ca": "ca.pem",
        "--store-port": "6003",
        "--store-early-port": "6004",
        "--mewbase-port": "6006",
        "--mewbase-tls-port": "6007",
        "--store-controller-port": "6005",
        "--token-key-file": "token.key",
        "--management-port": "8000",
        "--users": "users.toml",
        "--log-level": "debug",
        "--log-format": "json",
    }
    assert values.keys() == FLAGS.keys()

    settings = load(values).settings

    assert settings.store.data_directory == tmp_path
    assert settings.stream.host == "0.0.0.0"
    assert settings.stream.port == 6000
    assert settings.store.durability is Durability.INTERVAL
    assert settings.store.interval_ms == 7
    assert settings.cluster.log == ("nats://a", "tls://user:secret@b:4222")
    assert settings.cluster.member_name == "one"
    assert settings.stream.advertised_host == "example.org"
    assert settings.stream.advertised_port == 7000
    tls = settings.tls
    assert (tls.port, tls.ca) == (6001, Path("ca.pem"))
    assert (tls.certificate, tls.key) == (Path("server.pem"), Path("server-key.pem"))
    assert settings.management.port == 8000
    assert (settings.mewbase.port, settings.mewbase.tls_port) == (6006, 6007)
    assert (settings.wire.port, settings.wire.controller_port) == (6003, 6005)
    assert settings.wire.token_key_file == Path("token.key")
    assert settings.users.file == Path("users.toml")
    assert settings.logs.level.value == "debug"
    assert settings.logs.format.value == "json"


def test_the_flags_of_a_store_alone_are_of_its_own_port(tmp_path: Path) -> None:
    flags = {"--data": str(tmp_path), "--host": "0.0.0.0", "--port": "6000"}

    settings = load(flags, keys=STORE_FLAGS).settings

    assert (settings.wire.host, settings.wire.port) == ("0.0.0.0", 6000)
    assert (settings.store.data_directory, settings.stream.port) == (tmp_path, 5552)


@pytest.mark.parametrize(("text", "value"), [("false", False), ("true", True), ("0", False)])
def test_a_variable_can_be_a_truth_value(
    monkeypatch: pytest.MonkeyPatch, text: str, *, value: bool
) -> None:
    monkeypatch.setenv("HUTCH_USERS__GUEST_LOOPBACK_ONLY", text)

    assert load({}).settings.users.guest_loopback_only is value


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"--port": "65536"}, ("--port", "'65536' is not a whole number from 0 to 65535")),
        ({"--port": "a"}, ("--port", "'a' is not a whole number from 0 to 65535")),
        ({"--port": ""}, ("--port", "'' is not a whole number from 0 to 65535")),
        ({"--durability": "dsk"}, ("--durability", "'dsk' is not one of disk, interval, os")),
        ({"--interval-ms": "0"}, ("--interval-ms", "'0' is not a whole number from 1 to 60000")),
    ],
)
def test_a_wrong_flag_is_named_with_its_value_and_what_it_takes(
    flags: dict[str, str], problem: tuple[str, str]
) -> None:
    assert problems_of(flags) == [problem]


def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUTCH_STORE__INTERVAL_MS", "soon")

    assert problems_of({}) == [
        ("HUTCH_STORE__INTERVAL_MS", "'soon' is not a whole number from 1 to 60000")
    ]


def test_a_wrong_value_in_the_file_is_named_by_its_key(tmp_path: Path) -> None:
    config = config_file(tmp_path, "[stream]\nport = true\nhost = 7\n[users]\nfile = 1\n")

    assert problems_of({}, config) == [
        (f"{config}: stream.host", f"7 is not {HOST_IN_WORDS}"),
        (f"{config}: stream.port", "true is not a whole number from 0 to 65535"),
        (f"{config}: users.file", "1 is not a path"),
    ]


@pytest.mark.parametrize(
    ("content", "where", "meant"),
    [
        ("[stream]\nprot = 1", "stream.prot", "stream.port"),
        ("[steam]\nport = 1", "[steam]", ""),
        ("port = 1", "port", "stream.port"),
        ("[stream.port]\nx = 1", "stream.port", ""),
    ],
)
def test_what_is_no_setting_is_named_and_the_likely_one_told(
    tmp_path: Path, content: str, where: str, meant: str
) -> None:
    config = config_file(tmp_path, content)

    [(setting, reason)] = problems_of({}, config)

    assert setting == f"{config}: {where}"
    if meant:
        assert reason == f"no such setting; did you mean {meant}?"


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("HUTCH_STREAM__PROT", "did you mean stream.port?"),
        ("HUTCH_STREM__PORT", "did you mean stream.port?"),
        (
            "HUTCH_NOTHING__LIKE_IT",
            (
                "the sections are stream, tls, management, store, cluster, wire, early, mewbase,"
                " streams, pipeline, users, definitions, logs"
            ),
        ),
    ],
)
def test_a_variable_that_is_no_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, meant: str
) -> None:
    monkeypatch.setenv(variable, "1")

    assert problems_of({}) == [(variable, f"no such setting; {meant}")]


@pytest.mark.parametrize("variable", ["HUTCH_PORT", "HUTCH_SERVICE_HOST", "HUTCH_PORT_5552_TCP"])
def test_variables_that_others_set_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "tcp://10.0.0.1:5552")

    assert load({}).origins == {}


def test_all_problems_come_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = config_file(tmp_path, "[stream]\nprot = 1\nheartbeat_s = -1\n")
    monkeypatch.setenv("HUTCH_STREM__PORT", "1")
    monkeypatch.setenv("HUTCH_LOGS__LEVEL", "loud")

    problems = problems_of({"--port": "x", "--durability": "none"}, config)

    assert {setting for setting, _ in problems} == {
        f"{config}: stream.prot",
        "HUTCH_STREM__PORT",
        f"{config}: stream.heartbeat_s",
        "--port",
        "--durability",
        "HUTCH_LOGS__LEVEL",
    }


def test_of_two_settings_that_exclude_each_other_the_given_one_is_blamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HUTCH_STREAM__UNCONFIRMED_ENTRIES_MAX", "5")

    assert problems_of({}) == [
        (
            "HUTCH_STREAM__UNCONFIRMED_ENTRIES_MAX",
            "5 is below unconfirmed_entries_resume, which is 40000",
        )
    ]

    monkeypatch.setenv("HUTCH_STREAM__UNCONFIRMED_ENTRIES_RESUME", "6")

    assert problems_of({}) == [
        (
            "HUTCH_STREAM__UNCONFIRMED_ENTRIES_RESUME",
            "6 is above unconfirmed_entries_max, which is 5",
        )
    ]


def test_a_file_that_cannot_be_read_is_blamed_on_who_named_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing.toml")

    assert problems_of({}, missing) == [
        ("--config", f"cannot read {missing}: No such file or directory")
    ]

    monkeypatch.setenv("HUTCH_CONFIG", missing)

    assert problems_of({})[0][0] == "HUTCH_CONFIG"


@pytest.mark.parametrize("content", [b"[stream", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "hutch.toml"
    path.write_bytes(content)

    [(setting, reason)] = problems_of({}, str(path))

    assert setting == str(path)
    assert reason.startswith("not TOML: ")


@pytest.mark.parametrize(
    ("section", "name", "value", "takes"),
    [
        ("stream", "advertised_port", '"5552"', "'5552' is not a whole number from 1 to 65535"),
        ("stream", "heartbeat_s", "5.0", "5.0 is not a whole number from 0 to 4294967"),
        ("management", "enabled", '"yes"', "'yes' is not true or false"),
        ("management", "enabled", "1", "1 is not true or false"),
        ("store", "data_directory", '"x\\u0000y"', "'x\\x00y' is not a path"),
        ("store", "durability", "1979-05-27", None),
        ("logs", "level", "[1]", "[1] is not one of debug, info, warning, error"),
    ],
)
def test_a_value_in_the_file_has_the_type_of_its_setting(
    tmp_path: Path, section: str, name: str, value: str, takes: str | None
) -> None:
    config = config_file(tmp_path, f"[{section}]\n{name} = {value}\n")

    [(setting, reason)] = problems_of({}, config)

    assert setting == f"{config}: {section}.{name}"
    assert takes in {None, reason}


def test_flags_and_variables_are_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUTCH_MANAGEMENT__ENABLED", "no")
    monkeypatch.setenv("HUTCH_STREAM__HEARTBEAT_S", "5")

    settings = load({"--advertised-port": "5552"}).settings

    assert (settings.stream.advertised_port, settings.stream.heartbeat_s) == (5552, 5)
    assert not settings.management.enabled


HOSTS = [
    (section, name)
    for section, model in sections().items()
    for name in model.model_fields
    if name.endswith("host") and name != "virtual_host"
]


@pytest.mark.parametrize("key", HOSTS, ids=".".join)
def test_a_host_is_something_that_can_be_sent_and_printed(
    monkeypatch: pytest.MonkeyPatch, key: tuple[str, str]
) -> None:
    variable = f"HUTCH_{key[0]}__{key[1]}".upper()
    for wrong in ("", " ", "a b", "a\nb", "a\tb", "a\x7f", "a\u2028b", "\udc80", "a" * 256):
        monkeypatch.setenv(variable, wrong)
        [(setting, reason)] = problems_of({})
        assert setting == variable
        assert reason.endswith(f" is not {HOST_IN_WORDS}")
    for right in ("a", "a" * 255, "::1", "bücher.example"):
        monkeypatch.setenv(variable, right)
        assert getattr(getattr(load({}).settings, key[0]), key[1]) == right


def test_a_long_wrong_value_is_not_told_whole() -> None:
    [(_, reason)] = problems_of({"--advertised-host": "a" * 70_000})

    assert len(reason) < 200


@pytest.mark.parametrize("flag", ["--data", "--tls-cert", "--users"])
def test_an_empty_path_is_not_the_current_directory(flag: str) -> None:
    assert (flag, "'' is not a path") in problems_of({flag: ""})


def test_no_file_is_named_by_an_empty_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    assert problems_of({}, "") == [("--config", "names no file")]

    monkeypatch.setenv("HUTCH_CONFIG", "")

    assert load({}).origins == {}


def test_a_wrong_value_is_told_though_something_overrides_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = config_file(tmp_path, "[stream]\nport = -1\n")
    monkeypatch.setenv("HUTCH_STREAM__PORT", "zz")

    assert [setting for setting, _ in problems_of({"--port": "0"}, config)] == [
        f"{config}: stream.port",
        "HUTCH_STREAM__PORT",
    ]


def test_two_settings_of_different_sources_are_seen_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HUTCH_TLS__KEY", "key.pem")

    assert load({"--tls-cert": "cert.pem"}).settings.tls.key == Path("key.pem")


def test_what_the_server_finds_wrong_is_named_as_the_user_wrote_it() -> None:
    found = [
        Problem("stream.host", "1"),
        Problem("stream.port", "2"),
        Problem("management.host", "3"),
        Problem("--tls-cert", "4"),
        Problem("users.toml: users[0].name", "5"),
    ]
    origins = {("stream", "host"): "HUTCH_STREAM__HOST", ("tls", "certificate"): "f: tls.x"}

    named = [setting for setting, _ in as_written(ConfigError(*found), origins).problems]

    assert named == [
        "HUTCH_STREAM__HOST",
        "--port",
        "HUTCH_MANAGEMENT__HOST",
        "f: tls.x",
        "users.toml: users[0].name",
    ]


@pytest.mark.parametrize("wrong", ["", "x = 1", 'host = ""'])
def test_a_pipe_is_read_once(tmp_path: Path, wrong: str) -> None:
    pipe = tmp_path / "config"
    os.mkfifo(pipe)
    content = f"[logs]\nformat = 'json'\n[stream]\n{wrong}"
    writer = threading.Thread(target=pipe.write_text, args=(content,), daemon=True)
    writer.start()
    if wrong:
        with pytest.raises(WrongSettings) as caught:
            load({}, str(pipe))
        logs = caught.value.logs
        assert len(caught.value.problems) == 1
    else:
        logs = load({}, str(pipe)).settings.logs
    writer.join()
    assert logs.format is LogFormat.JSON


def test_logs_that_are_set_wrong_are_not_in_the_way_of_telling_it(tmp_path: Path) -> None:
    config = config_file(tmp_path, "[logs]\nformat = 'no'\n")
    with pytest.raises(WrongSettings) as caught:
        load({}, config)
    assert caught.value.logs.format is LogFormat.TEXT
