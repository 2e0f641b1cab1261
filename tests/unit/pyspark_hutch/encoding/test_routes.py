"""Rows to streams, by each of the ways."""

from collections.abc import Mapping, Sequence

import mmh3
import pyarrow as pa
import pytest

from pyspark_hutch.encoding import routes
from pyspark_hutch.encoding.errors import BadColumn, NoRoute
from pyspark_hutch.encoding.routes import (
    RoutedByColumn,
    RoutedByHash,
    RoutedByKey,
    Routing,
    ToStream,
)
from tests.unit.pyspark_hutch.encoding.batches import batch

PARTITIONS = ["invoices-01", "invoices-02", "invoices-03"]
CLIENTS = {
    "hello1": "invoices-02",
    "hello2": "invoices-01",
    "hello3": "invoices-02",
    "hello4": "invoices-03",
    "hello5": "invoices-01",
    "hello6": "invoices-03",
    "hello7": "invoices-01",
    "hello8": "invoices-02",
    "hello9": "invoices-01",
    "hello10": "invoices-03",
    "hello88": "invoices-02",
}
"""Partitions of keys as the tests of the Java and Go clients have them."""


def split(way: Routing, rows: pa.RecordBatch) -> dict[str, list[int]]:
    """Give the rows of each stream."""
    shares = way.split(rows)
    assert len({share.stream for share in shares}) == len(shares)
    return {
        share.stream: list(range(len(rows))) if share.rows is None else share.rows.tolist()
        for share in shares
    }


def keyed(*keys: str | None) -> pa.RecordBatch:
    return batch(body=[b""] * len(keys), routing_key=keys)


def test_one_stream_gets_all_rows() -> None:
    assert split(ToStream("s"), keyed("a", "b")) == {"s": [0, 1]}
    assert split(ToStream("s"), keyed()) == {}


def test_the_hash_chooses_the_partition_that_the_clients_choose() -> None:
    found = split(RoutedByHash(PARTITIONS), keyed(*CLIENTS))

    for stream in PARTITIONS:
        wanted = [index for index, chosen in enumerate(CLIENTS.values()) if chosen == stream]
        assert found[stream] == wanted


def test_a_hash_above_the_signed_numbers_counts_unsigned() -> None:
    keys = [f"key {index}" for index in range(50)]
    hashes = [mmh3.hash(key.encode(), 104729, signed=False) for key in keys]
    assert any(each >> 31 for each in hashes)

    found = split(RoutedByHash(["a", "b", "c", "d", "e"]), keyed(*keys))

    for index, stream in enumerate("abcde"):
        assert found[stream] == [row for row, each in enumerate(hashes) if each % 5 == index]


def test_the_rows_of_a_stream_stay_in_order_and_a_stream_without_rows_has_no_share() -> None:
    found = split(RoutedByHash(PARTITIONS), keyed(*["hello1", "hello2"] * 500))

    assert found == {
        "invoices-01": list(range(1, 1_000, 2)),
        "invoices-02": list(range(0, 1_000, 2)),
    }


def test_a_key_may_be_bytes_or_a_number() -> None:
    rows = batch(
        {"raw": pa.binary(), "number": pa.int64()},
        body=[b""] * 3,
        raw=[b"hello1", b"hello2", b"12"],
        number=[7, -7, 12],
        text=["7", "-7", "12"],
    )

    assert split(RoutedByHash(PARTITIONS, "raw"), rows)["invoices-02"][0] == 0
    assert split(RoutedByHash(PARTITIONS, "number"), rows) == split(
        RoutedByHash(PARTITIONS, "text"), rows
    )


@pytest.mark.parametrize(
    "way",
    [RoutedByHash(PARTITIONS), RoutedByKey("s", lambda _: {}), RoutedByColumn(None, "routing_key")],
)
def test_a_row_without_a_key_is_refused_with_its_place(way: Routing) -> None:
    with pytest.raises(BadColumn, match=r"^column 'routing_key': null in row 1 of a batch"):
        way.split(keyed("a", None))


