import pytest

from hutch.stream import messages as m
from hutch.stream import pipeline
from hutch.stream.codec import (
    REASON_BYTES_MAX,
    decode_reply,
    decode_request,
    encode_command,
    encode_reply,
    encode_request,
    one_line,
    refusal_reply,
)
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import BY_NAME, COMMANDS, Sender
from hutch.stream.errors import MalformedFrame, UnknownCommand
from hutch.stream.offsets import NEXT
from hutch.stream.pipeline import StageOpened


def frame_of(text: str) -> bytes:
    return bytes.fromhex(text)


def test_a_request_carries_its_size_key_version_and_correlation_id() -> None:
    encoded = encode_request("delete_publisher", m.DeletePublisher(7), correlation_id=9)

    assert encoded == frame_of("00000009 0006 0001 00000009 07")


def test_a_row_may_stand_for_its_name() -> None:
    row = BY_NAME["delete_publisher"]

    by_row = encode_request(row, m.DeletePublisher(7), correlation_id=9)

    assert by_row == encode_request("delete_publisher", m.DeletePublisher(7), correlation_id=9)


def test_a_version_is_written_and_chooses_the_layout() -> None:
    encoded = encode_request("publish", m.KernelBody(b"\1"), version=2)

    assert encoded == frame_of("00000005 0002 0002 01")
    assert decode_request(encoded[4:]).version == 2


def test_credit_refusal_has_no_correlation_id() -> None:
    encoded = encode_reply("credit", None, m.CreditRefused(ResponseCode(4), 9))

    assert encoded == frame_of("00000007 8009 0001 0004 09")


def test_tune_has_no_correlation_id_and_two_keys_to_be_answered_with() -> None:
    for key in ("0014", "8014"):
        decoded = decode_request(frame_of(key + "0001 00100000 0000003c"))

        assert decoded.command.name == "tune"
        assert decoded.correlation_id is None
        assert decoded.is_response == (key == "8014")
        assert decoded.message == m.Tune(1 << 20, 60)


def test_open_refused_and_authentication_without_challenge_are_nothing_but_a_code() -> None:
    for name, key in (("open", "8015"), ("sasl_authenticate", "8013")):
        assert refusal_reply(name, 7, 12) == frame_of(f"0000000a {key} 0001 00000007 000c")


def test_query_offset_without_an_entry_has_offset_zero() -> None:
    assert refusal_reply("query_offset", 7, ResponseCode.NO_OFFSET) == frame_of(
        "00000012 800b 0001 00000007 0013 0000000000000000"
    )


def test_resolve_offset_spec_has_type_4_on_errors_too() -> None:
    assert refusal_reply("resolve_offset_spec", 7, 2) == frame_of(
        "00000014 801f 0001 00000007 0002 0004 0000000000000000"
    )


@pytest.mark.parametrize("name", ["stream_stats", "route", "partitions"])
def test_a_refusal_of_what_gives_a_list_has_an_empty_list(name: str) -> None:
    assert refusal_reply(name, 7, 16)[12:] == frame_of("0010 00000000")


@pytest.mark.parametrize("name", ["metadata", "credit", "tune", "publish", "heartbeat"])
def test_what_has_no_answer_with_a_code_cannot_be_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} has no answer that is a refusal"):
        refusal_reply(name, 7, 16)


@pytest.mark.parametrize(
    ("frame", "key", "version"),
    [
        ("0000 0001", 0, 1),
        ("0020 0001", 0x20, 1),
        ("0001 0000 00000001", 1, 0),
        ("0001 0002 00000001", 1, 2),
        ("0002 0003", 2, 3),
        ("80ff 0001", 0x80FF, 1),
        ("8001 0001 00000001 0001", 0x8001, 1),
        ("8016 0002 00000001 0001", 0x8016, 2),
        ("8017 0001", 0x8017, 1),
        ("0003 0001 00 00000000", 3, 1),
        ("001a 0001 00000000 01 01", 0x1A, 1),
    ],
)
def test_what_a_client_cannot_send_is_unknown(frame: str, key: int, version: int) -> None:
    with pytest.raises(UnknownCommand) as caught:
        decode_request(frame_of(frame))

    assert (caught.value.key, caught.value.version) == (key, version)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_frame_without_a_head_is_malformed(size: int) -> None:
    with pytest.raises(MalformedFrame, match="key and version are cut short at byte 0"):
        decode_request(bytes(size))


