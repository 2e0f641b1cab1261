"""Comparison of two answers, and names for values of earlier ones."""

from uuid import UUID

from compat.pravega.answers import Memory, merged
from compat.pravega.case import CONTINUATION, TRANSIENT, Kind
from compat.pravega.requests import MISSING, S, W, info, keys_of, update
from hutch.pravega.error_messages import NoSuchSegment
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import DataAppended, KeepAlive, SegmentCreated
from hutch.pravega.table_messages import TableEntriesUpdated, TableKeysRead, UpdateTableEntries
from hutch.pravega.wire_types import TableKey

OTHER = UUID(int=7)


def memory() -> Memory:
    return Memory("01234567")


def test_names_are_the_same_in_every_play_and_texts_are_left_out() -> None:
    answer = NoSuchSegment(1, MISSING.replace("~~~~~~~~", "01234567"), "at line 7", -1)

    assert memory().words(answer) == "NoSuchSegment request_id=1 segment=~/s/9.#epoch.0 offset=-1"


def test_versions_are_numbered_as_they_appear() -> None:
    seen = memory()

    lines = [seen.words(TableEntriesUpdated(1, versions)) for versions in [(500, 20), (20, 7)]]

    assert lines == [
        "TableEntriesUpdated request_id=1 versions=[version 1, version 2]",
        "TableEntriesUpdated request_id=1 versions=[version 2, version 3]",
    ]


def test_a_request_names_a_version_by_its_number() -> None:
    seen = memory()
    seen.words(TableEntriesUpdated(1, (500, 20)))

    filled = seen.filled(update((b"k", b"v", Kind.VERSION.nth(2))))

    assert isinstance(filled, UpdateTableEntries)
    assert filled.entries[0].key == TableKey(b"k", 20)


def test_the_servers_names_and_marks_are_used_and_not_shown() -> None:
    seen = memory()

    shown = seen.words(SegmentCreated(1, "01234567/s/0#transient.abc"))
    page = seen.words(TableKeysRead(1, "t", (), b"mark"))

    assert shown == "SegmentCreated request_id=1 segment=~/s/0#transient.…"
    assert page == "TableKeysRead request_id=1 segment=t keys=[] continuation=more"
    assert seen.filled(info(TRANSIENT)) == info("01234567/s/0#transient.abc")
    assert seen.filled(keys_of(5, CONTINUATION)) == seen.filled(keys_of(5, b"mark"))


def test_acknowledgements_become_one_for_each_writer() -> None:
    answers: list[WireMessage] = [
        DataAppended(W, 1, 0, 3, 10),
        DataAppended(OTHER, 5, 4, 3, 20),
        KeepAlive(),
        DataAppended(W, 3, 1, 3, 30),
    ]

    assert merged(answers) == [
        DataAppended(OTHER, 5, 4, 3, 20),
        KeepAlive(),
        DataAppended(W, 3, 0, 3, 30),
    ]


def test_a_segments_name_holds_what_stands_for_the_play() -> None:
    assert memory().filled(S) == "01234567/s/0.#epoch.0"