class Bindings:
    """A server's bindings; notes what it was asked."""

    def __init__(self, bindings: Mapping[str, Sequence[str]]) -> None:
        self.bindings = bindings
        self.asked: list[list[str]] = []

    def __call__(self, keys: Sequence[str]) -> dict[str, Sequence[str]]:
        self.asked.append(list(keys))
        return {key: self.bindings[key] for key in keys if key in self.bindings}


def test_a_row_goes_to_every_partition_that_its_key_is_bound_to() -> None:
    way = RoutedByKey("orders", Bindings({"eu": ["a"], "us": ["b"], "all": ["a", "b"]}))

    found = split(way, keyed("eu", "us", "all", "eu", "us"))

    assert found == {"a": [0, 2, 3], "b": [1, 2, 4]}


def test_a_key_is_asked_for_once() -> None:
    bindings = Bindings({"eu": ["a"], "us": ["b"]})
    way = RoutedByKey("orders", bindings)

    for keys in (("eu", "eu"), ("eu", "us"), ("us",)):
        way.split(keyed(*keys))

    assert bindings.asked == [["eu"], ["us"]]


@pytest.mark.parametrize("bindings", [{}, {"mars": []}])
def test_a_key_that_is_bound_to_nothing_is_refused(bindings: dict[str, list[str]]) -> None:
    way = RoutedByKey("orders", Bindings(bindings))

    with pytest.raises(NoRoute, match=r"^super stream 'orders': routing key 'mars' is bound to no"):
        way.split(keyed("mars"))


def test_a_name_that_no_stream_can_have_is_not_asked_for_and_is_cut_in_the_error() -> None:
    """The protocol has no room for texts of more than 32,767 bytes."""
    bindings = Bindings({})

    with pytest.raises(NoRoute, match=r"routing key 'é{79}…' is bound to no partition$"):
        RoutedByKey("orders", bindings).split(keyed("é" * 40_000))
    with pytest.raises(NoRoute, match=r"^column 'routing_key': 'x{79}…' is too long for a stream$"):
        RoutedByColumn(None, "routing_key").split(keyed("x" * 40_000))

    assert bindings.asked == []


def test_the_memory_of_keys_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "KEYS_MAX", 3)
    bindings = Bindings({str(index): ["a", "b"][index % 2 :] for index in range(20)})
    way = RoutedByKey("orders", bindings)

    for first in range(0, 16, 2):
        assert split(way, keyed(str(first), str(first + 1))) == {"a": [0], "b": [0, 1]}
        assert len(way._known) <= 3
    assert split(way, keyed(*"0123456789"))["a"] == [0, 2, 4, 6, 8]
    assert len(way._known) <= 3


def test_a_column_names_the_stream() -> None:
    rows = batch(body=[b""] * 4, stream=["b", "a", "b", "b"])

    assert split(RoutedByColumn(["a", "b", "c"]), rows) == {"b": [0, 2, 3], "a": [1]}
    assert split(RoutedByColumn(None), rows) == {"b": [0, 2, 3], "a": [1]}


def test_a_stream_that_is_no_partition_is_refused_with_the_nearest_one() -> None:
    rows = batch(body=[b""], stream=["invoices-1"])

    with pytest.raises(
        NoRoute, match=r"'invoices-1' is no partition .*; did you mean 'invoices-01'"
    ):
        RoutedByColumn(PARTITIONS).split(rows)
    with pytest.raises(NoRoute, match=r"of the target$"):
        RoutedByColumn(["x"]).split(rows)


@pytest.mark.parametrize(
    "way",
    [RoutedByHash(PARTITIONS), RoutedByKey("s", lambda _: {}), RoutedByColumn(None, "routing_key")],
)
def test_a_batch_without_rows_goes_nowhere(way: Routing) -> None:
    assert way.split(keyed()) == []
