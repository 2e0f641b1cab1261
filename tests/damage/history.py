"""Data directories with a rich history, made by the broker's own code, in small files.

Three openings: closed, killed, and the last one, which ends in one of the ways of `VARIANTS`. A
killed process is a copy of the directory while it runs: all that it wrote is there.
"""

from __future__ import annotations

import random
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from unittest import mock

from gateway.broker.access.model import User, UserPermission
from gateway.broker.access.passwords import PasswordHash
from gateway.broker.hosts.super_streams import create_super_stream
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.rules.policies import Policy
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.log import names
from gateway.log.log import StreamLog
from store.api import Durability
from tests.chunks import Entry, SubBatch
from tests.damage.ledger import Built, Ledger, Span, Stored, Stream
from tests.damage.reading import rows_of
from tests.damage.server import BEGIN_MS, Served
from tests.unit.gateway.log.log_rig import put

JOURNAL: Final = "journal"
HOSTS: Final = ("/", "side")
PASSWORD: Final = PasswordHash.parse("gI7vjLZ2gsmfJpNsjXMlFTBrzXpxcOkGQV7bNHJBkY1mCLC6")
PLAIN: Final = ("plain", "named", "filtered", "batched", "cut", "orders-0", "orders-1")


class Variant(NamedTuple):
    """How a history ends."""

    name: str
    durability: Durability
    is_killed: bool


VARIANTS: Final = (
    Variant("closed", Durability.DISK, is_killed=False),
    Variant("killed", Durability.DISK, is_killed=True),
    Variant("killed-interval", Durability.INTERVAL, is_killed=True),
    Variant("killed-os", Durability.OS, is_killed=True),
)


def build(variant: Variant, folder: Path) -> Built:
    """Make one data directory below a folder."""
    chance = random.Random(variant.name)
    with mock.patch.object(secrets, "randbits", chance.getrandbits):
        history = History(folder, chance)
        history.begin(variant.durability)
        history.set_up()
        history.publish_rounds(6)
        history.keep_older("first-opening")
        history.end()
        history.begin(variant.durability)
        history.change()
        history.publish_rounds(8)
        history.keep_older("second-opening")
        history.kill()
        history.begin(variant.durability)
        history.publish_rounds(16)
        history.keep_older("third-opening")
        history.change_again()
        history.publish_rounds(16)
        return history.finish(variant)


