"""Sections of messages: decoded together by numpy they are as decoded one by one."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_hutch.columns import APP_TYPES, WantedColumns
from pyspark_hutch.decoding import sections
from pyspark_hutch.decoding.bodies import EXTENT_NAMES, EXTENTS
from tests.property.pyspark_hutch.chunk_rig import compound, listed, sized, text

TYPED = tuple((f"as {name}", kind) for name, kind in APP_TYPES.items())
WANTED = WantedColumns(("header", "properties", "application_properties"), app_columns=TYPED)

WIDTHS = {0: "40 41 42 43 44 45", 1: "50 51 52 53 54 55 56", 2: "60 61", 4: "70 71 72 73 74"}
WIDTHS |= {8: "80 81 82 83 84", 16: "94 98"}
LARGE = b"\xd0\xd1"
"""Lists and maps whose size takes four bytes."""
fixed = st.one_of(
    *(
        st.binary(min_size=width, max_size=width).map(bytes((code,)).__add__)
        for width, codes in WIDTHS.items()
        for code in bytes.fromhex(codes)
    )
)
small = st.sampled_from([b"\x56\0", b"\x56\1", b"\x70\0\0\0\7", b"\x83" + (1_000).to_bytes(8)])
texts = st.sampled_from(["", "7", "true", "é", "2026-01-31T08:00:00Z", "x" * 300]).map(text)
bytes_of_any_kind = st.builds(
    sized, st.sampled_from([0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3]), st.binary(max_size=9)
)
plain = fixed | small | texts | bytes_of_any_kind
values = plain | st.lists(plain, max_size=2).map(lambda items: listed(*items))
keys = st.sampled_from([name for name, _ in TYPED] + ["a", "b"]).map(text) | plain
lists = st.lists(values, max_size=16).map(lambda items: listed(*items)) | st.just(b"\x45")
maps = st.lists(st.tuples(keys, values), max_size=5).map(
    lambda pairs: compound(0xC1, [item for pair in pairs for item in pair])
)


@st.composite
def damaged(draw: st.DrawFn, good: st.SearchStrategy[bytes]) -> bytes:
    """A section, now and then with a byte of another value behind its size."""
    raw = bytearray(draw(good))
    # A section of another size would be cut elsewhere, before it comes here.
    first = 5 if raw[0] in LARGE else 2
    if draw(st.integers(0, 4)) == 0 and len(raw) > first:
        raw[draw(st.integers(first, len(raw) - 1))] = draw(st.integers(0, 255))
    return bytes(raw)


def columns_of(name: str, raws: Sequence[bytes], few: int) -> dict[str, pa.Array]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "_FEW", few)
        section = next(one for one in sections.sections_of(WANTED) if one.name == name)
        source = b"".join(raws)
        extents = np.zeros(EXTENTS * len(raws), np.int64)
        place, slot = 0, 2 * EXTENT_NAMES.index(name)
        for index, raw in enumerate(raws):
            extents[index * EXTENTS + slot : index * EXTENTS + slot + 2] = place, place + len(raw)
            place += len(raw)
        section.gather(source, extents, 0)
        return {key: make(None) for key, make in section.makers(lambda: len(raws)).items()}


@given(st.sampled_from(["header", "properties"]), st.lists(damaged(lists), min_size=1, max_size=12))
def test_lists_are_the_same_together_and_one_by_one(name: str, raws: list[bytes]) -> None:
    assert columns_of(name, raws, 0) == columns_of(name, raws, 1 << 30)


@given(st.lists(damaged(maps), min_size=1, max_size=12))
def test_maps_are_the_same_together_and_one_by_one(raws: list[bytes]) -> None:
    together, alone = (columns_of("application_properties", raws, few) for few in (0, 1 << 30))

    for name, array in together.items():
        assert repr(array.to_pylist()) == repr(alone[name].to_pylist()), name
