"""Chunks to rows: the kernel, its source run by the interpreter, numpy, and a slow model agree."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain, pairwise
from types import ModuleType
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_hutch.columns import WantedColumns
from pyspark_hutch.decoding import open_batch, sections, vectors
from pyspark_hutch.decoding.decoder import Decoder
from pyspark_hutch.decoding.faults import DamagedChunk, UnopenedSubBatch
from pyspark_hutch.options.read_settings import Fate
from tests.chunks import GZIP, HEADER, SubBatch
from tests.property.pyspark_hutch.chunk_rig import WAYS, batches_of, chunk_of, rows_of, way_of
from tests.property.pyspark_hutch.row_model import COLUMNS, Stored, streams

WANTED = WantedColumns(COLUMNS, stream="orders", app_columns=(("tenant", pa.string()),))
FATES: tuple[Fate, ...] = ("fail", "skip", "raw")

some = settings(max_examples=min(settings().max_examples, 200))
"""Each example runs with both limits, and mostly in every way too: up to six times."""


@contextmanager
def tiny() -> Iterator[None]:
    """Set limits such that every chunk crosses some."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "_FEW", 1)
        patch.setattr(open_batch, "ROWS_MAX", 7)
        patch.setattr(open_batch, "SECTION_ROWS_MAX", 3)
        patch.setattr(open_batch, "BATCH_BYTES_MAX", 100)
        patch.setattr(open_batch, "_BODIES_MIN", 4)
        patch.setattr(sections, "_PENDING_MAX", 2)
        patch.setattr(sections, "_FEW", 0)
        yield


def with_both_limits(law: Callable[[], None]) -> None:
    """Try a law with the limits of batches as they are, and with tiny ones."""
    law()
    with tiny():
        law()


def in_every_way(law: Callable[[ModuleType], None]) -> None:
    """Try a law in every way to run the loops, with both limits."""

    def in_each() -> None:
        for name in WAYS:
            with suppress(pytest.skip.Exception):  # not compiled: in the other ways then
                law(way_of(name))

    with_both_limits(in_each)


def rows_in(batches: Iterable[Any]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def simple(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the subject instead of all properties."""
    properties = row.pop("properties")
    return row | {"subject": None if properties is None else properties["subject"]}


@some
@given(
    chunks=streams(),
    cut=st.tuples(st.integers(0, 80), st.integers(0, 80)),
    body_format=st.sampled_from(["amqp", "raw"]),
)
def test_rows_are_those_of_the_model(
    chunks: list[Stored], cut: tuple[int, int], body_format: Literal["amqp", "raw"]
) -> None:
    low, high = cut
    wanted = replace(WANTED, body_format=body_format)
    delivered = [chunk.delivered() for chunk in chunks]
    is_amqp = body_format == "amqp"
    rows = [row for chunk in chunks for row in chunk.rows(low, high, is_amqp=is_amqp)]

    @in_every_way
    def _(way: ModuleType) -> None:
        batches = batches_of(delivered, wanted, way, low, high)

        assert [simple(row) for row in rows_in(batches)] == rows
        assert all(0 < batch.num_rows <= open_batch.ROWS_MAX for batch in batches)


@some
@given(
    chunks=streams(),
    cut=st.tuples(st.integers(0, 80), st.integers(0, 80)),
    columns=st.lists(st.sampled_from(COLUMNS), unique=True, min_size=1).map(tuple),
)
def test_batches_are_cut_alike_in_every_way(
    chunks: list[Stored], cut: tuple[int, int], columns: tuple[str, ...]
) -> None:
    delivered = [chunk.delivered() for chunk in chunks]
    wanted = replace(WANTED, columns=columns)

    @with_both_limits
    def _() -> None:
        first, *others = (batches_of(delivered, wanted, way_of(name), *cut) for name in WAYS)

        assert all(other == first for other in others)


@some
@given(
    chunks=streams(), columns=st.lists(st.sampled_from(COLUMNS), unique=True, min_size=1).map(tuple)
)
def test_a_column_is_the_same_whatever_is_asked_for_beside_it(
    chunks: list[Stored], columns: tuple[str, ...]
) -> None:
    delivered = [chunk.delivered() for chunk in chunks]
    wanted = replace(WANTED, columns=columns, app_columns=())
    if "tenant" in columns:
        wanted = replace(wanted, app_columns=WANTED.app_columns)

    names = wanted.schema().names

    @in_every_way
    def _(way: ModuleType) -> None:
        every = rows_in(batches_of(delivered, WANTED, way))

        found = rows_in(batches_of(delivered, wanted, way))

        assert found == [{name: row[name] for name in names} for row in every]


@some
@given(chunks=streams(), cut=st.integers(0, 80))
def test_two_ranges_that_meet_give_what_one_gives(chunks: list[Stored], cut: int) -> None:
    delivered = [chunk.delivered() for chunk in chunks]

    @in_every_way
    def _(way: ModuleType) -> None:
        parts = [batches_of(delivered, WANTED, way, *part) for part in [(0, cut), (cut, 1 << 40)]]

        whole = rows_in(batches_of(delivered, WANTED, way))
        assert rows_in(chain.from_iterable(parts)) == whole


@some
@given(chunks=streams())
def test_the_memory_of_a_chunk_may_be_used_again(chunks: list[Stored]) -> None:
    delivered = [chunk.delivered() for chunk in chunks]
    rows = [row for chunk in chunks for row in chunk.rows(0, 1 << 40, is_amqp=True)]

    @in_every_way
    def _(way: ModuleType) -> None:
        decoder = Decoder(WANTED, way)
        batches: list[Any] = []
        for chunk in delivered:
            memory = bytearray(chunk)
            batches += decoder.add(memoryview(memory), 0, 1 << 40)
            memory[:] = b"\xff" * len(memory)
        batches += decoder.finish()

        assert [simple(row) for row in rows_in(batches)] == rows


def decode(
    way: ModuleType, chunk: bytes, low: int, high: int, fate: Fate = "fail"
) -> list[Any] | str:
    """Batches of a chunk, or what is wrong with it."""
    decoder = Decoder(replace(WANTED, bad_sub_batches=fate), way)
    try:
        batches = list(decoder.add(chunk, low, high))
    except UnopenedSubBatch as error:
        assert fate == "fail"
        return str(error)
    except DamagedChunk as error:
        return str(error)
    batches += decoder.finish()
    for batch in batches:
        batch.validate(full=True)
    return batches


@some
@given(chunk=st.binary(max_size=200), low=st.integers(0, 1 << 63))
def test_any_bytes_are_rows_or_a_damaged_chunk(chunk: bytes, low: int) -> None:
    @with_both_limits
    def _() -> None:
        first, *others = (decode(way_of(name), chunk, low, low + 100) for name in WAYS)

        assert all(other == first for other in others)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A chunk with changed bytes, which often has the right checksum all the same."""
    stored = draw(streams().filter(len))
    chunk = bytearray(stored[0].delivered())
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(chunk) - 1))
        size = draw(st.integers(0, 4))
        chunk[place : place + size] = draw(st.binary(max_size=4))
    if draw(st.booleans()) and len(chunk) > HEADER.size:
        data = bytes(chunk[HEADER.size :])
        chunk[32:40] = zlib.crc32(data).to_bytes(4) + len(data).to_bytes(4)
    return bytes(chunk)


