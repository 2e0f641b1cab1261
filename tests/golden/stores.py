"""Data directories of each format version, as a server left them, and what they hold.

    python -m tests.golden.stores FOLDER

makes them anew with the server of the tree it runs in, so those of version 1 were made by the last
tree of that version: `served-closed` and `served-killed` by a real server and clients (two starts
each, so that there is a checkpoint as well as a journal; one is stopped, the other is killed),
`merged-closed` and `merged-killed` by the store's own calls, for what no client leads to. Beside
each archive a JSON file says what has to be there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from gateway.pending import Pending
from gateway.stream.wire import messages as m
from gateway.stream.wire.offsets import FIRST
from store.api import AttributeUpdate, Durability, SegmentStore, TableEntry
from store.local.files import DirectoryFiles
from store.local.store import LocalStore
from tests.chunks import SubBatch
from tests.client import Client
from tests.conformance.harness import Loop
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer

FOLDERS: Final = {version: Path(__file__).parent / f"version_{version}" for version in (1, 2)}
SERVED: Final = ("served-closed", "served-killed")
MERGED: Final = ("merged-closed", "merged-killed")
WRITER: Final = UUID(int=0xC0FFEE)
ATTRIBUTE: Final = UUID(int=0xA77)
SMALL: Final = {
    "data_file_bytes": 64 * 1024,
    "inline_bytes_max": 1024,
    "journal_file_bytes": 64 * 1024,
    "checkpoint_bytes": 1 << 20,
}

Expected = dict[str, Any]


def unpacked(version: int, name: str, directory: Path) -> tuple[Path, Expected]:
    """Unpack a data directory; return it, and what it holds."""
    folder = FOLDERS[version]
    with tarfile.open(folder / f"{name}.tar.xz") as archive:
        archive.extractall(directory, filter="data")
    expected: Expected = json.loads((folder / f"{name}.json").read_text())
    return directory / name, expected


def main(folder: Path) -> None:
    """Make all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*SERVED, *MERGED):
        make = _serve if name in SERVED else _merge
        with tempfile.TemporaryDirectory() as temporary:
            data = Path(temporary) / name
            expected = make(data, is_killed=name.endswith("killed"))
            for left in ("lock", "admin.sock", "reserve"):
                (data / left).unlink(missing_ok=True)
            with tarfile.open(folder / f"{name}.tar.xz", "w:xz") as archive:
                archive.add(data, name)
            text = json.dumps(expected, indent=1, sort_keys=True) + "\n"
            (folder / f"{name}.json").write_text(text)


# By a real server


def _serve(data: Path, *, is_killed: bool) -> Expected:
    server = HutchServer(data, "--durability", "disk")
    try:
        expected: Expected = {"records": {}, "offsets": {}, "publishing_ids": {}, "first": {}}
        _administer(server)
        _publish(server, expected, 1)
        ctl(server, "truncate_stream", "cut", "--before-offset", "20")
        expected["first"]["cut"] = _first_of(server, "cut")
        ctl(server, "delete_stream", "gone")
        server.kill() if is_killed else server.terminate()
        server.start()
        _publish(server, expected, 2)
        expected["records"]["cut"] = [
            each for each in expected["records"]["cut"] if each[0] >= expected["first"]["cut"]
        ]
        expected["listed"] = listed(server)
        server.kill() if is_killed else server.terminate()
    finally:
        server.close()
    return expected


def listed(server: HutchServer) -> Expected:
    """What administrators are told, of all that is stored."""
    users = [(user["name"], sorted(user["tags"])) for user in ctl(server, "list_users")]
    bindings = ctl(server, "list_bindings")
    told: Expected = json.loads(
        json.dumps(
            {
                "users": sorted(users),
                "permissions": _sorted(ctl(server, "list_permissions")),
                "vhosts": sorted(each["name"] for each in ctl(server, "list_vhosts")),
                "policies": _sorted(ctl(server, "list_policies")),
                "streams": sorted(each["name"] for each in ctl(server, "list_streams")),
                "bindings": sorted(
                    (each["source"], each["routing_key"], each["destination"]) for each in bindings
                ),
            }
        )
    )
    return told


