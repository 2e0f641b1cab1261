"""`hutch store serve`, and `hutch serve --store-port`: processes as a person would start them."""

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from compat.certificates import Certificates
from gateway.log.names import data_segment, meta_table
from gateway.pravega.access.guard import EXPIRED, OWNED, REFUSED
from gateway.pravega.access.token_key import NAME, read_key
from gateway.pravega.access.tokens import EVERYTHING, READ, READ_UPDATE, Tokens
from hutch.pravega import early_messages as old
from hutch.pravega import messages as m
from hutch.pravega.early_messages import KeepAlive
from hutch.pravega.error_messages import AuthTokenCheckFailed, NoSuchSegment
from hutch.pravega.table_messages import ReadTable
from hutch.stream.messages import CreateStream
from tests.client import Client
from tests.http_client import Api
from tests.integration.pravega.test_early import early
from tests.integration.server import (
    HutchServer,
    StoreProcess,
    run_serve,
    run_store,
)
from tests.integration.tls_rig import context_of
from tests.pravega_client import WRITER, WireClient, end
from tests.waiting import wait_until

BESIDE = ("--store-port", "0")
"""The arguments of a server of streams that serves its store as well."""


def token_of(server: HutchServer) -> str:
    """Return a token for everything, where the server has made a key of tokens."""
    file = server.data_dir / NAME
    if not file.exists():
        return ""
    return Tokens(read_key(file)).mint({EVERYTHING: READ_UPDATE}, now_ms=0)


def test_what_was_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data") as server:
        with WireClient(*server.store) as client:
            client.hello()
            client.create("s/t/0.#epoch.0")
            client.set_up("s/t/0.#epoch.0")
            client.append(7, b"hello world")
        server.kill()
        server.start()
        with WireClient(*server.store) as client:
            assert client.content("s/t/0.#epoch.0") == b"hello world"
            assert client.set_up("s/t/0.#epoch.0").last_event_number == 7
        server.terminate()


@pytest.mark.parametrize(("kind", "arguments"), [(StoreProcess, ()), (HutchServer, BESIDE)])
def test_a_stop_answers_what_was_taken_and_what_waits(
    kind: type[HutchServer], arguments: tuple[str, ...], tmp_path: Path
) -> None:
    with kind(tmp_path / "data", *arguments) as server:
        client = WireClient(*server.store, token=token_of(server))
        client.create("s")
        client.set_up("s")
        client.send(
            m.ReadSegment("s", 1_000_000, 8, client.token, 6), *(end(n, b"x") for n in range(50))
        )
        acknowledged = -1
        while acknowledged < 49:
            acknowledged = client.must(m.DataAppended).event_number
        server.terminate()
        read = client.must(m.SegmentRead)
        assert (read.data, read.at_tail, read.request_id) == (b"", True, 6)
        assert client.is_ended()
        client.close()


def test_streams_and_segments_are_served_from_one_store(tmp_path: Path) -> None:
    with HutchServer(tmp_path / "data", "--store-port", "0") as server:
        token = token_of(server)
        with (
            WireClient(*server.store, token=token) as client,
            Client.opened(*server.endpoint) as streams,
        ):
            client.create("s")
            client.set_up("s")
            client.append(1, b"beside streams")
            streams.must("create_stream", CreateStream("orders", {}))
        server.terminate()
        server.start()
        with WireClient(*server.store, token=token) as client:
            assert client.content("s") == b"beside streams"


