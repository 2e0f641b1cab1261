"""Sub-batches, taken by the server's own kernel and read by another client's codecs."""

import struct
from itertools import accumulate

import cramjam
import numpy as np
import pytest
from rstream.compression import CompressionHelper, CompressionType

from hutch.formats.entries import SubBatchCodec
from pyspark_hutch.encoding.errors import MessageTooLarge
from pyspark_hutch.encoding.frames import FrameLimits, MessagePacker, Packer, PublishFrame
from pyspark_hutch.encoding.sub_batches import Packing, SubBatchPacker
from tests.unit.pyspark_hutch.encoding.batches import ids_from, raw_messages, simple, taken

MIB = 1 << 20
BODIES = [b'{"number":%d,"text":"some text"}' % number for number in range(250)]


def decompressed(codec: int, body: bytes, size: int) -> bytes:
    """Decompress by rstream where it can, else by cramjam."""
    if codec in (SubBatchCodec.NONE, SubBatchCodec.GZIP):
        return CompressionHelper.uncompress(body, CompressionType(codec), size)
    module = {
        SubBatchCodec.SNAPPY: cramjam.snappy,
        SubBatchCodec.LZ4: cramjam.lz4,
        SubBatchCodec.ZSTD: cramjam.zstd,
    }
    return bytes(module[SubBatchCodec(codec)].decompress(body))


def read(frame: PublishFrame, codec: SubBatchCodec = SubBatchCodec.NONE) -> list[list[bytes]]:
    """Let the server take a frame; give the messages of each sub-batch."""
    stored = taken(frame).stored
    found = []
    place = 0
    while place < len(stored):
        kind, records, raw_size, size = struct.unpack_from(">BHII", stored, place)
        assert kind == 0x80 | codec << 4
        raw = decompressed(codec, stored[place + 11 : place + 11 + size], raw_size)
        assert len(raw) == raw_size
        found.append(simple(raw))
        assert len(found[-1]) == records
        place += 11 + size
    return found


def packer(
    records: int,
    codec: SubBatchCodec = SubBatchCodec.NONE,
    limits: FrameLimits | None = None,
    sub_batch_bytes: int = MIB,
) -> SubBatchPacker:
    return SubBatchPacker(
        "orders",
        0,
        limits or FrameLimits(MIB),
        codec=codec,
        records=records,
        sub_batch_bytes=sub_batch_bytes,
    )


def frames_of(bodies: list[bytes], packing: Packer, run: int = 1_000) -> list[PublishFrame]:
    """Pack bodies, some at a time; publishing ids begin with 1."""
    frames: list[PublishFrame] = []
    for first in range(0, len(bodies), run):
        some = bodies[first : first + run]
        frames += packing.add(raw_messages(some), ids_from(first + 1, len(some)))
    frames += packing.flush()
    assert list(packing.flush()) == []
    return frames


@pytest.mark.parametrize("codec", SubBatchCodec, ids=lambda codec: codec.name)
def test_a_sub_batch_of_every_codec_gives_its_messages(codec: SubBatchCodec) -> None:
    full, rest = frames_of(BODIES, packer(100, codec))

    assert read(full, codec) == [BODIES[:100], BODIES[100:200]]
    assert read(rest, codec) == [BODIES[200:]]
    assert (full.ids.tolist(), full.records) == ([100, 200], 200)
    assert (rest.ids.tolist(), rest.records) == ([250], 50)


@pytest.mark.parametrize("codec", SubBatchCodec, ids=lambda codec: codec.name)
def test_an_empty_message_alone_is_a_sub_batch_that_the_server_takes(codec: SubBatchCodec) -> None:
    (frame,) = frames_of([b""], packer(10, codec))

    assert read(frame, codec) == [[b""]]


@pytest.mark.parametrize("run", [1, 7, 99, 100, 101, 250])
def test_where_sub_batches_end_does_not_depend_on_how_rows_come(run: int) -> None:
    frames = frames_of(BODIES, packer(100, SubBatchCodec.GZIP), run)

    assert [len(each) for frame in frames for each in read(frame, SubBatchCodec.GZIP)] == [
        100,
        100,
        50,
    ]
    assert [i for frame in frames for i in frame.ids.tolist()] == [100, 200, 250]


def test_rows_wait_until_their_sub_batch_is_full() -> None:
    packing = packer(3)

    assert list(packing.add(raw_messages([b"a", b"b"]), ids_from(1, 2))) == []
    (frame,) = packing.add(raw_messages([b"c", b"d"]), ids_from(3, 2))
    assert read(frame) == [[b"a", b"b", b"c"]]
    (frame,) = packing.flush()
    assert read(frame) == [[b"d"]]


def test_the_publishing_id_is_that_of_the_last_row() -> None:
    ids = np.array([5, 9, 2**64 - 1], np.uint64)

    (frame,) = packer(3).add(raw_messages([b"a", b"b", b"c"]), ids)

    assert taken(frame).ids == [2**64 - 1]


