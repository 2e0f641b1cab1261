import pytest

from gateway.broker.streams.catalogue import CREATING, StreamCatalogue, StreamEntry, key_of
from store.api import TableEntry
from store.errors import CorruptSegment
from tests.unit.gateway.broker.access.access_rig import AccessRig

ENTRY = StreamEntry("orders", 17, {"max-age": "1h"}, 3, CREATING)


@pytest.fixture
def rig() -> AccessRig:
    return AccessRig()


def test_entries_come_back_as_they_were_put(rig: AccessRig) -> None:
    catalogue = StreamCatalogue(rig.store, "t")
    assert rig.run(catalogue.load()) == []
    topology = TableEntry(b"amq.x", b"y")
    long_name = StreamEntry("n" * 30_000, 18)
    rig.run(catalogue.put(ENTRY, long_name, topology=[topology]))

    reopened = StreamCatalogue(rig.store, "t")
    assert sorted(rig.run(reopened.load()), key=lambda entry: entry.generation) == [
        ENTRY,
        long_name,
    ]
    assert [entry.key for entry in reopened.topology] == [b"amq.x"]


@pytest.mark.parametrize(
    ("written", "stands_there"),
    [
        (b"orders", b"0rders"),  # not the name that the key says
        (b'"generation"', b'"generetion"'),
        (b"17", b"1."),
        (b"17", b"1e1"),
        (b"creating", b"creatinG"),
        (b'"max-age": "1h"', b'"max-length-bytes": "1h"'),
        (b'{"max-age": "1h"}', b"[]"),
        (b"{", b"."),
        (b"orders", b"order\xff"),
    ],
)
def test_a_damaged_entry_is_named(written: bytes, stands_there: bytes) -> None:
    sound = ENTRY.pack()
    assert StreamEntry.unpack(TableEntry(key_of("orders"), sound)) == ENTRY
    damaged = sound.replace(written, stands_there)
    assert damaged != sound
    with pytest.raises(CorruptSegment, match="orders"):
        StreamEntry.unpack(TableEntry(key_of("orders"), damaged))
