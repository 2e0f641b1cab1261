"""A broker whose stages and commits are called without a connection."""

from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gateway.broker.commits.commits import Commits
from gateway.broker.commits.finishing import Committed
from gateway.broker.errors import BrokerError
from gateway.log import names
from gateway.pending import Pending, start
from store.errors import NoSuchSegment
from tests.unit.gateway.log.log_rig import chunks_in, encode
from tests.unit.gateway.stream.link_rig import Broker

T = TypeVar("T")

USER = "guest"
SINK = "query"


def anything(_stream: str) -> None:
    """Allow every target."""


class StagingRig:
    """The commits of the default virtual host."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self.broker = broker
        self._directory = directory
        for name in ("a", "b"):
            self.run(broker.streams.create(name, {}))

    @property
    def commits(self) -> Commits:
        return self.broker.virtual_host.commits

    def run(self, coroutine: Coroutine[Pending[Any], None, T]) -> T:
        return self.broker.store_rig.run(coroutine)

    def start(self, coroutine: Coroutine[Pending[Any], None, T]) -> Pending[T]:
        return start(coroutine)

    def restart(self, *, is_clean: bool = True) -> None:
        """Open the same directory anew."""
        if is_clean:
            self.broker.stop()
        else:
            self.broker.close()
        self.broker = Broker(self._directory)

    # Staging

    def open(self, stream: str = "a", *, user: str = USER, sink: str = SINK, batch: int = 0) -> int:
        return self.commits.filling.open(user, sink, batch, stream).number

    def add(
        self, number: int, records: Sequence[bytes], sequence: int = 0, *, user: str = USER
    ) -> None:
        data = b"".join(map(encode, records))
        count = len(records)
        self.run(self.commits.filling.add(user, number, sequence, count, count, data))

    def close(self, number: int, *, user: str = USER) -> None:
        self.run(self.commits.filling.close(user, number))

    def staged(self, stream: str, *records: bytes, user: str = USER, **more: Any) -> int:  # noqa: ANN401 - those of `open`
        """Return the number of a closed stage with some records."""
        number = self.open(stream, user=user, **more)
        if records:
            self.add(number, records, user=user)
        self.close(number, user=user)
        return number

    def commit(
        self, *numbers: int, user: str = USER, sink: str = SINK, batch: int = 0
    ) -> Committed:
        return self.run(self.commits.commit(user, sink, batch, numbers, anything))

    def refused(self, kind: type[BrokerError], coroutine: Coroutine[Any, Any, Any]) -> str:
        """Run a coroutine that must be refused; return its one line."""
        with pytest.raises(kind) as caught:
            self.run(coroutine)
        line = str(caught.value)
        assert "\n" not in line
        return line

    # Looking

    def content(self, stream: str) -> list[bytes]:
        """Return the records of a stream."""
        rig = self.broker.store_rig
        entry = self.broker.stream(stream).entry
        segment = names.data_segment("/", stream, entry.generation)
        info = rig.do(rig.store.info, segment)
        content = b""
        while len(content) < info.length:
            left = info.length - len(content)
            content += rig.do(rig.store.read, segment, len(content), left).data
        return [record for chunk, _ in chunks_in(content) for record in chunk.records()]

    def settle(self) -> None:
        """Turn until nothing is left of the commits that are done."""
        self.broker.loop.run_until(lambda: not self.commits.under_way)

    def rows(self) -> dict[bytes, int]:
        """Return how many rows of each kind are stored."""
        rig = self.broker.store_rig
        page = rig.do(rig.store.iterate_table, names.commits_table("/"))
        kinds = [entry.key[:1] for entry in page.entries]
        return {kind: kinds.count(kind) for kind in dict.fromkeys(sorted(kinds))}

    def has_segment(self, stage: int) -> bool:
        rig = self.broker.store_rig
        try:
            rig.do(rig.store.info, names.stage_segment("/", stage))
        except NoSuchSegment:
            return False
        return True
