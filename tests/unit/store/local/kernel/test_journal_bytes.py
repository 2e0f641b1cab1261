"""The bytes that every commit writes, compiled and interpreted."""

import struct
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.gateway.kernel_builds import BUILDS, load

U8, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (8, 32, 64))
I64 = st.integers(-(2**63), 2**63 - 1)


@pytest.fixture(params=BUILDS, scope="module")
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return load("store.local.kernel.journal_bytes", request.param)


@given(U32, U8, st.lists(U64, min_size=5, max_size=5), st.binary(min_size=16, max_size=16), I64)
def test_a_record_has_its_fields_in_their_places(
    kernel: ModuleType, size: int, flags: int, numbers: list[int], writer: bytes, event_number: int
) -> None:
    found = kernel.append_record(size, flags, *numbers, writer, event_number)

    head = struct.pack("<IBBH", size, 2, flags, 0)
    assert found == head + struct.pack("<5Q", *numbers) + writer + struct.pack("<q", event_number)


@given(st.lists(U64, min_size=3, max_size=3), st.binary(max_size=300), U32, U64)
def test_a_frame_has_its_checksum_in_front_and_its_changes_behind(
    kernel: ModuleType, numbers: list[int], body: bytes, count: int, checksum: int
) -> None:
    part = kernel.checked_part(*numbers, body, count)

    assert part == struct.pack("<3QII", *numbers, len(body), count) + body
    assert kernel.behind_checksum(checksum, part) == struct.pack("<Q", checksum) + part
