import pytest

from compat.clients.messages import WrongBody, bodies, body, index_of, large_body, summary


def test_a_body_holds_its_name_and_bytes_of_every_value() -> None:
    assert body(3) == b"m3-" + bytes(range(3, 24))
    assert {byte for index in range(300) for byte in body(index)} == set(range(256))


def test_the_index_is_read_back_from_a_body() -> None:
    assert [index_of(one, "b") for one in bodies(0, 120, "b")] == list(range(121))


@pytest.mark.parametrize(
    "wrong", [b"", b"x", body(7)[:-1], body(7) + b"\0", body(7, "n"), b"m8-" + body(7)[3:]]
)
def test_a_body_that_differs_in_one_byte_is_refused(wrong: bytes) -> None:
    with pytest.raises(WrongBody):
        index_of(wrong)


@pytest.mark.parametrize("size", [1, 255, 256, 257, 1_000_000])
def test_a_large_body_is_as_large_as_it_says(size: int) -> None:
    found = large_body(size)
    assert len(found) == size
    assert found[-1] == (2 * size - 1) % 256


def test_a_summary_knows_where_one_body_ends() -> None:
    assert summary([b"ab", b"c"]) != summary([b"a", b"bc"])
    assert summary([b"ab", b"c"])["count"] == 2
