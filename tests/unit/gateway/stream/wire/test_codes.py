from gateway.stream.wire.codes import ResponseCode


def test_there_are_twenty_one_codes_without_a_gap() -> None:
    assert [code.value for code in ResponseCode] == list(range(1, 22))


def test_a_code_has_a_phrase_to_close_with() -> None:
    assert ResponseCode.UNKNOWN_FRAME.phrase == "unknown frame"
    assert ResponseCode.FRAME_TOO_LARGE.phrase == "frame too large"
