"""The chunk kernel, compiled and interpreted, against the slow model and against each other."""

import zlib
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.gateway import chunk_model
from tests.property.gateway.chunk_model import (
    BAD_CRC,
    NEEDS_BYTES,
    SEED,
    Joined,
    Stored,
    runs,
)
from tests.property.gateway.kernel_builds import BUILDS, load

NAME = "gateway.log.kernel.chunks"
MARK = 0xA5


@pytest.fixture(params=BUILDS, scope="module")
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return load(NAME, request.param)


def join(kernel: ModuleType, source: bytes, capacity: int) -> tuple[Joined, bytes]:
    """Join on a build of the kernel; asserts that it wrote nowhere else."""
    target = bytearray([MARK]) * (capacity + 16)
    joined: Joined = kernel.join_chunks(source, len(source), target, capacity, SEED)
    written = joined[2]
    assert len(target) == capacity + 16
    assert target[written:] == bytes([MARK]) * (len(target) - written)
    return joined, bytes(target[:written])


def test_reasons_have_the_numbers_that_its_stub_says(kernel: ModuleType) -> None:
    reasons = (kernel.NEEDS_BYTES, kernel.BAD_CRC, kernel.MALFORMED, kernel.NOT_JOINABLE)

    assert reasons == (0, 1, 2, 3)
    assert (kernel.BAD_HEADER, kernel.NOT_NEXT, kernel.BAD_SEAL) == (4, 5, 6)


any_bytes = st.binary(max_size=200) | runs()


@given(source=any_bytes)
def test_walking_lists_the_whole_chunks_and_says_why_it_stopped(
    kernel: ModuleType, source: bytes
) -> None:
    assert kernel.walk_chunks(source, 0, len(source)) == chunk_model.walk(source)


@given(source=any_bytes, before=st.integers(0, 40), after=st.binary(max_size=40))
def test_walking_and_verifying_look_at_nothing_outside_their_bounds(
    kernel: ModuleType, source: bytes, before: int, after: bytes
) -> None:
    reason, position, chunks = chunk_model.walk(source)
    moved = [(place + before, *rest) for place, *rest in chunks]
    padded = bytes(before) + source + after
    limit = before + len(source)

    assert kernel.walk_chunks(padded, before, limit) == (reason, position + before, moved)
    reason, position = chunk_model.verify(source)
    found = kernel.verify_chunks(padded, before, limit)
    assert found == (reason, position + before)


@given(source=any_bytes)
def test_verifying_finds_the_first_chunk_whose_data_is_not_what_was_written(
    kernel: ModuleType, source: bytes
) -> None:
    assert kernel.verify_chunks(source, 0, len(source)) == chunk_model.verify(source)


@given(source=any_bytes)
def test_following_finds_the_first_chunk_that_is_not_what_its_header_says_or_not_the_next(
    kernel: ModuleType, source: bytes
) -> None:
    assert kernel.follow_chunks(source, 0, len(source)) == chunk_model.follow(source)


@given(source=any_bytes)
def test_the_first_chunk_without_its_seal_is_found_and_the_first_with_it(
    kernel: ModuleType, source: bytes
) -> None:
    size = len(source)

    assert kernel.check_seals(source, 0, size, SEED) == chunk_model.check_seals(source, SEED)
    for begin in (0, 1):
        found = kernel.find_sealed(source, begin, size, SEED)
        assert found == chunk_model.find_sealed(source, begin, SEED)


@given(source=any_bytes, capacity=st.sampled_from([0, 3, 60, 300, 1 << 14]))
def test_joining_copies_a_run_that_may_be_joined_and_no_more(
    kernel: ModuleType, source: bytes, capacity: int
) -> None:
    assert join(kernel, source, capacity) == chunk_model.join(source, capacity)


@given(data=st.binary(max_size=70), start=st.integers(0, 8))
def test_the_checksum_is_that_of_zlib_for_every_size_and_place(
    kernel: ModuleType, data: bytes, start: int
) -> None:
    good = Stored(data, 1, 1, 0, crc=zlib.crc32(data)).event()
    bad = Stored(data, 1, 1, 0, crc=zlib.crc32(data) ^ 1).event()
    end = start + len(good)

    assert kernel.verify_chunks(bytes(start) + good, start, end) == (NEEDS_BYTES, end)
    assert kernel.verify_chunks(bytes(start) + bad, start, end) == (BAD_CRC, start)


@given(source=any_bytes, capacity=st.sampled_from([60, 1 << 14]))
def test_any_bytes_give_the_same_compiled_and_interpreted(source: bytes, capacity: int) -> None:
    compiled, interpreted = (load(NAME, build) for build in BUILDS)

    for name, arguments in {
        "walk_chunks": (source, 0, len(source)),
        "verify_chunks": (source, 0, len(source)),
        "follow_chunks": (source, 0, len(source)),
        "check_seals": (source, 0, len(source), SEED),
        "find_sealed": (source, 1, len(source), SEED),
    }.items():
        function, reference = getattr(compiled, name), getattr(interpreted, name)
        assert function(*arguments) == reference(*arguments)
    assert join(compiled, source, capacity) == join(interpreted, source, capacity)
