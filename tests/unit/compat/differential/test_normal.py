"""Answers in words: what they keep, what they leave out, and what they call faulty."""

import struct
import zlib

import pytest

from compat.comparison import Difference, Expected, Played, differences, judge
from compat.differential import frames
from compat.differential.normal import Arrived, arrived, words
from compat.differential.runner import created_names
from compat.differential.script import Script, ask, opened, script

RUN = b"run1-042"


def said(frame: bytes, *, port: int = 5552) -> Arrived:
    return arrived(frame, port=port, run=RUN)


def deliver(
    offset: int,
    *bodies: bytes,
    epoch: int = 1,
    timestamp: int = 5,
    crc: int | None = None,
    entries: int | None = None,
) -> bytes:
    data = b"".join(struct.pack(">I", len(body)) + body for body in bodies)
    count = len(bodies) if entries is None else entries
    checksum = zlib.crc32(data) if crc is None else crc
    header = struct.pack(
        ">BBHIqQQIIII",
        0x50, 0, count, count, timestamp, epoch, offset, checksum, len(data), 0, 0,
    )  # fmt: skip
    return struct.pack(">HHB", 0x08, 1, 3) + header + data


def confirm(publisher_id: int, *ids: int) -> bytes:
    return struct.pack(f">HHBI{len(ids)}Q", 0x03, 1, publisher_id, len(ids), *ids)


def test_an_answer_keeps_its_correlation_id_and_code() -> None:
    assert said(bytes.fromhex("80010001 0000002a 0011")).text == (
        "declare_publisher answer corr 42 code 17"
    )


def test_bytes_behind_an_answer_are_not_lost() -> None:
    assert "dead" in said(bytes.fromhex("80010001 0000002a 0001 dead")).text


def test_an_answer_that_is_cut_short_is_called_malformed() -> None:
    assert "malformed" in said(bytes.fromhex("80010001 0000002a 00")).text


def test_the_servers_own_port_is_left_out_and_another_is_not() -> None:
    broker = struct.pack(">H", 0) + frames.text("localhost") + struct.pack(">I", 5552)
    frame = bytes.fromhex("800f0001 00000001 00000001") + broker + bytes(4)
    assert "localhost:PORT" in said(frame, port=5552).text
    assert "localhost:5552" in said(frame, port=5553).text


def test_peer_properties_are_compared_by_key_and_version_but_not_by_value() -> None:
    def answer(product: str, version: str) -> str:
        pairs = frames.properties({"product": product, "version": version, "extra": "x"})
        return said(bytes.fromhex("80110001 00000001 0001") + pairs).text

    assert answer("RabbitMQ", "4.3.6") == answer("RabbitMQ, Hutch", "4.3.7")
    assert answer("RabbitMQ", "4.3.6") != answer("RabbitMQ", "4.2.6")
    assert answer("RabbitMQ", "4.3.6") != answer("", "4.3.6")


def test_the_run_is_taken_out_of_names() -> None:
    frame = struct.pack(">HHHH", 0x10, 1, 6, 9) + RUN + b"s"
    assert frames.RUN.decode() + "s" in said(frame).text


def test_how_confirms_are_grouped_does_not_matter() -> None:
    together = [said(confirm(1, 2, 1, 3))]
    apart = [said(confirm(1, 1)), said(confirm(1, 3, 2))]
    assert words(together, has_exact_chunks=False) == words(apart, has_exact_chunks=False)


def test_an_answer_between_confirms_keeps_them_apart() -> None:
    answer = said(bytes.fromhex("80010001 0000002a 0001"))
    lines = words([said(confirm(1, 1)), answer, said(confirm(1, 2))], has_exact_chunks=False)
    assert len(lines) == 3


def test_an_id_confirmed_twice_is_seen() -> None:
    once = words([said(confirm(1, 1))], has_exact_chunks=False)
    assert words([said(confirm(1, 1, 1))], has_exact_chunks=False) != once