def test_a_store_of_its_own_server_can_get_streams_later(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data") as server, WireClient(*server.store) as client:
        client.create("s")
        client.set_up("s")
        client.append(1, b"kept")
        server.terminate()
    with HutchServer(tmp_path / "data", "--store-port", "0") as streams:
        with WireClient(*streams.store, token=token_of(streams)) as client:
            assert client.content("s") == b"kept"
        streams.terminate()


def test_what_belongs_to_streams_is_kept_from_clients_of_the_store(tmp_path: Path) -> None:
    with HutchServer(tmp_path / "data", "--store-port", "0") as server:
        token = token_of(server)
        with Client.opened(*server.endpoint) as streams:
            streams.create("orders")
            streams.declare(1, "orders")
            streams.publish(1, {1: b"first"})
            streams.confirmed_ids(1)
        told = re.search(r"stream created stream=orders .*generation=(\d+)", server.logs)
        assert told is not None
        chunks = data_segment("/", "orders", int(told[1]))
        with WireClient(*server.store, token=token) as client:
            before = client.content(chunks)
            assert b"first" in before
            for request in (
                m.SetupAppend(1, WRITER, chunks, token),
                m.CreateSegment(1, "hutch/new/0.#epoch.0", 0, 0, token),
                m.SealSegment(1, chunks, token),
                m.TruncateSegment(1, chunks, 8, token),
                m.DeleteSegment(1, chunks, token),
                m.MergeSegments(1, chunks, "s", token),
                m.UpdateSegmentAttribute(1, chunks, WRITER, 1, m.ABSENT, token),
                ReadTable(1, "hutch/_access_kvtable/0.#epoch.0", token, ()),
                m.ReadSegment(chunks, 0, 8, "", 1),
            ):
                client.ask(request, AuthTokenCheckFailed)
            assert client.content(chunks) == before
        server.terminate()


def test_a_directory_of_streams_keeps_them_to_itself_where_its_store_alone_is_served(
    tmp_path: Path,
) -> None:
    with HutchServer(tmp_path / "data") as streams:
        with Client.opened(*streams.endpoint) as client:
            client.create("orders")
        told = re.search(r"stream created stream=orders .*generation=(\d+)", streams.logs)
        streams.terminate()
    assert told is not None
    chunks = data_segment("/", "orders", int(told[1]))
    with StoreProcess(tmp_path / "data") as server:
        token = token_of(server)
        assert token
        with WireClient(*server.store) as wire:
            for request in (
                m.ReadSegment(chunks, 0, 8, "", 1),
                m.DeleteSegment(1, chunks, ""),
                m.CreateSegment(1, "s", 0, 0, ""),
                ReadTable(1, meta_table("/"), "", ()),
            ):
                assert wire.ask(request, AuthTokenCheckFailed).error_code == REFUSED
        with WireClient(*server.store, token=token) as wire:
            for kept in (
                m.SealSegment(1, chunks, token),
                m.DeleteSegment(1, chunks, token),
                ReadTable(1, meta_table("/"), token, ()),
            ):
                assert wire.ask(kept, AuthTokenCheckFailed).error_code == OWNED
            assert wire.content(chunks) == b""
            wire.create("s")
        server.terminate()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--early-port", "0"), "--early-port: opens segments to every client"),
        (("--controller-port", "0"), "--controller-port: needs wire.users_file beside it"),
    ],
)
def test_no_port_without_a_login_is_opened_on_a_directory_of_streams(
    tmp_path: Path, given: tuple[str, str], told: str
) -> None:
    with HutchServer(tmp_path / "data") as streams:
        streams.terminate()
    done = run_store(tmp_path / "data", *given)
    assert done.returncode == 2
    assert f"hutch: {told}" in done.stderr


def test_the_early_port_is_closed_to_what_a_directory_has_of_streams(tmp_path: Path) -> None:
    with HutchServer(tmp_path / "data") as streams:
        streams.terminate()
    trusting = {"HUTCH_EARLY__TRUSTS_EVERYONE": "true"}
    with StoreProcess(tmp_path / "data", "--early-port", "0", environment=trusting) as server:
        with early(server) as client:
            client.send(old.ReadSegment(meta_table("/"), 0, 8))
            assert client.is_ended()
        server.terminate()


def test_a_store_with_a_key_asks_for_its_tokens(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("a key of tokens that has enough characters")
    token = Tokens(read_key(file)).mint({EVERYTHING: READ_UPDATE}, now_ms=0)
    with StoreProcess(tmp_path / "data", "--token-key-file", str(file)) as server:
        with WireClient(*server.store, token=token) as client:
            client.create("s")
            client.ask(m.SealSegment(1, "s", ""), AuthTokenCheckFailed)
            client.set_up("s")
            client.append(1, b"allowed")
            expired = Tokens(read_key(file)).mint({EVERYTHING: READ}, now_ms=0, lifetime_ms=1)
            refused = client.ask(m.SetupAppend(1, WRITER, "s", expired), AuthTokenCheckFailed)
            assert refused.error_code == EXPIRED
            assert client.is_ended()
        server.terminate()


def test_a_port_for_other_machines_is_warned_of(tmp_path: Path) -> None:
    line = "every client that reaches the store's port may read and change all segments"
    with StoreProcess(tmp_path / "open", "--host", "0.0.0.0") as server:
        server.wait_for_log(line)
    with StoreProcess(tmp_path / "closed") as server:
        assert line not in server.logs


def test_a_wrong_setting_stops_with_code_2_and_a_line_that_names_it(tmp_path: Path) -> None:
    done = run_store(tmp_path / "data", "--port", "70000", "--durability", "maybe")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "hutch: --durability: 'maybe' is not one of disk, interval, os\n"
        "hutch: --port: '70000' is not a whole number from 0 to 65535\n"
    )


