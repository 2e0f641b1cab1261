"""Rows of the controller's table, of which some cannot be read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.pravega.controller import table
from gateway.pravega.controller.checking.records import Records
from gateway.pravega.controller.epochs import History, Segment
from gateway.pravega.controller.history import evenly
from gateway.pravega.controller.model import (
    Ended,
    Policy,
    State,
    Stream,
    Transaction,
    TransactionState,
)
from gateway.pravega.controller.policies.places import Place
from gateway.pravega.controller.tables.model import KeyValueTable, TableConfig, TableState
from gateway.pravega.controller.times.writers import Times
from tests.unit.gateway.pravega.controller.readers.test_group import group

STREAM = Stream(
    scope="scope",
    name="stream",
    policy=Policy(segments=2),
    state=State.ACTIVE,
    history=History((evenly(2, 0, 1),)),
)
TRANSACTION = Transaction(
    scope="scope",
    stream="stream",
    identity=7,
    state=TransactionState.OPEN,
    lease_ms=1,
    began_ms=1,
    shape=(Segment(0.0, 1.0, 0, 0),),
)
PAIRS = TableConfig(partitions=2)
PAIR = KeyValueTable(scope="scope", name="pairs", config=PAIRS, state=TableState.ACTIVE, first=0)
ROWS = {
    b"scope\0scope": b"",
    b"stream\0scope/stream": STREAM.to_bytes(),
    b"transaction\0scope/stream/%032x" % 7: TRANSACTION.to_bytes(),
    b"ended\0scope/old": Ended(scope="scope", name="old", next_number=3).to_bytes(),
    b"group\0scope/group": group().to_bytes(),
    b"place\0scope/stream/%016d" % 5: Place(5, 9, {0: 9}).to_bytes(),
    b"times\0scope/stream": Times(scope="scope", stream="stream").to_bytes(),
    b"kvtable\0scope/pairs": PAIR.to_bytes(),
}


def test_rows_of_each_kind_are_taken_in() -> None:
    records = Records()

    assert [key for key, row in ROWS.items() if not records.take(key, row)] == []

    assert records.scopes == {"scope"}
    assert records.streams == {("scope", "stream"): STREAM}
    assert records.transactions == [TRANSACTION]
    assert records.groups == {("scope", "group"): group()}
    assert records.tables == {("scope", "pairs"): PAIR}
    assert records.places == records.times == {("scope", "stream")}


def test_each_kind_of_row_that_the_table_has_is_known() -> None:
    kinds = {each for each in vars(table).values() if isinstance(each, bytes)}

    assert {key.partition(b"\0")[0] + b"\0" for key in ROWS} == kinds
    assert set(Records()._takes) == kinds


@pytest.mark.parametrize("key", [key for key in ROWS if not key.startswith(b"scope")])
@pytest.mark.parametrize("row", [b"", b"{", b"{}", b"[]", b"[1, 2, 3]", b"null", b"\xff"])
def test_a_row_that_is_none_of_its_kind_is_refused(key: bytes, row: bytes) -> None:
    assert not Records().take(key, row)


@pytest.mark.parametrize("key", [key for key in ROWS if not key.startswith(b"scope")])
def test_a_row_under_the_key_of_another_one_is_refused(key: bytes) -> None:
    assert not Records().take(key + b"1", ROWS[key])


@pytest.mark.parametrize("key", [b"", b"scope", b"other\0scope", b"scope\0\xff"])
def test_a_key_that_is_none_is_refused(key: bytes) -> None:
    assert not Records().take(key, b"")


@pytest.mark.parametrize(
    "stream", [replace(STREAM, history=History(())), replace(STREAM, cut={9: 0})]
)
def test_a_stream_without_epochs_or_with_a_cut_of_no_segment_of_it_is_refused(
    stream: Stream,
) -> None:
    assert not Records().take(b"stream\0scope/stream", stream.to_bytes())
