"""A wrong setting is what a start says, also where its ports are taken."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from compat.certificates import Certificates
from gateway.broker.access.passwords import PasswordHash
from tests.client import Client
from tests.integration.server import HutchServer, run_serve, run_store

Ports = Callable[..., list[str]]

LIMITS = {"component": "vhost-limits", "vhost": "/", "name": "limits", "value": {"max-queues": 0}}
NO_STREAMS = {"vhosts": [{"name": "/"}], "users": [], "parameters": [LIMITS]}
WITHOUT = "import sys\nsys.modules[{!r}] = None\n"
"""A module that Python loads first, and that makes another one missing."""


class Wrong(NamedTuple):
    """A wrong setting: what is given, and how the line about it begins.

    Words in capital letters stand for files: `MISSING` is not there, `TEXT` is none of ours, `CERT`
    and `KEY` are a pair, `OTHER` is another key, `USERS` and `TOKENS` are as they should be, `FULL`
    is a directory with other files in it, `LIMITED` has definitions that allow no stream.
    """

    told: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = MappingProxyType({})
    missing: str = ""


PAIR = ("--tls-cert", "CERT", "--tls-key", "KEY")
MEWBASE = ("--mewbase-port", "0")
CONTROLLER = ("--store-port", "0", "--store-controller-port", "0")
CLEAR = "--store-controller-port: takes passwords in clear"
ALLOWED = (
    "tls.certificate with wire.tls = true gives it TLS, wire.allow_plain_passwords = true allows it"
)
OPENS = (
    "--store-early-port: opens segments to every client that reaches the port, for which the "
    "store's port asks for tokens; early.trusts_everyone"
)
EVERYWHERE = (
    Wrong("--durability: 'maybe' is not one of", ("--durability", "maybe")),
    Wrong("--config: ", ("--config", "MISSING")),
    Wrong("HUTCH_STORE__NO_SUCH: ", environment={"HUTCH_STORE__NO_SUCH": "1"}),
    Wrong("--data: FULL: holds other files", ("--data", "FULL")),
    Wrong("--data: cannot keep data in TEXT", ("--data", "TEXT")),
    Wrong("--data: ", environment={"HUTCH_STORE__MUST_EXIST": "true"}),
    Wrong("--host: cannot listen on 192.0.2.1:", ("--host", "192.0.2.1")),
    Wrong("--tls-cert: needs tls.key", ("--tls-cert", "CERT")),
    Wrong("--tls-cert: cannot read MISSING", ("--tls-cert", "MISSING", "--tls-key", "KEY")),
    Wrong("--tls-cert: KEY and ", ("--tls-cert", "KEY", "--tls-key", "OTHER")),
    Wrong("--tls-cert: OTHER is not the key of CERT", ("--tls-cert", "CERT", "--tls-key", "OTHER")),
)
STREAMS = (
    *EVERYWHERE,
    Wrong("--users: MISSING: ", ("--users", "MISSING")),
    Wrong("--users: TEXT: ", ("--users", "TEXT")),
    Wrong("HUTCH_DEFINITIONS__FILE: TEXT: ", environment={"HUTCH_DEFINITIONS__FILE": "TEXT"}),
    Wrong("--tls-ca: TEXT: ", (*PAIR, "--tls-ca", "TEXT")),
    Wrong(
        "HUTCH_MANAGEMENT__HOST: cannot listen on 192.0.2.1:",
        environment={"HUTCH_MANAGEMENT__HOST": "192.0.2.1"},
    ),
    Wrong("--store-controller-port: needs wire.port", ("--store-controller-port", "0")),
    Wrong(
        "--store-controller-port: needs gRPC",
        ("--store-port", "0", "--store-controller-port", "0"),
        missing="h2",
    ),
    Wrong(
        "HUTCH_WIRE__TLS: needs tls.certificate",
        ("--store-port", "0"),
        {"HUTCH_WIRE__TLS": "true"},
    ),
    Wrong(
        "--token-key-file: cannot read MISSING",
        ("--store-port", "0", "--token-key-file", "MISSING"),
    ),
    Wrong(
        "HUTCH_WIRE__HOST: cannot listen on 192.0.2.1:",
        ("--store-port", "0"),
        {"HUTCH_WIRE__HOST": "192.0.2.1"},
    ),
    Wrong(
        "HUTCH_EARLY__HOST: cannot listen on 192.0.2.1:",
        ("--store-early-port", "0"),
        {"HUTCH_EARLY__HOST": "192.0.2.1"},
    ),
    Wrong(f"{CLEAR} beside tls.certificate: {ALLOWED}", (*PAIR, *CONTROLLER)),
    Wrong(
        f"{CLEAR} at 0.0.0.0, which other machines reach: {ALLOWED}",
        CONTROLLER,
        {"HUTCH_WIRE__HOST": "0.0.0.0"},
    ),
    Wrong(OPENS, ("--store-port", "0", "--store-early-port", "0")),
    Wrong("--mewbase-port: needs BSON", MEWBASE, missing="bson"),
    Wrong("--mewbase-tls-port: needs tls.certificate", ("--mewbase-tls-port", "0")),
    Wrong(
        "HUTCH_MEWBASE__HOST: cannot listen on 192.0.2.1:",
        MEWBASE,
        {"HUTCH_MEWBASE__HOST": "192.0.2.1"},
    ),
    Wrong(
        "HUTCH_MEWBASE__PROJECTIONS_FILE: TEXT: is not TOML",
        MEWBASE,
        {"HUTCH_MEWBASE__PROJECTIONS_FILE": "TEXT"},
    ),
    Wrong(
        "HUTCH_MEWBASE__VIRTUAL_HOST: there is no virtual host",
        MEWBASE,
        {"HUTCH_MEWBASE__VIRTUAL_HOST": "nowhere"},
    ),
    Wrong(
        "HUTCH_MEWBASE__CHANNELS: channel 'a' cannot be made",
        MEWBASE,
        {"HUTCH_MEWBASE__CHANNELS": "a", "HUTCH_DEFINITIONS__FILE": "LIMITED"},
    ),
    Wrong(
        "HUTCH_MEWBASE__CHANNELS: '[\"a\"' is not names with commas between them",
        MEWBASE,
        {"HUTCH_MEWBASE__CHANNELS": '["a"'},
    ),
    Wrong(
        f"HUTCH_MEWBASE__CHANNELS: channel '{'a' * 40}' cannot be made: ",
        MEWBASE,
        {"HUTCH_MEWBASE__CHANNELS": "a" * 300},
    ),
    Wrong(
        "HUTCH_MEWBASE__BINDERS: binder 'a\\x01' cannot be made: ",
        MEWBASE,
        {"HUTCH_MEWBASE__BINDERS": "a\1"},
    ),
)
STORE = (
    *EVERYWHERE,
    Wrong("--users: MISSING: ", ("--controller-port", "0", "--users", "MISSING")),
    Wrong("--users: TEXT: line 1: ", ("--controller-port", "0", "--users", "TEXT")),
    Wrong("--users: needs wire.controller_port", ("--users", "USERS")),
    Wrong(
        "--controller-port: needs wire.users_file",
        ("--controller-port", "0", "--token-key-file", "TOKENS"),
    ),
    Wrong("--controller-port: needs gRPC", ("--controller-port", "0"), missing="h2"),
    Wrong("--token-key-file: cannot read MISSING", ("--token-key-file", "MISSING")),
    Wrong(
        f"{CLEAR.replace('--store-', '--')} at ::, which other machines reach: {ALLOWED}",
        ("--controller-port", "0", "--users", "USERS", "--host", "::"),
    ),
    *(
        Wrong(OPENS.replace("--store-", "--"), ("--early-port", "0", *tokens))
        for tokens in (
            ("--token-key-file", "TOKENS"),
            ("--controller-port", "0", "--users", "USERS"),
        )
    ),
    Wrong("--advertise: 'host:0' is not", ("--advertise", "host:0")),
    Wrong(
        "HUTCH_EARLY__HOST: cannot listen on 192.0.2.1:",
        ("--early-port", "0"),
        {"HUTCH_EARLY__HOST": "192.0.2.1"},
    ),
)


class Files:
    """The files that the words in capital letters stand for."""

    def __init__(self, folder: Path, made: Certificates) -> None:
        self._folder = folder
        full = folder / "full"
        full.mkdir()
        (full / "notes.txt").write_text("mine")
        for name, content in (
            ("text", "no such thing\n"),
            ("users", f"app:{PasswordHash.of('secret')}:*,READ_UPDATE\n"),
            ("tokens", "k" * 64),
            ("limited", json.dumps(NO_STREAMS)),
        ):
            (folder / name).write_text(content)
        self._named = {
            "CERT": made.server.certificate,
            "KEY": made.server.key,
            "OTHER": made.client.key,
            **{
                name.upper(): folder / name
                for name in ("full", "text", "users", "tokens", "limited", "missing")
            },
        }

    def put(self, text: str) -> str:
        """Put paths in the place of their words."""
        return re.sub(
            rf"\b({'|'.join(self._named)})\b", lambda found: str(self._named[found[1]]), text
        )

    def environment(self, wrong: Wrong) -> dict[str, str]:
        """Return the variables, and those that make a module missing."""
        given = {name: self.put(value) for name, value in wrong.environment.items()}
        if wrong.missing:
            (self._folder / "sitecustomize.py").write_text(WITHOUT.format(wrong.missing))
            given["PYTHONPATH"] = str(self._folder)
        return given


@pytest.fixture
def files(tmp_path: Path, made: Certificates) -> Files:
    return Files(tmp_path, made)


@pytest.fixture
def taken() -> Iterator[Ports]:
    """Give flags of ports, each with one that the test listens on."""
    with ExitStack() as stack:

        def take(*flags: str) -> list[str]:
            words = []
            for flag in flags:
                listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
                words += [flag, str(listening.getsockname()[1])]
            return words

        yield take


def refused(stderr: str) -> list[str]:
    """Return what a start said of settings."""
    return [line.removeprefix("hutch: ") for line in stderr.splitlines() if line[:7] == "hutch: "]


@pytest.mark.parametrize("wrong", STREAMS, ids=lambda wrong: wrong.told)
def test_a_wrong_setting_is_told_where_the_ports_are_taken(
    tmp_path: Path, files: Files, taken: Ports, wrong: Wrong
) -> None:
    ports = taken("--port", "--management-port")
    given = [files.put(argument) for argument in wrong.arguments]
    done = run_serve(
        tmp_path / "data",
        *(*ports, *given),
        environment=files.environment(wrong),
        is_typed=bool(wrong.missing),
    )
    assert done.returncode == 2, done.stderr
    said = refused(done.stderr)
    assert any(line.startswith(files.put(wrong.told)) for line in said), said
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("wrong", STORE, ids=lambda wrong: wrong.told)
def test_a_wrong_setting_of_a_store_is_told_where_its_ports_are_taken(
    tmp_path: Path, files: Files, taken: Ports, wrong: Wrong
) -> None:
    given = [files.put(argument) for argument in wrong.arguments]
    flags = [flag for flag in ("--port", "--controller-port") if flag in ("--port", *given)]
    done = run_store(
        tmp_path / "data",
        *given,
        *taken(*flags),
        environment=files.environment(wrong),
        is_typed=bool(wrong.missing),
    )
    assert done.returncode == 2, done.stderr
    said = refused(done.stderr)
    assert any(line.startswith(files.put(wrong.told)) for line in said), said
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("name", "told"),
    [("admin.sock", "--data: PATH is in the way: "), ("token.key", "--token-key-file: cannot ")],
)
def test_what_is_in_the_way_in_the_data_directory_is_told_where_the_ports_are_taken(
    tmp_path: Path, taken: Ports, name: str, told: str
) -> None:
    with HutchServer(tmp_path / "data", "--store-port", "0") as server:
        server.terminate()
    path = tmp_path / "data" / name
    path.unlink(missing_ok=True)
    path.mkdir()
    done = run_serve(tmp_path / "data", *taken("--port", "--management-port", "--store-port"))
    assert done.returncode == 2
    [line] = refused(done.stderr)
    assert line.startswith(told.replace("PATH", str(path)))


def test_all_ports_that_are_taken_are_told_at_once_and_the_store_is_closed_in_good_order(
    tmp_path: Path, taken: Ports
) -> None:
    flags = ("--port", "--management-port", "--store-port", "--store-early-port", "--mewbase-port")
    trusting = {"HUTCH_EARLY__TRUSTS_EVERYONE": "true"}
    with HutchServer(tmp_path / "data", "--log-level", "info") as server:
        with Client.opened(*server.endpoint) as client:
            client.create("orders")
        server.terminate()
        done = run_serve(tmp_path / "data", *taken(*flags), environment=trusting)
        assert done.returncode == 2
        assert sorted(line.partition(":")[0] for line in refused(done.stderr)) == sorted(flags)
        server.start()
        assert "journal replayed" not in server.stderr
        with Client.opened(*server.endpoint) as client:
            client.declare(1, "orders")
