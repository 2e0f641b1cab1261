import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from hutch.client.login import Endpoint
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.settings import (
    NAMES_SHOWN_MAX,
    PASSWORD_BYTES_MAX,
    ConnectionSettings,
    Password,
    Point,
    PointKind,
    Source,
    Where,
    is_password,
    password_of,
    require_exact,
)

SETTINGS = ConnectionSettings((Endpoint("localhost", 5552),))


def in_file(path: Path) -> ConnectionSettings:
    return replace(SETTINGS, password=Password("passwordFile", str(path)))


def in_variable(name: str) -> ConnectionSettings:
    return replace(SETTINGS, password=Password("passwordEnv", name))


def test_an_endpoint_is_written_as_users_write_it() -> None:
    assert str(Endpoint("localhost", 5552)) == "localhost:5552"
    assert str(Endpoint("::1", 5552)) == "[::1]:5552"


def test_a_password_is_in_no_repr() -> None:
    settings = replace(SETTINGS, password=Password("password", "secret"))

    assert "secret" not in repr(settings)
    assert "secret" not in str(settings)


def test_a_password_in_the_options_is_that() -> None:
    settings = replace(SETTINGS, password=Password("password", " secret\n"))

    assert password_of(settings) == " secret\n"


def test_a_password_is_read_from_a_variable_at_its_use(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = pickle.loads(pickle.dumps(in_variable("HUTCH_TEST_PASSWORD")))
    monkeypatch.setenv("HUTCH_TEST_PASSWORD", "secret")

    assert password_of(settings) == "secret"


@pytest.mark.parametrize("held", [None, "", "x" * (PASSWORD_BYTES_MAX + 1)])
def test_a_variable_without_a_password_is_told(
    held: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HUTCH_TEST_PASSWORD", raising=False)
    if held is not None:
        monkeypatch.setenv("HUTCH_TEST_PASSWORD", held)

    with pytest.raises(WrongOption, match="option passwordEnv: the environment variable"):
        password_of(in_variable("HUTCH_TEST_PASSWORD"))


@pytest.mark.parametrize(
    ("held", "password"),
    [
        (b"secret", "secret"),
        (b"secret\n", "secret"),
        (b"secret\r\n", "secret"),
        (b" secret\n\n", " secret\n"),
        ("gehütet".encode(), "gehütet"),
        (b"x" * PASSWORD_BYTES_MAX + b"\r\n", "x" * PASSWORD_BYTES_MAX),
    ],
)
def test_a_password_is_read_from_a_file_without_the_end_of_its_line(
    held: bytes, password: str, tmp_path: Path
) -> None:
    path = tmp_path / "password"
    path.write_bytes(held)

    assert password_of(in_file(path)) == password


@pytest.mark.parametrize(
    "held",
    [b"", b"\n", b"sec\xffret", b"sec\0ret", b"s" * (PASSWORD_BYTES_MAX + 1), b"s" * 10_000],
)
def test_a_file_without_a_password_is_named_and_not_shown(held: bytes, tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(held)

    with pytest.raises(WrongOption) as caught:
        password_of(in_file(path))

    assert "option passwordFile=" in str(caught.value)
    assert "holds no password of 1 to 4,096 bytes" in str(caught.value)
    assert "sec" not in str(caught.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(WrongOption) as caught:
        password_of(in_file(Path("/nowhere/p")))

    assert str(caught.value) == (
        "option passwordFile='/nowhere/p': cannot be read here: No such file or directory"
    )


@pytest.mark.parametrize("text", ["", "a\0b", "\ud800", "x" * (PASSWORD_BYTES_MAX + 1)])
def test_what_the_protocol_cannot_carry_is_no_password(text: str) -> None:
    assert not is_password(text)
    assert is_password("x" * PASSWORD_BYTES_MAX)


@pytest.mark.parametrize(
    ("source", "option"),
    [
        (Source(streams=("a",)), "stream"),
        (Source(super_streams=("a",)), "superStream"),
        (Source(assigned=(("a", (1,)),)), "assign"),
        (Source(pattern="^a"), "streamPattern"),
    ],
)
def test_a_source_knows_the_option_that_said_it(source: Source, option: str) -> None:
    assert source.option == option


def test_a_point_for_all_is_the_point_of_each_stream() -> None:
    point = Point(PointKind.EARLIEST)

    assert Where("startingOffsets", everywhere=point).points(("b", "a")) == {"a": point, "b": point}


def test_points_by_name_are_those_of_the_streams() -> None:
    a, b = Point(PointKind.OFFSET, 1), Point(PointKind.OFFSET, 2)
    where = Where("startingOffsets", by_stream=(("a", a), ("b", b)))

    assert where.points(("b", "a")) == {"a": a, "b": b}
    with pytest.raises(WrongOption, match="option startingOffsets"):
        where.points(("a",))


def test_names_that_are_missing_or_too_many_are_told_in_one_line() -> None:
    with pytest.raises(WrongOption) as caught:
        require_exact("endingOffsets", ("a", "x", "y"), ("a", "b"))

    assert str(caught.value) == (
        "option endingOffsets: must name each stream that is read: it misses 'b' and names what is "
        "not read, 'x', 'y'"
    )


def test_the_same_names_in_another_order_are_right() -> None:
    require_exact("endingOffsets", ("a", "b"), ("b", "a"))


def test_many_names_are_told_in_part() -> None:
    most = tuple(f"s{number}" for number in range(NAMES_SHOWN_MAX))

    with pytest.raises(WrongOption, match=r"'s4'$"):
        require_exact("startingOffsets", (), most)
    with pytest.raises(WrongOption, match=r"'s4' and 2 more$"):
        require_exact("startingOffsets", (), (*most, "t", "u"))
