"""The store and the model side by side: each call goes to both, and both must answer the same."""

from collections.abc import Callable, Sequence
from uuid import UUID

from store.api import NOT_EXISTS, Durability, ReadResult, TableEntry
from store.errors import KeyVersionMismatch, LengthMismatch, StoreError
from tests.conformance.harness import Loop, Pending, Rig
from tests.conformance.implementations import open_local
from tests.conformance.model import Model, ModelWriter
from tests.simulation.disk import Disk
from tests.simulation.history import observe, state_of
from tests.simulation.world import SIZES


class TwinSession:
    """A session of one writer in both."""

    def __init__(
        self, writer: UUID, twin: "Twin", opened: Pending, model: ModelWriter | None
    ) -> None:
        self.writer = writer
        self.model = model
        self._twin = twin
        self._opening = twin.openings
        self._opened = opened

    @property
    def is_current(self) -> bool:
        """Whether the store was not opened again since."""
        return self._opening == self._twin.openings

    def append(
        self, data: bytes, event_number: int, expected_length: int | None = None
    ) -> Pending | None:
        """Append in both; None if there is no session."""
        if self.model is None:
            return None
        return self._twin.both(
            self._opened.value.append,
            self.model.append,
            data,
            event_number,
            expected_length=expected_length,
        )


class Twin:
    """A local store on a disk in memory, and its model."""

    def __init__(self, durability: Durability) -> None:
        self.model = Model()
        self.openings = 0
        self._durability = durability
        self._loop = Loop()
        self._disk = Disk()
        self._rig = self._open()
        self._under_way: list[tuple[Pending, object]] = []

    def _open(self) -> Rig:
        self.openings += 1
        disk = self._disk
        return Rig(lambda loop: open_local(disk, loop, self._durability, **SIZES), self._loop)

    def both(
        self,
        call: Callable[..., object],
        in_model: Callable[..., object],
        *arguments: object,
        **options: object,
    ) -> Pending:
        """Call the store, which answers later, and the model, which does it at once."""
        pending = self._rig.start(call, *arguments, **options)  # type: ignore[arg-type] # no `then`
        self._under_way.append((pending, _outcome(in_model, *arguments, **options)))
        return pending

    def read(self, name: str, position: int, size: int) -> None:
        """Read from both: the store may give less than there is, but not nothing."""
        self.settle()
        pending = self._rig.start(self._rig.store.read, name, position, size)
        self._rig.wait(pending)
        expected = _outcome(self.model.read, name, position, size)
        if isinstance(expected, ReadResult) and isinstance(pending.result, ReadResult):
            data = pending.result.data
            assert expected.data.startswith(data)
            assert bool(data) == bool(expected.data)
            is_whole = len(data) == len(expected.data)
            end, at_tail = expected.end_of_segment and is_whole, expected.at_tail and is_whole
            assert pending.result == ReadResult(position, data, end, at_tail)
        else:
            _must_agree(pending, expected)

    def call(self, method: str, *arguments: object, **options: object) -> Pending:
        """Call a method that both have, by its name."""
        store, model = getattr(self._rig.store, method), getattr(self.model, method)
        return self.both(store, model, *arguments, **options)

    def open_writer(self, name: str, writer: UUID) -> TwinSession:
        opened = self._rig.start(self._rig.store.open_writer, name, writer)
        # A session may know appends that are called behind it: there are none.
        self._rig.wait(opened)
        model = _outcome(self.model.open_writer, name, writer)
        expected = model if isinstance(model, StoreError) else None
        self._under_way.append((opened, expected))
        return TwinSession(writer, self, opened, model if isinstance(model, ModelWriter) else None)

    def update_table(
        self, name: str, entries: Sequence[TableEntry], too_long: int | None = None
    ) -> None:
        """Update a table in both; the store's versions become the model's.

        `too_long`: how far the length that is demanded is from the real one; None demands none.
        """
        pending, expected = self._change_table("update_table", name, entries, too_long)
        versions = None if isinstance(pending.result, StoreError) else pending.result
        outcome = _outcome(
            self.model.update_table, name, entries, expected_length=expected, versions=versions
        )
        _must_agree(pending, outcome)

    def remove_keys(
        self, name: str, keys: Sequence[TableEntry], too_long: int | None = None
    ) -> None:
        """Remove keys in both; `too_long` as in `update_table`."""
        pending, expected = self._change_table("remove_keys", name, keys, too_long)
        _must_agree(pending, _outcome(self.model.remove_keys, name, keys, expected_length=expected))

    def _change_table(
        self, method: str, name: str, entries: Sequence[TableEntry], too_long: int | None
    ) -> tuple[Pending, int | None]:
        """Change the store's table; gives also the model's length of the one that was demanded.

        Tables of the two differ in length: those of the model are counted in entries.
        """
        self.settle()
        info = self._rig.start(self._rig.store.info, name)
        self._rig.wait(info)
        demanded = expected = None
        if too_long is not None and not isinstance(info.result, StoreError):
            demanded = info.result.length + too_long
            expected = self.model.segment(name).length + too_long
        change = getattr(self._rig.store, method)
        pending = self._rig.start(change, name, entries, expected_length=demanded)
        self._rig.wait(pending)
        error = pending.result
        if isinstance(error, LengthMismatch | KeyVersionMismatch):
            self._check_mismatch(name, error, info.result.length)
        return pending, expected

    def _check_mismatch(
        self, name: str, error: LengthMismatch | KeyVersionMismatch, length: int
    ) -> None:
        """What was found instead is what there is."""
        if isinstance(error, LengthMismatch):
            assert error.length == length
        else:
            (found,) = self.model.read_table(name, [error.key])
            assert error.version == (found.version if found else NOT_EXISTS)

    def settle(self) -> None:
        """Wait for all answers and compare them."""
        self._rig.wait(*(pending for pending, _ in self._under_way))
        for pending, expected in self._under_way:
            _must_agree(pending, expected)
        self._under_way.clear()

    def compare(self, names: Sequence[str], attributes: Sequence[UUID]) -> None:
        """All that can be seen of the store is what the model holds."""
        self.settle()
        seen = observe(self._rig, names, attributes)
        assert seen == {name: state_of(self.model, name) for name in names}

    def reopen(self) -> None:
        self.settle()
        self._rig.close()
        assert not self._rig.violations, self._rig.violations
        self._disk = Disk(self._disk.image())
        self._rig = self._open()

    def kill(self) -> None:
        """Open what a process leaves that dies with everything answered."""
        self.settle()
        image, left = self._disk.image(), self._rig
        left.close()  # for its threads; its disk is not looked at again
        self._disk = Disk(image)
        self._rig = self._open()

    def close(self) -> None:
        self.settle()
        self._rig.close()
        assert not self._rig.violations, self._rig.violations


def _outcome(call: Callable[..., object], *arguments: object, **options: object) -> object:
    try:
        return call(*arguments, **options)
    except StoreError as error:
        return error


def _must_agree(pending: Pending, expected: object) -> None:
    result = pending.result
    if pending.label.startswith("merge_segments") and isinstance(expected, StoreError):
        # Several things may be wrong with a merge at once; which is told is not promised.
        assert isinstance(result, StoreError), f"{pending.label}: {result!r}, model: {expected!r}"
    elif isinstance(expected, StoreError) or isinstance(result, StoreError):
        assert type(result) is type(expected), f"{pending.label}: {result!r}, model: {expected!r}"
    elif expected is not None:
        assert result == expected, f"{pending.label}: {result!r}, model: {expected!r}"
