"""The command line of `hutch bridge`: what it takes, refuses and hands on."""

import argparse
import re
import shlex
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gateway import logs
from gateway.bridge import routes, running
from gateway.commands import bridge
from gateway.settings.model import LogFormat, LogsSettings

ROUTES = """\
[[routes]]
name = "orders"
source = { uri = "amqp://h", queue = "q" }
target = { uri = "rabbitmq-stream://h", stream = "s" }
"""


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser("hutch bridge")
    bridge.add_arguments(parser)
    return parser.parse_args(words)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "routes.toml"
    path.write_text(ROUTES)
    return path


@pytest.fixture
def formats(monkeypatch: pytest.MonkeyPatch) -> list[LogFormat]:
    """The formats of logs that were asked for."""
    found: list[LogFormat] = []

    def configure(settings: LogsSettings) -> None:
        found.append(settings.format)

    monkeypatch.setattr(logs, "configure", configure)
    return found


@pytest.fixture
def run(
    formats: list[LogFormat], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, list[dict[str, Any]]]]:
    """Run the command, with a process that only says how it was called."""
    assert formats == []
    calls: list[dict[str, Any]] = []

    def noted(found: tuple[routes.Route, ...], **given: Any) -> int:  # noqa: ANN401
        calls.append({"routes": [each.name for each in found], **given})
        return 7

    def removed(found: routes.Route) -> int:
        calls.append({"removed": found.name})
        return 8

    monkeypatch.setattr(running, "run", noted)
    monkeypatch.setattr(running, "remove", removed)
    return lambda *words: (bridge.run(parsed(*map(str, words))), calls)


Run = Callable[..., tuple[int, list[dict[str, Any]]]]


def test_without_options_all_routes_run_until_a_signal(file: Path, run: Run) -> None:
    status, calls = run(file)

    assert status == 7
    assert calls == [{"routes": ["orders"], "waits": False, "until_empty": False, "metrics": None}]


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["--wait"], {"waits": True}),
        (["--until-empty"], {"until_empty": True}),
        (["--metrics", "9"], {"metrics": ("127.0.0.1", 9)}),
        (["--metrics", "0.0.0.0:65535"], {"metrics": ("0.0.0.0", 65_535)}),
        (["--metrics", ":9"], {"metrics": ("127.0.0.1", 9)}),
    ],
)
def test_an_option_is_handed_on(
    file: Path, run: Run, words: list[str], changed: dict[str, Any]
) -> None:
    _, calls = run(file, *words)

    plain = {"routes": ["orders"], "waits": False, "until_empty": False, "metrics": None}
    assert calls == [plain | changed]


@pytest.mark.parametrize("address", ["", "x", "h:", "h:x", "65536", "-1", "1.5"])
def test_metrics_need_a_port(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed("file", f"--metrics={address}")

    assert ended.value.code == 2
    assert f"{address!r}: write PORT or HOST:PORT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "wanted"),
    [([], LogFormat.TEXT), (["--log-format", "json"], LogFormat.JSON)],
)
def test_logs_are_as_the_servers(
    file: Path, run: Run, formats: list[LogFormat], words: list[str], wanted: LogFormat
) -> None:
    run(file, *words)

    assert formats == [wanted]


def test_a_file_that_is_right_is_only_checked(
    file: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(file, "--check") == (0, [])
    assert capsys.readouterr() == (f"{file}: 1 route, nothing is wrong\n", "")

    file.write_text(ROUTES + ROUTES.replace("orders", "more"))
    assert run(file, "--check") == (0, [])
    assert capsys.readouterr() == (f"{file}: 2 routes, nothing is wrong\n", "")


@pytest.mark.parametrize("words", [[], ["--check"], ["--remove", "orders"], ["--wait"]])
def test_a_file_with_mistakes_is_told_line_by_line_and_nothing_runs(
    file: Path, run: Run, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(ROUTES.replace("queue", "queu").replace("stream =", "steam ="))

    assert run(file, *words) == (2, [])

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"hutch: {file}: route 'orders': ") for line in lines)


def test_a_file_that_is_missing_is_a_line(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "none") == (2, [])

    expected = f"hutch: {tmp_path / 'none'}: No such file or directory\n"
    assert capsys.readouterr().err == expected


def test_a_route_is_removed_by_its_name(file: Path, run: Run) -> None:
    assert run(file, "--remove", "orders") == (8, [{"removed": "orders"}])


def test_a_route_that_there_is_not_is_not_removed(
    file: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(file, "--remove", "order") == (2, [])

    expected = f"hutch: {file}: no route 'order'; did you mean orders?\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("missing", [["aiomqtt"], ["aio_pika", "rich"], list(bridge._NEEDS)])
def test_the_missing_extra_is_a_line(
    file: Path,
    missing: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def find(name: str) -> ModuleSpec | None:
        return None if name in missing else find_spec(name)

    monkeypatch.setattr(bridge, "find_spec", find)

    assert bridge.run(parsed(str(file))) == 2

    assert capsys.readouterr().err == (
        f"hutch: the bridge needs the extra `bridge`: {', '.join(missing)} missing\n"
    )


def test_the_help_teaches_with_a_file_that_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASSWORD", "secret")
    found = re.search(r"cat >orders\.toml <<'END'\n(.*?)\n  END\n", bridge.EPILOG, re.DOTALL)
    assert found is not None
    assert len(found[1].splitlines()) <= 6
    Path("orders.toml").write_text(found[1])

    lines = re.findall(r"^  hutch bridge (.*)$", bridge.EPILOG, re.MULTILINE)

    assert [run(*shlex.split(line))[0] for line in lines] == [0, 7]


def test_the_help_names_every_kind_of_end() -> None:
    for kind in (*routes.Source.__args__, *routes.Target.__args__):
        assert f"{kind.key} = " in bridge.EPILOG
