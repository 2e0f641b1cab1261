"""Tables of keys and values: cut short by `kill -9`, and used by users with a right each."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest

from gateway.broker.access.passwords import PasswordHash
from gateway.pravega.access.guard import REFUSED, path_of
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.names import segment_name, stream_of
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.error_messages import AuthTokenCheckFailed, NoSuchSegment
from hutch.pravega.layout import WireMessage
from hutch.pravega.wire_types import NO_KEY, KeyAndValue, TableKey
from store.local.store_check import open_to_check
from tests.controller_client import ControllerClient
from tests.integration.pravega.conftest import StartStore, controller_port
from tests.integration.pravega.users import (
    BESIDE,
    PASSWORD,
    controller,
    of,
    users_of_streams,
)
from tests.integration.server import HutchServer, StoreProcess
from tests.pravega_client import WireClient

KILLS = 10
LONGEST_S = 0.2
PARTS = 5
KEY = b"key001"
CREATED = pb.CreateKeyValueTableStatus
DENIED = grpc.StatusCode.PERMISSION_DENIED


def config(scope: str, name: str, partitions: int = PARTS) -> pb.KeyValueTableConfig:
    return pb.KeyValueTableConfig(
        scope=scope,
        kvtName=name,
        partitionCount=partitions,
        primaryKeyLength=4,
        secondaryKeyLength=2,
    )


def named(scope: str, name: str) -> pb.KeyValueTableInfo:
    return pb.KeyValueTableInfo(scope=scope, kvtName=name)


def in_scope(scope: str) -> pb.KVTablesInScopeRequest:
    return pb.KVTablesInScopeRequest(scope=pb.ScopeInfo(scope=scope))


def parts_of(client: ControllerClient, scope: str, name: str) -> list[str]:
    """Return the names of a table's parts in the store."""
    answer = client.ask("getCurrentSegmentsKeyValueTable", named(scope, name))
    return [
        segment_name(scope, stream_of(name), each.segmentId.segmentId)
        for each in answer.segmentRanges
    ]


def put(part: str, value: bytes, token: str = "") -> t.UpdateTableEntries:
    return t.UpdateTableEntries(1, part, token, (KeyAndValue(TableKey(KEY), value),))


def get(part: str, token: str = "") -> t.ReadTable:
    return t.ReadTable(1, part, token, (TableKey(KEY),))


def value_in(wire: WireClient, part: str) -> bytes | None:
    (entry,) = wire.ask(get(part), t.TableRead).entries
    return None if entry.key.version == NO_KEY else entry.value


# Cut short


class Seen(NamedTuple):
    """Names of tables whose changes were answered."""

    created: set[str]
    filled: set[str]
    gone: set[str]


class Changer(threading.Thread):
    """Makes and deletes tables, until the server is gone."""

    def __init__(self, server: StoreProcess, scope: str) -> None:
        super().__init__()
        self.seen = Seen(set(), set(), set())
        self._scope = scope
        self._client = ControllerClient(controller_port(server))
        self._wire = WireClient(*server.store)
        self._client.ask("createScope", pb.ScopeInfo(scope=scope))

    def run(self) -> None:
        with self._client, self._wire:
            try:
                for number in itertools.count():
                    self._change(f"t{number}", is_deleted=number % 2 == 0)
            except (grpc.RpcError, OSError, EOFError):
                return  # it was killed

    def _change(self, name: str, *, is_deleted: bool) -> None:
        answer = self._client.ask("createKeyValueTable", config(self._scope, name))
        assert answer.status == CREATED.SUCCESS
        self.seen.created.add(name)
        for part in parts_of(self._client, self._scope, name):
            self._wire.ask(put(part, part.encode()), t.TableEntriesUpdated)
        self.seen.filled.add(name)
        if is_deleted:
            self._client.ask("deleteKeyValueTable", named(self._scope, name))
            self.seen.gone.add(name)


def check_tables(server: StoreProcess, scope: str, seen: Seen) -> set[str]:
    """Check that each change was made or was not; return the parts that there are."""
    with ControllerClient(controller_port(server)) as client, WireClient(*server.store) as wire:
        listed = client.ask("listKeyValueTablesInScope", in_scope(scope)).kvtables
        names = {each.kvtName for each in listed}
        last = f"t{len(seen.created)}"
        assert names <= seen.created | {last}
        assert not names & seen.gone
        assert seen.created - seen.gone - names <= {f"t{len(seen.created) - 1}"}
        parts = {name: parts_of(client, scope, name) for name in names}
        for name, some in parts.items():
            assert len(some) == PARTS
            for part in some:
                info = wire.ask(t.GetTableSegmentInfo(1, part, ""), t.TableSegmentInfo)
                assert info.key_length == len(KEY)
                if name in seen.filled:
                    assert value_in(wire, part) == part.encode()
        for name in seen.gone:  # made again it is empty, and has other parts
            client.ask("createKeyValueTable", config(scope, name))
            parts[name] = parts_of(client, scope, name)
            assert {value_in(wire, part) for part in parts[name]} == {None}
            old = segment_name(scope, stream_of(name), 0)
            wire.ask(put(old, b"lost"), NoSuchSegment)
    return {part for some in parts.values() for part in some}