@pytest.mark.parametrize("size", [4, 5, 7])
def test_a_frame_without_its_correlation_id_is_malformed(size: int) -> None:
    with pytest.raises(MalformedFrame, match="correlation id is cut short at byte 4"):
        decode_request(frame_of("0012 0001 000000")[:size])


def test_positions_are_counted_from_the_key() -> None:
    with pytest.raises(MalformedFrame, match="string ends past the frame at byte 8"):
        decode_request(frame_of("000e 0001 00000001 0002 61"))


def test_each_side_understands_only_what_the_other_sends() -> None:
    for row in COMMANDS:
        if row.sender is Sender.BOTH:
            continue
        decode = decode_reply if row.sender is Sender.CLIENT else decode_request
        with pytest.raises(UnknownCommand):
            decode(row.key.to_bytes(2) + b"\0\1" + bytes(8))


def test_the_decoded_message_outlives_the_buffer() -> None:
    buffer = bytearray(frame_of("0002 0001 4d 00000000"))
    decoded = decode_request(memoryview(buffer))
    buffer[:] = bytes(len(buffer))

    assert decoded.message == m.KernelBody(frame_of("4d 00000000"))


@pytest.mark.parametrize(
    ("encode", "reason"),
    [
        (lambda: encode_request("tune", m.Open("/")), "tune is not a Open"),
        (lambda: encode_request("tune", m.Tune(-1, 0)), "does not fit"),
        (lambda: encode_request("heartbeat", m.Heartbeat(), correlation_id=1), "correlation id 1"),
        (lambda: encode_request("open", m.Open("/")), "correlation id None"),
        (lambda: encode_request("open", m.Open("/"), correlation_id=2**32), "does not fit"),
        (lambda: encode_request("open", m.Open("x" * 65_535), correlation_id=1), "no size"),
        (lambda: encode_request("open", m.Open("/"), correlation_id=1, version=2), "version 2"),
        (lambda: encode_request("open", m.Open("/"), correlation_id=1, version=0), "version 0"),
        (lambda: encode_request("metadata_update", m.MetadataUpdate(6, "s")), "not this side's"),
        (lambda: encode_command("credit", m.Credit(1, 1)), "not this side's"),
        (lambda: encode_reply("route", 1, m.OK), "route is not answered by a Status"),
        (lambda: encode_reply("publish", None, m.OK), "publish is not answered"),
        (lambda: encode_reply("close", None, m.OK), "close with correlation id None"),
        (lambda: encode_reply("credit", 1, m.CreditRefused(4, 1)), "credit with correlation id 1"),
    ],
)
def test_what_does_not_fit_the_table_cannot_be_encoded(encode: object, reason: str) -> None:
    assert callable(encode)
    with pytest.raises(ValueError, match=reason):
        encode()


def test_the_server_closes_and_asks_with_commands_of_its_own() -> None:
    close = encode_command("close", m.Close(13, "unknown frame"), correlation_id=1)
    update = encode_command("consumer_update", m.ConsumerUpdate(1, active=True), correlation_id=0)

    assert close[4:] == frame_of("0016 0001 00000001 000d 000d 756e6b6e6f776e206672616d65")
    assert update[4:] == frame_of("001a 0001 00000000 01 01")


def test_a_name_that_is_not_utf_8_survives() -> None:
    frame = frame_of("0007 0001 00000001 01 0002 ff61 0003 0001")

    message = decode_request(frame).message

    assert isinstance(message, m.Subscribe)
    assert message.offset == NEXT
    assert encode_request("subscribe", message, correlation_id=1)[4:] == frame


def test_a_refusal_has_its_reason_in_one_line_where_the_answer_has_room_for_one() -> None:
    row = pipeline.TABLE.by_name["open_stage"]

    frame = refusal_reply(row, 7, 16, "no write\n on  'a'")

    assert decode_reply(frame[4:], pipeline.TABLE).message == StageOpened(16, "no write on 'a'", 0)
    assert refusal_reply(row, 7, 16)[12:] == frame_of("0010 ffff 0000000000000000")
    assert refusal_reply("close", 7, 16, "a reason") == refusal_reply("close", 7, 16)


@pytest.mark.parametrize("text", ["x" * 2_000, "é" * 1_000, "\udcff" * 2_000, "x" + "é" * 1_000])
def test_a_reason_is_cut_at_a_size(text: str) -> None:
    cut = one_line(text)

    assert cut is not None
    assert REASON_BYTES_MAX - 1 <= len(cut.encode()) <= REASON_BYTES_MAX
    assert one_line("x" * REASON_BYTES_MAX) == "x" * REASON_BYTES_MAX