def test_which_partition_of_a_super_stream_ends_first_does_not_matter() -> None:
    def update(name: bytes) -> Arrived:
        return said(struct.pack(">HHHH", 0x10, 1, 6, len(name)) + name)

    answer = said(bytes.fromhex("80010001 0000002a 0001"))
    one, other = update(b"x-0"), update(b"x-1")

    told = words([answer, one, other], has_exact_chunks=False)

    assert len(told) == 3
    assert words([answer, other, one], has_exact_chunks=False) == told
    assert words([other, answer, one], has_exact_chunks=False) != told


def test_how_records_are_grouped_does_not_matter_unless_it_is_the_point() -> None:
    together = [said(deliver(4, b"a", b"b"))]
    apart = [said(deliver(4, b"a")), said(deliver(5, b"b", epoch=2, timestamp=9))]
    assert words(together, has_exact_chunks=False) == words(apart, has_exact_chunks=False)
    assert words(together, has_exact_chunks=True) != words(apart, has_exact_chunks=True)


def test_an_offset_that_is_wrong_is_seen() -> None:
    assert words([said(deliver(4, b"a"))], has_exact_chunks=False) != words(
        [said(deliver(5, b"a"))], has_exact_chunks=False
    )


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (deliver(0, b"a", crc=1), "CRC is wrong"),
        (deliver(0, b"a", entries=2), "the counts are wrong"),
        (deliver(0, b"abc")[:-1], "header says"),
    ],
)
def test_a_faulty_chunk_is_called_so(frame: bytes, fault: str) -> None:
    (first, *_) = words([said(frame)], has_exact_chunks=False)
    assert fault in first


def played(*lines: str, number: int = 1, label: str = "") -> list[Played]:
    return [Played(number, "A send", label, lines)]


def test_a_step_answered_differently_is_a_difference() -> None:
    (found,) = differences({"x": played("a")}, {"x": played("b")})
    assert (found.theirs, found.ours) == (("a",), ("b",))


def test_what_only_one_server_says_afterwards_is_a_difference() -> None:
    later = played("late", number=2)
    (found,) = differences({"x": played("a")}, {"x": played("a") + later})
    assert (found.theirs, found.ours) == ((), ("late",))


def test_a_difference_is_meant_only_if_both_answers_are_the_listed_ones() -> None:
    entry = Expected(script="x*", theirs="FIN", ours="close", reason="kind")
    meant = Difference("xyz", "1", "", ("FIN",), ("close 13",))
    other = Difference("xyz", "1", "", ("FIN",), ("code 1",))
    verdict = judge([meant, other], [entry])
    assert verdict.unexpected == (other,)
    assert verdict.explained == ((meant, entry),)


def test_an_entry_that_explains_nothing_is_stale() -> None:
    entry = Expected(script="x", reason="was so once")
    assert judge([], [entry]).stale == (entry,)


def test_an_entry_for_what_differs_by_chance_is_never_stale() -> None:
    entry = Expected(script="s", reason="for the test", is_by_chance=True)
    assert judge([], [entry]).stale == ()


def test_what_a_script_creates_is_found_again_and_never_the_empty_name() -> None:
    one = script(
        "s",
        opened("A"),
        ask("A", frames.create("~a\nb"), frames.create("")),
        ask("A", frames.create_super("~x", ["~x-0"], ["0"])),
    )
    assert created_names(one) == [(0x0D, frames.RUN + b"ab"), (0x1D, frames.RUN + b"x")]


def test_a_name_that_would_wreck_a_broker_cannot_be_written() -> None:
    with pytest.raises(AssertionError):
        frames.create("n" * 231)
    with pytest.raises(AssertionError):
        frames.delete("~" + "n" * 223)
    with pytest.raises(AssertionError):
        frames.delete_super("")


def test_a_script_counts_what_it_sends() -> None:
    one: Script = script("s", opened("A"), ask("A", frames.metadata()))
    assert one.exchange_count == 1