def check_nothing_else_is_left(directory: Path, scope: str, parts: set[str]) -> None:
    checked = open_to_check(directory, repairs=False)
    try:
        segments = {shape.name for shape in checked.segments()}
    finally:
        checked.close()
    assert {name for name in segments if path_of(name)[:1] == (scope,)} == parts


def test_each_change_is_made_or_is_not_wherever_it_is_cut_short(tmp_path: Path) -> None:
    chance = random.Random(5)
    counts = [0, 0]
    with StoreProcess(tmp_path / "data", "--controller-port", "0") as server:
        for number in range(KILLS):
            scope = f"scope-{number}"
            changer = Changer(server, scope)
            changer.start()
            time.sleep(chance.uniform(0.01, LONGEST_S))  # the moment of the kill is the test
            server.kill()
            changer.join()
            server.start()
            parts = check_tables(server, scope, changer.seen)
            server.terminate()
            check_nothing_else_is_left(server.data_dir, scope, parts)
            server.start()
            seen = changer.seen
            counts = [counts[0] + len(seen.created), counts[1] + len(seen.gone)]
        server.terminate()
    assert all(counts), "the server was killed before each kind of change was made once"


def test_a_table_outlasts_a_kill_with_its_entries(start_store: StartStore) -> None:
    server = start_store("--durability", "disk")
    with ControllerClient(controller_port(server)) as client, WireClient(*server.store) as wire:
        client.ask("createScope", pb.ScopeInfo(scope="s"))
        client.ask("createKeyValueTable", config("s", "t", partitions=1))
        (part,) = parts_of(client, "s", "t")
        wire.ask(put(part, b"kept"), t.TableEntriesUpdated)
    server.kill()
    server.start()
    with ControllerClient(controller_port(server)) as client, WireClient(*server.store) as wire:
        answer = client.ask("getKeyValueTableConfiguration", named("s", "t"))
        assert answer.config == config("s", "t", partitions=1)
        assert value_in(wire, part) == b"kept"
        deleted = client.ask("deleteScopeRecursive", pb.ScopeInfo(scope="s"))
        assert deleted.status == pb.DeleteScopeStatus.SUCCESS
        wire.ask(get(part), NoSuchSegment)


# Rights

TABLE, PART = "^mine/t$", "mine/t_kvtable/0.#epoch.0"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HutchServer]:
    """A server whose user `all` has made the table mine/t."""
    file = users_of_streams(
        tmp_path,
        all=(".*", ".*", ".*"),
        maker=(TABLE, "", ""),
        writer=("", TABLE, ""),
        reader=("", "", TABLE),
        parts=("", "", "^mine/t_kvtable$"),
        none=("", "", "^mine/other$"),
    )
    with HutchServer(tmp_path / "data", *BESIDE, "--users", str(file)) as server:
        with controller(server, "all") as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))
            client.ask("createKeyValueTable", config("mine", "t", partitions=1))
        yield server
        server.terminate()


def client_of(server: HutchServer, user: str) -> WireClient:
    with controller(server, user) as client:
        token: str = client.ask("getDelegationToken", of("mine", "t")).delegationToken
    return WireClient(*server.store, token=token)


def is_refused(client: WireClient, request: WireMessage) -> bool:
    client.send(request)
    answer = client.receive()
    if isinstance(answer, AuthTokenCheckFailed):
        assert answer.error_code == REFUSED
        return True
    return False


def test_a_user_that_may_configure_makes_and_deletes_a_table(server: HutchServer) -> None:
    for user in ("writer", "reader", "parts", "none"):
        with controller(server, user) as client:
            assert client.refusal("deleteKeyValueTable", named("mine", "t")) is DENIED
            assert client.refusal("createKeyValueTable", config("mine", "t")) is DENIED
    with controller(server, "maker") as client:
        assert client.ask("deleteKeyValueTable", named("mine", "t")).status == 0
        assert client.ask("createKeyValueTable", config("mine", "t")).status == 0
        assert client.refusal("createKeyValueTable", config("mine", "other")) is DENIED