def _sorted(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def _administer(server: HutchServer) -> None:
    ctl(server, "add_vhost", "side")
    ctl(server, "add_user", "anna", stdin=b"secret of anna")
    ctl(server, "set_user_tags", "anna", "management")
    ctl(server, "set_permissions", "anna", "a.*", "b.*", ".*", "-p", "side")
    ctl(server, "set_policy", "long", "^small$", '{"max-age": "7D"}')
    ctl(server, "add_stream", "cut", "--argument", "stream-max-segment-size-bytes=1000")
    ctl(server, "add_super_stream", "orders", "--partitions", "2")
    with Client.opened(*server.endpoint) as client:
        for name in ("small", "bulk", "named", "filtered", "batched", "gone"):
            client.create(name)


def _publish(server: HutchServer, expected: Expected, part: int) -> None:
    """Publish to all streams; each call goes on where the last one ended."""
    with Client.opened(*server.endpoint) as client:
        numbers = iter(range(200))
        for name in ("small", "cut", "orders-0", "gone"):
            if name != "gone" or part == 1:
                bodies = [b"%s %d %d" % (name.encode(), part, each) for each in range(30)]
                _send(client, expected, next(numbers), name, [[body] for body in bodies])
        bulk = [bytes([part, each]) * 50_000 for each in range(3)]
        _send(client, expected, next(numbers), "bulk", [bulk])
        for reference in ("one", "two"):
            first = part * 100
            named = [b"%s %d" % (reference.encode(), first + each) for each in range(5)]
            _send(client, expected, next(numbers), "named", [named], reference, first)
            expected["publishing_ids"][reference] = first + 4
        batch = SubBatch.of([b"a%d" % part, b"b", b"c"])
        _send(client, expected, next(numbers), "batched", [[batch, b"alone %d" % part]])
        _send_filtered(client, expected, next(numbers), part)
        client.send_request("store_offset", m.StoreOffset("reader", "small", 10 * part))
        query = m.QueryOffset("reader", "small")
        assert client.ask(m.StoredOffset, "query_offset", query).offset == 10 * part
        expected["offsets"]["reader"] = 10 * part


def _send(
    client: Client,
    expected: Expected,
    publisher: int,
    stream: str,
    frames: list[list[Any]],
    reference: str = "",
    first: int = 1,
) -> None:
    client.declare(publisher, stream, reference)
    for frame in frames:
        client.publish(publisher, [(first + number, each) for number, each in enumerate(frame)])
        client.confirmed_ids(len(frame))
        first += len(frame)
        for each in frame:
            bodies = each.records() if isinstance(each, SubBatch) else [each]
            _expect(expected, stream, bodies)


def _send_filtered(client: Client, expected: Expected, publisher: int, part: int) -> None:
    client.declare(publisher, "filtered")
    for number in range(20):
        value = (None, "red", "blue")[number % 3]
        body = b"%d %d %s" % (part, number, str(value).encode())
        client.publish_filtered(publisher, [(number + 1, value, body)])
        client.confirmed_ids(1)
        _expect(expected, "filtered", [body])


def _expect(expected: Expected, stream: str, bodies: list[bytes]) -> None:
    records = expected["records"].setdefault(stream, [])
    first = records[-1][0] + 1 if records else 0
    records += [[first + number, shown(body)] for number, body in enumerate(bodies)]


def shown(body: bytes) -> str:
    """A body as the JSON file has it: a long one by its ends and size."""
    text = body.decode("latin-1")
    return text if len(text) < 100 else f"{text[:4]}…{text[-4:]} {len(text)}"


def _first_of(server: HutchServer, stream: str) -> int:
    with Client.opened(*server.endpoint) as client:
        client.subscribe(1, stream, FIRST, credit=1)
        return client.delivery().chunk.chunk_id


# By the store's calls


def digest(data: bytes) -> str:
    """What stands for a segment's bytes in the JSON file."""
    return hashlib.sha256(data).hexdigest()


def open_small(directory: Path, loop: Loop) -> LocalStore:
    """Open a store whose files are small."""
    return LocalStore.open(
        DirectoryFiles(directory),
        call_soon_threadsafe=loop.call_soon_threadsafe,
        call_soon=loop.call_soon,
        watch=loop.watch,
        durability=Durability.DISK,
        interval_ms=5,
        **SMALL,  # type: ignore[arg-type]  # numbers
    )


def done(loop: Loop, call: Callable[..., object], *arguments: object, **options: object) -> Any:  # noqa: ANN401  # whatever the operation gives
    """Call an operation of a store and return its value."""
    pending: Pending[Any] = Pending()
    call(*arguments, done=pending.settle, **options)
    loop.run_until(lambda: pending.is_settled)
    return pending.result()


def _merge(data: Path, *, is_killed: bool) -> Expected:
    loop = Loop()
    store = open_small(data, loop)
    expected: Expected = {"segments": {}, "tables": {}}
    _change(loop, store, expected, "a")
    done(loop, store.close)
    store = open_small(data, loop)
    _change(loop, store, expected, "b")
    kept = data.with_name("kept")
    if is_killed:
        shutil.copytree(data, kept)
    done(loop, store.close)
    if is_killed:
        shutil.rmtree(data)
        kept.rename(data)
    return expected


def _change(loop: Loop, store: SegmentStore, expected: Expected, part: str) -> None:
    def segment(name: str, *pieces: bytes) -> str:
        done(loop, store.create_segment, f"{part}/{name}")
        writer = done(loop, store.open_writer, f"{part}/{name}", WRITER)
        for number, piece in enumerate(pieces):
            done(loop, writer.append, piece, number)
        return f"{part}/{name}"

    mark = part.encode()
    target = segment("target", mark * 100, mark.upper() * 3_000)
    source = segment("source", b"1" * 50, b"2" * 2_000)
    update = AttributeUpdate(ATTRIBUTE, 7)
    done(loop, store.merge_segments, target, source, attributes=[update])
    sealed = segment("sealed", mark * 10)
    done(loop, store.seal_segment, sealed)
    cut = segment("cut", *([bytes([n]) * 2_000 for n in range(60)]))
    done(loop, store.truncate_segment, cut, 90_001)
    done(loop, store.delete_segment, segment("gone", b"x"))
    merged = mark * 100 + mark.upper() * 3_000 + b"1" * 50 + b"2" * 2_000
    rest = b"".join(bytes([n]) * 2_000 for n in range(60))[90_001:]
    expected["segments"] |= {
        target: {"start": 0, "sealed": False, "data": digest(merged), "attribute": 7},
        sealed: {"start": 0, "sealed": True, "data": digest(mark * 10)},
        cut: {"start": 90_001, "sealed": False, "data": digest(rest)},
    }
    table = f"{part}/table"
    done(loop, store.create_table, table)
    for number in range(20):
        entries = [TableEntry(b"k%d" % (number % 7), b"%s %d" % (mark, number))]
        (version,) = done(loop, store.update_table, table, entries)
        kept = {"value": entries[0].value.decode(), "version": version}
        expected["tables"].setdefault(table, {})[entries[0].key.decode()] = kept
    done(loop, store.remove_keys, table, [TableEntry(b"k3", b"")])
    del expected["tables"][table]["k3"]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
