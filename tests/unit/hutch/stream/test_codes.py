from hutch.stream.codes import ResponseCode, in_words


def test_there_are_twenty_one_codes_without_a_gap() -> None:
    assert [code.value for code in ResponseCode] == list(range(1, 22))


def test_a_code_has_a_phrase_to_close_with() -> None:
    assert ResponseCode.UNKNOWN_FRAME.phrase == "unknown frame"
    assert ResponseCode.FRAME_TOO_LARGE.phrase == "frame too large"


def test_a_code_that_a_peer_sent_is_shown_in_words_or_as_its_number() -> None:
    assert in_words(2) == "stream does not exist"
    assert [in_words(code) for code in (0, 22, 65_535)] == ["0", "22", "65535"]
