"""The rule for sub-batches: whether one agrees with its head, and the fault if it does not.

A server stores a sub-batch as it comes, and does not open it. So a chunk with the right checksum
may have one that cannot be opened. That is no damage: its publisher sent it so.
"""

import zlib
from collections.abc import Callable, Mapping, Sized
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from hutch.formats.entries import UNCOMPRESSED_BYTES_MAX, SubBatch, SubBatchCodec

if TYPE_CHECKING:
    from typing_extensions import Buffer

Room = TypeVar("Room", bound=Sized)
"""The memory that a codec decompresses into."""
Decompress = Callable[[bytes, int], bytes]
"""Returns the bytes of a body before compression: as many as the second argument says.

It raises one of FAULTS, or returns bytes of another number, for a body that is not as it should
be. It uses no more memory than for that many bytes.
"""
FAULTS: Final = (ValueError, OSError, IndexError, zlib.error)
"""The errors of libraries for a body that cannot be decompressed."""


class BadSubBatch(ValueError):
    """A sub-batch that does not agree with its head; the text is a clause about its publisher.

    Attributes:
        head: Its head, and where its body lies.
        fault: The fault, in words that follow on "a sub-batch that".
    """

    def __init__(self, head: SubBatch, fault: str) -> None:
        super().__init__(head, fault)
        self.head = head
        self.fault = fault

    def __str__(self) -> str:
        return f"a publisher sent a sub-batch of {self.head.records} records that {self.fault}"


def uncompressed(
    source: "Buffer",
    head: SubBatch,
    codecs: Mapping[int, Callable[[bytes, int], Room]],
    bytes_max: int = UNCOMPRESSED_BYTES_MAX,
) -> Room | bytes:
    """Return the records of a sub-batch, behind one another; `require_records` is for the rest.

    Args:
        source: Holds its body. One that is not compressed has the size that it has.
        head: Its head.
        codecs: A function for each codec but none: a Decompress, or one that returns other memory.
        bytes_max: The largest size before compression that its head may say.

    Raises:
        BadSubBatch: The codec is unknown, the head says a larger size, or the body is cut off or
            does not decompress to the size in the head.
    """
    codec, _, size, start, end = head
    body = bytes(memoryview(source)[start:end])
    if len(body) != end - start:
        raise BadSubBatch(head, "is cut off")
    if codec == SubBatchCodec.NONE:
        return body
    if codec not in codecs:
        raise BadSubBatch(head, f"is compressed by an unknown codec, {codec}")
    if size > bytes_max:
        raise BadSubBatch(head, f"says that it has {size} bytes, more than {bytes_max}")
    if not size:
        return b""
    raw: Room | bytes = b""
    with suppress(*FAULTS):
        raw = codecs[codec](body, size)
    if len(raw) != size:
        name = SubBatchCodec(codec).name.lower()
        raise BadSubBatch(head, f"is not {size} bytes compressed by {name}")
    return raw


def require_records(head: SubBatch, size: int, count: int, end: int) -> None:
    """Check the count and the end that a walk over the records of a sub-batch has found.

    Args:
        head: Its head.
        size: The number of its bytes before compression.
        count: The number of records that lie whole in these, up to the number in the head.
        end: Where the last of them ends.

    Raises:
        BadSubBatch: They are not as many as the head says, or there are bytes beside them.
    """
    if (count, end) != (head.records, size):
        raise BadSubBatch(head, f"does not hold {head.records} records in {size} bytes")