class History:
    """A broker that is told to do things, each of which is awaited and written down."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder = folder
        self._directory = folder / "data"
        self._chance = chance
        self._older: list[Path] = []
        self._ledger = Ledger()
        self._now_ms = BEGIN_MS
        self._served: Served | None = None
        self._journal: dict[str, bytes] = {}
        self._checkpoint = b""
        self._ids: dict[str, int] = {}

    # Openings

    def begin(self, durability: Durability) -> None:
        """Start a broker."""
        self._served = Served(self._directory, durability)
        assert self._served.store is not None
        self._catalogue = self._served.store.catalogue
        self._broker = self._served.broker
        self._run = self._broker.store_rig.run
        self._done()

    def end(self) -> None:
        """Stop it in good order."""
        assert self._served is not None
        self._served.stop()
        self._note_files()
        self._look_at_journal()

    def kill(self) -> None:
        """Kill it: go on with a copy of what is on the disk now."""
        assert self._served is not None
        self._note_files()
        copy = self._folder / "killed"
        shutil.copytree(self._directory, copy)
        self._served.stop()
        shutil.rmtree(self._directory)
        copy.rename(self._directory)

    def keep_older(self, name: str) -> None:
        """Keep a copy of the directory, from which files may come back."""
        copy = self._folder / name
        shutil.copytree(self._directory, copy)
        self._older.append(copy)

    def finish(self, variant: Variant) -> Built:
        """End in one of the ways."""
        if variant.is_killed:
            self.kill()
        else:
            self.end()
            self._ledger.checkpoint_step = self._ledger.step
        self._ledger.unclean_count = 1 + variant.is_killed
        kinds = self._kinds()
        return Built(variant.name, self._directory, self._older, self._ledger, kinds)

    # What is done

    def set_up(self) -> None:
        """Create users, virtual hosts, policies, streams."""
        access, hosts = self._broker.access, self._broker.virtual_hosts
        self._do(hosts.create("side", description="beside", tags=("a", "b")))
        for name, tags in (("anna", ("management",)), ("bert", ()), ("gone", ("monitoring",))):
            self._do(access.put_user(User(name, PASSWORD, tags)))
            self._do(
                access.put_permission(
                    UserPermission(
                        user=name, virtual_host="/", configure="^a", write="b$", read=".*"
                    )
                )
            )
        self._do(
            access.put_permission(
                UserPermission(
                    user="anna", virtual_host="side", configure="", write="x.*", read="x.*"
                )
            )
        )
        self._do(access.change_user_limits("bert", lambda _: {"max-connections": 5}))
        self._do(access.set_virtual_host_limits("side", {"max-queues": 50}))
        host = self._host("/")
        self._do(
            host.policies.put(
                Policy("long", pattern="^plain$", apply_to="streams", definition={"max-age": "7D"})
            )
        )
        self._do(
            host.policies.put(
                Policy("gone", pattern="^none$", apply_to="streams", definition={"max-age": "1D"})
            )
        )
        limit = Policy(
            "large",
            pattern="^bulk$",
            apply_to="streams",
            definition={"max-length-bytes": 50_000_000},
        )
        self._do(host.policies.operators.put(limit))
        for name in ("plain", "bulk", "named", "filtered", "batched", "gone"):
            self._do(host.streams.create(name, {}))
        small = {"stream-max-segment-size-bytes": "1000"}
        self._do(host.streams.create("cut", small))
        self._do(self._host("side").streams.create("plain", {"max-age": "1Y"}))
        partitions = ["orders-0", "orders-1"]
        self._do(create_super_stream(host, "orders", partitions, ["0", "1"], {}))
        self._do(host.exchanges.declare(Exchange("topics", "topic", arguments={"x": 1})))
        for key in ("a.*", "b.#"):
            self._do(
                host.exchanges.bind(Binding(source="topics", destination="plain", routing_key=key))
            )
        self._publish(("/", "gone"), [b"will be gone"])

    def change(self) -> None:
        """Change and delete some of it."""
        access, host = self._broker.access, self._host("/")
        self._do(access.delete_user("gone"))
        self._do(
            access.put_permission(
                UserPermission(user="bert", virtual_host="/", configure="", write="", read="named")
            )
        )
        self._do(access.put_user(User("carl", PASSWORD, ("administrator",))))
        self._do(host.policies.delete("gone"))
        self._do(host.streams.delete("gone", lambda _stream: None))
        self._truncate("cut", 10)
        self._do(
            host.exchanges.unbind(Binding(source="topics", destination="plain", routing_key="b.#"))
        )

    def change_again(self) -> None:
        """Change some of it once more, after the last start."""
        access, host = self._broker.access, self._host("/")
        self._do(access.delete_permission("bert", "/"))
        self._do(access.put_user(User("anna", PASSWORD, ("policymaker",))))
        self._do(
            host.policies.put(
                Policy("long", pattern="^plain$", apply_to="streams", definition={"max-age": "8D"})
            )
        )
        self._do(host.streams.create("late", {}))
        self._publish(("/", "late"), [b"late"])
        self._truncate("cut", 30)

    def publish_rounds(self, count: int) -> None:
        """Publish to all streams and store offsets."""
        chance = self._chance
        for number in range(count):
            for name in chance.sample(PLAIN, len(PLAIN)):
                self._publish_to(("/", name), number)
            if number % 3 == 0:
                bulk = [chance.randbytes(1_100) for _ in range(2)]
                self._publish(("/", "bulk"), bulk)
            if number % 2:
                self._publish_to(("side", "plain"), number)
            for reference in ("reader", f"reader-{chance.randrange(5)}"):
                self._store_offset(("/", "plain"), reference)
            self._store_offset(("/", "named"), "é" * 40)

    def _publish_to(self, stream: Stream, number: int) -> None:
        chance, name = self._chance, stream[1]
        bodies = [
            b"%s %d %d " % (name.encode(), number, each) + chance.randbytes(chance.randrange(120))
            for each in range(chance.randint(1, 4))
        ]
        if name == "named":
            self._publish(stream, bodies, reference=chance.choice(("one", "two", "three" * 20)))
        elif name == "filtered":
            self._publish(stream, bodies, value=chance.choice((b"", b"red", b"blue", b"green")))
        elif name == "batched":
            self._publish(stream, [SubBatch.of(bodies), b"alone", SubBatch.of(bodies, 1)])
        else:
            self._publish(stream, bodies, reference="p" if number % 4 == 0 else "")

    def _publish(
        self, stream: Stream, entries: Sequence[Entry], *, reference: str = "", value: bytes = b""
    ) -> None:
        self._now_ms += self._chance.choice((1, 100, 700, 2_000))
        self._broker.now_ms = self._now_ms
        log = self._log(stream)
        first = log.committed_next_offset
        last_id = self._ids.get(reference, 0) + self._chance.randint(1, 5)
        values = [value] if value else ()
        put(log, entries, reference=reference.encode(), first_id=last_id, values=values)
        self._broker.loop.run_until(lambda: log.is_idle)
        if reference:
            self._ids[reference] = last_id + len(entries) - 1
            self._ledger.note(("sequence", *stream, reference), self._ids[reference])
        records = self._ledger.records.setdefault(stream, {})
        bodies = [
            body
            for entry in entries
            for body in (entry.records() if isinstance(entry, SubBatch) else [entry])
        ]
        for offset, body in enumerate(bodies, first):
            records[offset] = Stored(self._now_ms, body, value, self._ledger.step)
        self._done()

    def _store_offset(self, stream: Stream, reference: str) -> None:
        streams = self._host(stream[0]).streams
        offset = self._log(stream).committed_next_offset - 1
        streams.logs.store_offset(streams.find(stream[1]), reference.encode(), offset)
        self._run(streams.logs.tracking.settled())
        self._ledger.note(("offset", *stream, reference), offset)
        self._done()

    def _truncate(self, name: str, offset: int) -> None:
        first = self._run(
            self._host("/").streams.logs.truncate(self._host("/").streams.find(name), offset=offset)
        )
        self._ledger.firsts.setdefault(("/", name), []).append((self._ledger.step, first))
        self._done()

    def _host(self, name: str) -> VirtualHost:
        host = self._broker.virtual_hosts.find(name)
        assert host is not None
        return host

    def _log(self, stream: Stream) -> StreamLog:
        streams = self._host(stream[0]).streams
        return self._run(streams.logs.of(streams.find(stream[1])))

    def _do(self, change: object) -> None:
        self._run(change)  # type: ignore[arg-type]  # a coroutine of any of them
        self._done()

    # What is written down

    def _done(self) -> None:
        """Write down what the step has changed; begin the next one."""
        self._ledger.note_rows(rows_of(self._broker))
        self._note_files()
        self._look_at_journal()
        self._ledger.step += 1

    def _look_at_journal(self) -> None:
        for path in sorted((self._directory / JOURNAL).iterdir()):
            name, content = f"{JOURNAL}/{path.name}", path.read_bytes()
            before = self._journal.get(name, b"")
            if before == content:
                continue
            self._journal[name] = content
            before = before.ljust(len(content), b"\0")
            first, end = _changed(before, content)
            if first < end:
                self._ledger.spans.append((self._ledger.step, Span(name, first, end)))
        checkpoint = (self._directory / "checkpoint").read_bytes()
        if checkpoint != self._checkpoint:
            self._checkpoint, self._ledger.checkpoint_step = checkpoint, self._ledger.step

    def _note_files(self) -> None:
        """Write down whose the data files are."""
        for segment in self._catalogue.segments.values():
            for _, file in segment.committed.extents:
                name = f"data/{file.number}"
                self._ledger.files[name] = segment.name
                self._ledger.file_steps.setdefault(name, self._ledger.step)

    def _kinds(self) -> dict[str, list[str]]:
        kinds: dict[str, list[str]] = {}
        paths = sorted(path for path in self._directory.rglob("*") if path.is_file())
        used = {span.file for step, span in self._ledger.spans if step > self._needed_from()}
        for path in paths:
            name = str(path.relative_to(self._directory))
            segment = self._ledger.files.get(name)
            if segment is not None:
                kind = _kind_of(segment)
            elif name.startswith(JOURNAL):
                kind = "journal" if name in used else "spare journal"
            else:
                kind = "data of nobody" if name.startswith("data/") else name
            kinds.setdefault(kind, []).append(name)
        return kinds

    def _needed_from(self) -> int:
        return self._ledger.checkpoint_step


_TABLES: Final[Mapping[str, str]] = {
    names.server_table("server"): "table of openings",
    names.server_table("access"): "table of users",
    names.server_table("virtual-hosts"): "table of virtual hosts",
    **{names.meta_table(host): "table of streams" for host in HOSTS},
    **{names.tracking_table(host): "table of tracking" for host in HOSTS},
    **{names.policy_table(host): "table of policies" for host in HOSTS},
    **{names.operator_policy_table(host): "table of operator policies" for host in HOSTS},
}


def _kind_of(segment: str) -> str:
    if segment in _TABLES:
        return _TABLES[segment]
    if segment.endswith("-index/0.#epoch.0"):
        return "index"
    if segment.endswith("-filters/0.#epoch.0"):
        return "filters"
    return "other tables" if "_kvtable" in segment else "chunks"


def _changed(before: bytes, after: bytes) -> tuple[int, int]:
    """Return the start and the end of what differs between two contents of one size.

    The start is not before the end if nothing differs.
    """
    changes = (int.from_bytes(before) ^ int.from_bytes(after)).to_bytes(len(after))
    return len(after) - len(changes.lstrip(b"\0")), len(changes.rstrip(b"\0"))
