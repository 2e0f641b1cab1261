import pytest

from gateway.broker.kept_table import KeptTable
from store.errors import StoreError
from tests.unit.gateway.broker.access.access_rig import AccessRig


@pytest.fixture
def rig() -> AccessRig:
    return AccessRig()


def reread(rig: AccessRig) -> dict[bytes, bytes]:
    return rig.run(KeptTable(rig.store, "t").load())


def test_what_is_written_is_read_and_what_is_removed_is_not(rig: AccessRig) -> None:
    table = KeptTable(rig.store, "t")
    assert rig.run(table.load()) == {}
    rig.run(table.write({b"a": b"1", b"b": b"2", b"c": b"3"}))
    rig.run(table.write({b"a": b"4", b"b": None, b"never": None}))
    rig.run(table.write({}))

    assert reread(rig) == {b"a": b"4", b"c": b"3"}


def test_a_removal_that_was_cut_short_counts(
    rig: AccessRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The update says it all; taking keys out is only tidying, and the next reader does it."""
    table = KeptTable(rig.store, "t")
    rig.run(table.load())
    rig.run(table.write({b"a": b"1", b"b": b"2"}))

    def refuse(*_: object, done: object) -> None:
        rig.loop.call_soon(done, StoreError("no"))  # type: ignore[arg-type]  # a callback

    with monkeypatch.context() as patched:
        patched.setattr(rig.store, "remove_keys", refuse)
        rig.run(table.write({b"a": None, b"b": b"3"}))

    assert reread(rig) == {b"b": b"3"}
