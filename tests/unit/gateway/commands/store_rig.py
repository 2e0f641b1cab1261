"""A data directory that a broker has filled, and its store behind the broker's back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.commands.store_check import run
from gateway.log.names import data_segment
from gateway.log.recovery.log_check import chunks_from
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from store.local.store_check import CheckedStore, open_to_check
from tests.chunks import Entry
from tests.integration.administrator import run_here
from tests.unit.gateway.stream.link_rig import Broker


class Stored:
    """A data directory, in which one thing after the other is done."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def broker(self) -> Iterator[Broker]:
        """Open a broker on the directory; it ends in good order."""
        broker = Broker(self.directory)
        yield broker
        broker.stop()

    @contextmanager
    def store(self) -> Iterator[CheckedStore]:
        """Open the store alone, to change something in it."""
        checked = open_to_check(self.directory, repairs=True)
        yield checked
        checked.close()

    def publish(self, stream: str, *chunks: list[Entry], reference: str = "shop") -> str:
        """Publish to a stream, which is made if it is not there; return its segment of chunks."""
        with self.broker() as broker:
            client = broker.link()
            client.request("create_stream", m.CreateStream(stream, {}))
            client.declare(1, stream, reference)
            number = 0
            for chunk in chunks:
                client.publish(1, *enumerate(chunk, number + 1))
                broker.settle(stream)
                number += len(chunk)
            return data_segment("/", stream, broker.stream(stream).entry.generation)

    def read(self, stream: str, count: int) -> list[bytes]:
        """Return the first records of a stream, at least so many, as a client reads them."""
        with self.broker() as broker:
            client = broker.link()
            subscribed = client.code("subscribe", m.Subscribe(1, stream, FIRST, 100, {}))
            assert subscribed == ResponseCode.OK
            found: list[bytes] = []

            def has_all() -> bool:
                found.extend(each for one in client.deliver(1) for each in one.chunk.records())
                return len(found) >= count

            broker.loop.run_until(has_all)
            return found

    def chunk_places(self, segment: str) -> list[tuple[int, int]]:
        """Return where each chunk begins and ends."""
        with self.store() as checked:
            found = list(run(checked, chunks_from(checked.store, segment, 0)))
        return [(at, at + chunk[1]) for at, chunk, _ in found]

    def ask(self, *words: str) -> tuple[int, list[str]]:
        """Run a command of `hutch store`; return its code and the lines that it prints."""
        code, out, err = run_here("store", *words, "--data", str(self.directory))
        assert err == ""
        return code, out.splitlines()
