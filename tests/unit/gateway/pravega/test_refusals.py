"""The reply for each error of the store."""

import pytest

from gateway.pravega.refusals import refusal
from hutch.pravega import error_messages as e
from hutch.pravega.codec import encode
from hutch.pravega.layout import WireMessage
from store import errors as s
from store.api import NOT_EXISTS


def _of_fixed_keys(version: int) -> s.KeyVersionMismatch:
    error = s.KeyVersionMismatch("t", b"k", version)
    error.key_length = 1
    return error


@pytest.mark.parametrize(
    ("error", "reply"),
    [
        (s.NoSuchSegment("t"), e.NoSuchSegment(1, "a", "t", 8)),
        (s.SegmentExists("t"), e.SegmentAlreadyExists(1, "a", "t")),
        (s.SegmentSealed("t"), e.SegmentIsSealed(1, "a", "t", 8)),
        (s.SegmentTruncated("t", 30), e.SegmentIsTruncated(1, "a", 30, "t", 8)),
        (s.LengthMismatch("t", 40), e.SegmentIsTruncated(1, "a", 40, "t", 8)),
        (s.TableNotEmpty("t"), e.TableSegmentNotEmpty(1, "a", "t")),
        (s.KeyVersionMismatch("t", b"k", NOT_EXISTS), e.TableKeyDoesNotExist(1, "a", "t")),
        (s.KeyVersionMismatch("t", b"k", 5), e.TableKeyBadVersion(1, "a", "t")),
        (_of_fixed_keys(NOT_EXISTS), e.TableKeyBadVersion(1, "a", "t")),
        (s.NotATable("t"), e.ErrorMessage(1, "a", "t", 0)),
        (s.InvalidArgument("t"), e.ErrorMessage(1, "a", "t", 0)),
        (s.DiskFull("t"), e.ErrorMessage(1, "a", "t", -1)),
        (s.StoreClosed("t"), e.ErrorMessage(1, "a", "t", -1)),
    ],
)
def test_each_error_has_its_reply(error: s.StoreError, reply: WireMessage) -> None:
    assert refusal(1, "a", error, offset=8) == reply


def test_an_error_about_the_longest_name_fits_into_a_frame() -> None:
    name = "é" * 32_767
    for error in (s.NoSuchSegment(f"no segment {name!r}"), s.InvalidArgument(f"{name!r} is wrong")):
        assert encode(refusal(1, name, error))