def test_a_sub_batch_is_full_sooner_by_its_bytes() -> None:
    bodies = [b"x" * size for size in (6, 6, 6, 40, 1, 1, 1)]  # and 4 bytes each for the size
    for limit, counts in ((19, [1, 1, 1, 1, 3]), (20, [2, 1, 1, 3]), (30, [3, 1, 3])):
        frames = frames_of(bodies, packer(100, sub_batch_bytes=limit), run=2)
        found = [each for frame in frames for each in read(frame)]
        assert [len(each) for each in found] == counts
        assert [message for each in found for message in each] == bodies


def test_a_sub_batch_that_fits_no_frame_is_halved_until_it_does() -> None:
    noise = [np.random.default_rng(number).bytes(300) for number in range(16)]

    frames = frames_of(noise, packer(16, SubBatchCodec.ZSTD, FrameLimits(1_500)))

    found = [each for frame in frames for each in read(frame, SubBatchCodec.ZSTD)]
    assert [len(each) for each in found] == [4, 4, 4, 4]
    assert [message for each in found for message in each] == noise
    assert list(accumulate(frame.records for frame in frames)) == [4, 8, 12, 16]
    assert [i for frame in frames for i in frame.ids.tolist()] == [4, 8, 12, 16]


@pytest.mark.parametrize(("limit", "fits"), [(2_032, False), (2_033, True)])
def test_a_message_that_alone_fits_no_frame_is_refused(limit: int, fits: bool) -> None:  # noqa: FBT001  # a parameter
    needed = 9 + 19 + 4 + 2_001  # frame's head, sub-batch's head, size, message
    packing = packer(2, limits=FrameLimits(limit))
    frames = packing.add(raw_messages([b"a", b"x" * 2_001]), ids_from(1, 2))

    if fits:
        assert [taken(frame).ids for frame in frames] == [[1], [2]]
    else:
        with pytest.raises(MessageTooLarge) as caught:
            list(frames)
        assert (caught.value.size, caught.value.limit) == (needed, limit)


def test_a_message_larger_than_a_sub_batch_may_be_is_refused() -> None:
    packing = packer(1, SubBatchCodec.LZ4, FrameLimits(0), sub_batch_bytes=64 * MIB)
    largest = raw_messages([bytes(64 * MIB - 4)])
    larger = raw_messages([bytes(64 * MIB - 3)])

    assert [taken(frame).ids for frame in packing.add(largest, ids_from(1, 1))] == [[1]]
    with pytest.raises(MessageTooLarge, match=r"a sub-batch of 67,108,865 bytes, .* 67,108,864$"):
        list(packing.add(larger, ids_from(2, 1)))


def test_frames_are_cut_by_bytes_and_entries() -> None:
    by_entries = frames_of(BODIES, packer(50, limits=FrameLimits(MIB, entries_max=2)))
    by_bytes = frames_of(BODIES, packer(50, limits=FrameLimits(MIB, frame_bytes=4_000)))

    assert [len(frame.ids) for frame in by_entries] == [2, 2, 1]
    assert [len(frame.ids) for frame in by_bytes] == [2, 2, 1]
    assert all(len(frame.data) <= 4_004 for frame in by_bytes)
    assert [m for frame in by_bytes for each in read(frame) for m in each] == BODIES


@pytest.mark.parametrize(("records", "counts"), [(65_534, [65_534, 2]), (65_535, [65_535, 1])])
def test_a_sub_batch_has_as_many_records_as_its_field_can_say(
    records: int, counts: list[int]
) -> None:
    frames = frames_of([b""] * 65_536, packer(records), run=65_536)

    assert [len(each) for frame in frames for each in read(frame)] == counts


def test_more_records_than_the_field_can_say_are_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError):
        packer(65_536)
    with pytest.raises(AssertionError):
        packer(1, sub_batch_bytes=64 * MIB + 1)


def test_options_choose_the_packer() -> None:
    plain = Packing().packer("s", 0, FrameLimits(MIB))
    gzip = Packing("gzip", 100).packer("s", 0, FrameLimits(MIB))

    assert isinstance(plain, MessagePacker)
    assert isinstance(gzip, SubBatchPacker)
    assert read(frames_of(BODIES, gzip)[0], SubBatchCodec.GZIP)[0] == BODIES[:100]


def test_the_option_that_asks_for_sub_batches_is_named() -> None:
    assert Packing().option == ""
    assert Packing("zstd", 1).option == "compression=zstd"
    assert Packing("none", 20).option == "subBatchSize=20"
    assert isinstance(Packing("none", 20).packer("s", 0, FrameLimits(MIB)), SubBatchPacker)


def test_without_a_publisher_sub_batches_are_as_the_server_stores_them() -> None:
    published = frames_of(BODIES, Packing("gzip", 100).packer("s", 0, FrameLimits(MIB)))

    bare = frames_of(BODIES, Packing("gzip", 100).packer("s", None, FrameLimits(MIB)))

    assert [bytes(frame.data) for frame in bare] == [taken(frame).stored for frame in published]
    assert sum(len(frame.ids) for frame in bare) == 3