def test_a_table_is_told_to_users_with_a_right_on_it_and_listed_for_readers(
    server: HutchServer,
) -> None:
    for user in ("maker", "writer", "reader", "parts"):
        with controller(server, user) as client:
            assert client.ask("getKeyValueTableConfiguration", named("mine", "t")).status == 0
            assert parts_of(client, "mine", "t") == [PART]
            client.ask("getURI", pb.SegmentId(streamInfo=of("mine", "t_kvtable")))
    with controller(server, "none") as client:
        for call in ("getKeyValueTableConfiguration", "getCurrentSegmentsKeyValueTable"):
            assert client.refusal(call, named("mine", "t")) is DENIED
        where = pb.SegmentId(streamInfo=of("mine", "t_kvtable"))
        assert client.refusal("getURI", where) is DENIED
        assert client.refusal("getDelegationToken", of("mine", "t")) is DENIED
    readers = set()
    for user in ("all", "maker", "writer", "reader", "parts", "none"):
        with controller(server, user) as client:
            answer = client.ask("listKeyValueTablesInScope", in_scope("mine"))
            assert answer.kvtables in ([], [named("mine", "t")])
            if answer.kvtables:
                readers.add(user)
    assert readers == {"all", "reader", "parts"}


def test_a_reader_reads_entries_and_a_writer_updates_them(server: HutchServer) -> None:
    with client_of(server, "writer") as writer:
        writer.ask(put(PART, b"value", writer.token), t.TableEntriesUpdated)
        assert is_refused(
            writer, t.DeleteTableSegment(1, PART, must_be_empty=False, token=writer.token)
        )
        other = "mine/other_kvtable/0.#epoch.0"
        assert is_refused(writer, put(other, b"value", writer.token))
    for user in ("reader", "parts"):
        with client_of(server, user) as reader:
            (entry,) = reader.ask(get(PART, reader.token), t.TableRead).entries
            assert entry.value == b"value"
            assert is_refused(reader, put(PART, b"other", reader.token))
            keys = (TableKey(KEY),)
            assert is_refused(reader, t.RemoveTableKeys(1, PART, reader.token, keys))
    with client_of(server, "maker") as maker:
        assert is_refused(maker, get(PART, maker.token))
        assert is_refused(maker, put(PART, b"other", maker.token))


def test_a_token_for_a_stream_without_a_table_is_none_for_a_state_of_that_name(
    server: HutchServer,
) -> None:
    with controller(server, "all") as client:
        client.ask("deleteKeyValueTable", named("mine", "t"))
        token = client.ask("getDelegationToken", of("mine", "t_kvtable")).delegationToken
    state = "mine/t_kvtable/9.#epoch.0"
    with WireClient(*server.store) as wire:
        wire.ask(t.CreateTableSegment(1, state, token), m.SegmentCreated)
    with client_of(server, "writer") as writer:
        assert is_refused(writer, put(state, b"value", writer.token))
    with controller(server, "maker") as client:
        answer = client.ask("createKeyValueTable", config("mine", "t"))
        assert answer.status == CREATED.TABLE_EXISTS


def test_rights_in_a_file_of_users_may_name_a_table(
    tmp_path: Path, start_store: StartStore
) -> None:
    hashed = PasswordHash.of(PASSWORD)
    resource = "prn::/scope:mine/key-value-table:t"
    file = tmp_path / "users"
    file.write_text(
        f"all:{hashed}:prn::/scope:mine,READ_UPDATE\n"
        f"owner:{hashed}:{resource},READ_UPDATE\n"
        f"reader:{hashed}:{resource},READ\n"
    )
    server = start_store("--users", str(file))
    with controller(server, "all") as client:
        client.ask("createScope", pb.ScopeInfo(scope="mine"))
    with controller(server, "reader") as client:
        assert client.refusal("createKeyValueTable", config("mine", "t", 1)) is DENIED
    with controller(server, "owner") as client:
        assert client.ask("createKeyValueTable", config("mine", "t", 1)).status == 0
        assert client.refusal("createKeyValueTable", config("mine", "u", 1)) is DENIED
    with client_of(server, "owner") as owner:
        owner.ask(put(PART, b"value", owner.token), t.TableEntriesUpdated)
    with client_of(server, "reader") as reader:
        (entry,) = reader.ask(get(PART, reader.token), t.TableRead).entries
        assert entry.value == b"value"
        assert is_refused(reader, put(PART, b"other", reader.token))