@some
@given(
    chunk=damaged(),
    cut=st.tuples(st.integers(0, 40), st.integers(0, 80)),
    fate=st.sampled_from(FATES),
)
def test_a_chunk_with_damage_is_rows_or_a_damaged_chunk(
    chunk: bytes, cut: tuple[int, int], fate: Fate
) -> None:
    @with_both_limits
    def _() -> None:
        first, *others = (decode(way_of(name), chunk, *cut, fate) for name in WAYS)

        assert all(other == first for other in others)


BAD = (
    SubBatch(GZIP, 3, 20, b"no gzip"),
    SubBatch(0, 2, 15, SubBatch.of([b"e", b"f", b"g"]).body),
    SubBatch(0, 4, 15, SubBatch.of([b"h", b"i", b"j"]).body),
    SubBatch(6, 1, 9, b""),
)
ENTRIES = (b"a", SubBatch.of([b"b", b"c", b"d"], GZIP), *BAD)
"""A record, a sub-batch, and some that cannot be opened."""


@some
@given(
    parts=st.lists(st.sampled_from(ENTRIES), max_size=12),
    cuts=st.lists(st.integers(0, 40), max_size=3).map(sorted),
    fate=st.sampled_from(FATES[1:]),
)
def test_ranges_that_meet_in_a_bad_sub_batch_give_what_one_range_gives(
    parts: list[bytes | SubBatch], cuts: list[int], fate: Fate
) -> None:
    chunk = chunk_of(*parts)
    wanted = replace(WANTED, columns=(*COLUMNS, "bad_sub_batch"), bad_sub_batches=fate)
    sent = [part.body for part in parts if isinstance(part, SubBatch) and part in BAD]

    @in_every_way
    def _(way: ModuleType) -> None:
        whole = rows_of([chunk], wanted, way)
        given = [row["body"] for row in whole if row["body_type"] == "bad-sub-batch"]
        assert given == (sent if fate == "raw" else [])
        pieces = [rows_of([chunk], wanted, way, *each) for each in pairwise([0, *cuts, 1 << 40])]
        assert [row for piece in pieces for row in piece] == whole