def test_a_port_that_is_taken_is_blamed_on_its_flag(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data") as server:
        port = str(server.store.port)
        done = run_store(tmp_path / "other", "--port", port)
        assert done.returncode == 2
        assert f"hutch: --port: cannot listen on 127.0.0.1:{port}" in done.stderr
        assert not (tmp_path / "other").exists()


def test_a_directory_that_another_server_holds_is_refused(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data"):
        done = run_store(tmp_path / "data", "--port", "0")
        assert done.returncode == 1
        assert str(tmp_path / "data") in done.stderr


@pytest.mark.parametrize("flag", ["--data", "--host", "--port", "--durability", "--config"])
def test_the_help_names_every_flag(flag: str, tmp_path: Path) -> None:
    done = run_store(tmp_path, "--help")
    assert done.returncode == 0
    assert flag in done.stdout


@pytest.mark.parametrize("kind", [StoreProcess, HutchServer])
def test_clients_come_over_tls_where_a_certificate_is_given(
    kind: type[HutchServer], tmp_path: Path, made: Certificates
) -> None:
    arguments = ["--tls-cert", str(made.server.certificate), "--tls-key", str(made.server.key)]
    if kind is HutchServer:
        arguments += ["--store-port", "0", "--tls-port", "0"]
    with kind(tmp_path / "data", *arguments, environment={"HUTCH_WIRE__TLS": "true"}) as server:
        context = context_of(made.ca)
        with WireClient(*server.store, tls=context, token=token_of(server)) as client:
            client.create("s")
            client.set_up("s")
            client.append(1, bytes(3 << 20))
            assert client.content("s") == bytes(3 << 20)
        with WireClient(*server.store) as plain:
            plain.send(m.Hello(17, 5))
            plain.drain()
        server.terminate()


def test_tls_without_a_certificate_is_a_wrong_setting(tmp_path: Path) -> None:
    done = run_serve(
        tmp_path / "data", "--store-port", "0", environment={"HUTCH_WIRE__TLS": "true"}
    )
    assert done.returncode == 2
    assert done.stderr.endswith("hutch: HUTCH_WIRE__TLS: needs tls.certificate beside it\n")


def test_a_stop_while_a_client_has_a_transient_segment_is_no_error(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data") as server:
        with WireClient(*server.store) as client:
            client.ask(m.CreateTransientSegment(1, WRITER, "s", ""), m.SegmentCreated)
            server.terminate()
        assert " ERROR " not in server.logs


def test_a_transient_segment_is_gone_after_kill_9(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data") as server:
        with WireClient(*server.store) as client:
            client.create("s/t/0.#epoch.0")
            request = m.CreateTransientSegment(1, WRITER, "s/t/0.#epoch.0", "")
            name = client.ask(request, m.SegmentCreated).segment
            client.set_up(name)
            client.append(1, b"some of a large event")
            server.kill()
        server.start()
        with WireClient(*server.store) as client:

            def is_gone() -> bool:
                client.send(m.GetStreamSegmentInfo(1, name, ""))
                return isinstance(client.receive(), NoSuchSegment)

            wait_until(is_gone)
        server.terminate()


def test_administrators_see_and_end_connections_to_the_ports_of_the_store(tmp_path: Path) -> None:
    given, trusting = (*BESIDE, "--store-early-port", "0"), {"HUTCH_EARLY__TRUSTS_EVERYONE": "true"}
    with HutchServer(tmp_path / "data", *given, environment=trusting) as server:
        api = Api(*server.management)
        with WireClient(*server.store) as client, early(server) as old:
            client.hello()
            assert api.get("connections") == [], "it has shown no token"
            token = Tokens(read_key(server.data_dir / NAME)).mint({EVERYTHING: READ}, now_ms=0)
            client.ask(m.GetStreamSegmentInfo(1, "s/t/0.#epoch.0", token), NoSuchSegment)
            old.ask(KeepAlive(b"here"), KeepAlive)
            found = {each["protocol"]: each for each in api.get("connections")}
            assert found.keys() == {"pravega", "pravega-early"}
            assert {each["vhost"] for each in found.values()} == {"/"}
            name = found["pravega"]["name"]
            assert api.ask("DELETE", f"connections/{quote(name, safe='')}").status == 204
            assert client.is_ended()
            assert [each["protocol"] for each in api.get("connections")] == ["pravega-early"]
        wait_until(lambda: api.get("connections") == [])
        server.terminate()
