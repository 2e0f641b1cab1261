import io
import os
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway import cli
from gateway.bridge.routes import Route
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.commands import bridge
from gateway.settings.sources import FLAGS
from tests.waiting import HANG_S

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HUTCH_"):
            monkeypatch.delenv(name)


def help_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main([*arguments, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


def test_serve_has_exactly_the_promised_flags(capsys: pytest.CaptureFixture[str]) -> None:
    flags = {
        line.split()[0]
        for line in help_of(["serve"], capsys).splitlines()
        if line.startswith("  --")
    }

    assert flags == {
        "--data",
        "--host",
        "--port",
        "--durability",
        "--interval-ms",
        "--log",
        "--member",
        "--advertised-host",
        "--advertised-port",
        "--management-port",
        "--store-port",
        "--store-controller-port",
        "--store-early-port",
        "--mewbase-port",
        "--mewbase-tls-port",
        "--config",
        "--tls-port",
        "--tls-cert",
        "--tls-key",
        "--tls-ca",
        "--token-key-file",
        "--users",
        "--log-level",
        "--log-format",
    }
    assert flags == {"--config", *FLAGS}


def test_the_help_of_serve_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(["serve"], capsys)

    assert "examples:" in text
    assert "survives a power cut" in text
    assert "HUTCH_STREAM__PORT=5552" in text


def test_the_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of([], capsys)

    assert all(command in text for command in ("serve", "config", "hash-password", "bridge"))


def test_the_help_of_the_bridge_teaches_by_a_file_that_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = textwrap.dedent(help_of(["bridge"], capsys).partition("<<'END'\n")[2])
    document, _, commands = text.partition("END\n")
    (tmp_path / "orders.toml").write_text(document)
    monkeypatch.setenv("PASSWORD", "secret")
    monkeypatch.chdir(tmp_path)

    check = next(line for line in commands.splitlines() if line.endswith("--check"))
    assert cli.main(shlex.split(check)[1:]) == 0

    assert capsys.readouterr().out == "orders.toml: 1 route, nothing is wrong\n"


def test_the_bridge_is_run_with_its_file_and_flags(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "none.toml"

    assert cli.main(["bridge", str(missing)]) == 2

    assert capsys.readouterr().err == f"hutch: {missing}: No such file or directory\n"


def test_a_flag_that_the_bridge_does_not_have_is_answered_with_what_is_like_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["bridge", "orders.toml", "--until-emty"])

    assert stop.value.code == 2
    assert "did you mean --until-empty?" in capsys.readouterr().err


def test_without_its_extra_the_bridge_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bridge, "find_spec", lambda name: None if name == "aiomqtt" else name)

    assert cli.main(["bridge", "orders.toml"]) == 2

    assert capsys.readouterr().err == (
        "hutch: the bridge needs the extra `bridge`: aiomqtt missing\n"
    )


ONE_ROUTE = """
[[routes]]
name = "orders"
source = { uri = "amqp://localhost", queue = "orders" }
target = { uri = "rabbitmq-stream://localhost", stream = "orders" }
"""


@pytest.mark.parametrize(
    ("flags", "metrics"),
    [
        ([], None),
        (["--metrics", "9464"], ("127.0.0.1", 9464)),
        (["--metrics", "0.0.0.0:9464"], ("0.0.0.0", 9464)),
    ],
)
def test_the_bridge_gets_the_routes_and_what_the_flags_say(
    flags: list[str],
    metrics: tuple[str, int] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "one.toml"
    path.write_text(ONE_ROUTE)
    monkeypatch.setattr("gateway.logs.configure", lambda _: None)
    found: list[object] = []

    def run(routes: Sequence[Route], **flags: object) -> int:
        found.extend((*(route.name for route in routes), flags))
        return 1

    monkeypatch.setattr("gateway.bridge.running.run", run)

    assert cli.main(["bridge", str(path), "--until-empty", *flags]) == 1

    assert found == ["orders", {"waits": False, "until_empty": True, "metrics": metrics}]


@pytest.mark.parametrize("address", ["localhost", "65536", "localhost:x", ""])
def test_an_address_for_metrics_that_is_none_is_refused(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["bridge", "orders.toml", "--metrics", address])

    assert stop.value.code == 2
    assert f"{address!r}: write PORT or HOST:PORT" in capsys.readouterr().err


def test_a_route_that_the_file_does_not_have_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.toml"
    path.write_text(ONE_ROUTE)
    monkeypatch.setattr("gateway.logs.configure", lambda _: None)

    assert cli.main(["bridge", str(path), "--remove", "invoices"]) == 2

    assert capsys.readouterr().err.endswith(": no route 'invoices'\n")


def test_without_a_command_the_help_is_shown_and_the_exit_code_is_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main([]) == 2
    assert "hutch serve" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["serve", "config"])
def test_a_wrong_setting_stops_with_code_2_and_one_line_that_names_it(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command, "--port", "70000", "--durability", "maybe"]) == 2

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == (
        "hutch: --port: '70000' is not a whole number from 0 to 65535\n"
        "hutch: --durability: 'maybe' is not one of disk, interval, os\n"
    )


def test_an_abbreviated_flag_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["config", "--dura", "os"])

    assert stop.value.code == 2
    assert "--dura" in capsys.readouterr().err


def test_config_prints_what_serve_would_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "--port", "6000"]) == 0

    assert tomllib.loads(capsys.readouterr().out)["stream"]["port"] == 6000


def test_config_describes_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "--reference"]) == 0

    assert "### store.durability" in capsys.readouterr().out


@pytest.mark.parametrize("algorithm", Algorithm)
def test_hash_password_reads_from_a_pipe_and_prints_a_usable_hash(
    algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret word\n"))

    assert cli.main(["hash-password", "--algorithm", algorithm.name.lower()]) == 0

    printed = PasswordHash.parse(capsys.readouterr().out.strip(), algorithm)
    assert printed.matches(b"secret word")


def test_an_empty_password_is_not_hashed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))

    assert cli.main(["hash-password"]) == 1
    assert "empty password" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answers", "code"), [(["secret", "secret"], 0), (["secret", "sceret"], 1)]
)
def test_hash_password_asks_twice_on_a_terminal(
    answers: list[str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", lambda _prompt: answers.pop(0))

    assert cli.main(["hash-password"]) == code
    assert bool(capsys.readouterr().out) == (code == 0)


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gateway", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_load_nothing_heavy(arguments: list[str]) -> None:
    process = run_module(*arguments)

    assert process.returncode == 0
    assert process.stdout.startswith(("usage: hutch", "hutch "))
    assert "| asyncio" not in process.stderr
    assert "pydantic" not in process.stderr


def test_the_module_exits_with_the_code_of_the_command() -> None:
    assert run_module("config", "--port", "x").returncode == 2
