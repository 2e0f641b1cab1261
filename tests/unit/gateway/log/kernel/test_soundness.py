"""One pass finds nothing wrong exactly where the kernels that say what is wrong find nothing."""

import random
import zlib
from dataclasses import replace
from types import ModuleType

import pytest

from gateway.log.kernel.chunks import (
    NEEDS_BYTES,
    check_seals,
    follow_chunks,
    verify_chunks,
    walk_chunks,
)
from tests.chunks import SubBatch
from tests.property.gateway.chunk_model import Stored
from tests.property.gateway.kernel_builds import BUILDS, load
from tests.unit.gateway.log.kernel.test_chunks import stored

SEED = zlib.crc32(b"a segment")
BLOCK = 16_384
"""What the kernel takes from memory at once."""


@pytest.fixture(params=BUILDS)
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return load("gateway.log.kernel.soundness", request.param)


def sealed(chunk: Stored) -> bytes:
    """Return a chunk as it is stored, with its seal."""
    return replace(chunk, seed=SEED).event()


def run_of(*chunks: tuple[bytes | SubBatch, ...]) -> bytes:
    """Return sealed chunks that follow one another, from offset 100 on."""
    events, chunk_id = b"", 100
    for bodies in chunks:
        chunk = stored(*bodies, chunk_id=chunk_id)
        events += sealed(chunk)
        chunk_id += chunk.records
    return events


SUB_BATCH = SubBatch.of([b"inside", b"", b"more"])
RUN = run_of(
    (b"one",),
    (b"", b"two", SUB_BATCH, b""),
    tuple(b"x" * (number % 700) for number in range(200)),
    (SUB_BATCH,),
    (b"y" * 3 * BLOCK, b"", b"z"),
)


def three_passes(events: bytes) -> bool:
    """Tell by the other kernels whether nothing is wrong."""
    size = len(events)
    return (
        follow_chunks(events, 0, size)[0] == NEEDS_BYTES
        and check_seals(events, 0, size, SEED)[0] == NEEDS_BYTES
        and verify_chunks(events, 0, size)[0] == NEEDS_BYTES
    )


def test_sound_chunks_are_so_with_their_end_and_their_offsets(kernel: ModuleType) -> None:
    reason, end, first, following = follow_chunks(RUN, 0, len(RUN))
    assert (reason, end) == (NEEDS_BYTES, len(RUN))

    assert kernel.are_sound(RUN, len(RUN), SEED) == (True, end, first, following)
    assert kernel.are_sound(RUN + RUN[:60], len(RUN) + 60, SEED)[:2] == (True, end)
    assert kernel.are_sound(b"", 0, SEED) == (True, 0, 0, 0)


@pytest.mark.parametrize("surplus", [-12, -11, -4, -1, 0, 1, 4, 11, 12])
def test_entries_may_lie_across_the_ends_of_blocks(kernel: ModuleType, surplus: int) -> None:
    events = run_of((b"y" * (BLOCK - 4 + surplus), SUB_BATCH, b"", b"z" * BLOCK, b""))

    assert kernel.are_sound(events, len(events), SEED)[:2] == (True, len(events))


def test_each_changed_byte_is_found_where_it_counts(kernel: ModuleType) -> None:
    starts = [chunk[0] for chunk in walk_chunks(RUN, 0, len(RUN))[2]]
    heads = [place for start in starts for place in range(start, start + 60)]
    behind = [place - back for place in [*starts[1:], len(RUN)] for back in range(1, 9)]
    places = {*heads, *behind, *random.Random(1).sample(range(len(RUN)), 40)}
    for place in sorted(places):
        damaged = bytearray(RUN)
        damaged[place] ^= 0x41
        expected = three_passes(bytes(damaged))

        sound, end, _, _ = kernel.are_sound(damaged, len(damaged), SEED)

        assert sound == expected, place
        assert not sound or end < len(RUN), f"a byte at {place} is not covered"


def test_counts_that_do_not_fit_the_data_are_found_under_a_right_seal(kernel: ModuleType) -> None:
    for entries, records in ((1, 2), (2, 1), (3, 3), (2, 3), (0, 0), (3, 1)):
        chunk = stored(b"one", b"two")
        chunk = Stored(chunk.data, entries, records, chunk.chunk_id, 5)
        events = sealed(chunk)

        assert kernel.are_sound(events, len(events), SEED)[0] is False
        assert not three_passes(events)


def test_a_chunk_without_its_seal_is_not_sound(kernel: ModuleType) -> None:
    events = sealed(stored(b"one")) + replace(stored(b"two", chunk_id=1), seed=None).event()

    assert kernel.are_sound(events, len(events), SEED)[0] is False
