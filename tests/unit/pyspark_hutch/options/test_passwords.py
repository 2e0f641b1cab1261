import pickle
from pathlib import Path

import pytest

from hutch.client.login import Endpoint
from pyspark_hutch.options.connection_settings import BrokerSettings
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.passwords import PASSWORD_BYTES_MAX, Password, is_password, password_of


def in_file(path: Path) -> Password:
    return Password("passwordFile", str(path))


def in_variable(name: str) -> Password:
    return Password("passwordEnv", name)


def test_a_password_is_in_no_repr() -> None:
    settings = BrokerSettings(
        (Endpoint("localhost", 5552),), password=Password("password", "secret")
    )

    assert "secret" not in repr(settings)
    assert "secret" not in str(settings)


def test_a_password_in_the_options_is_that() -> None:
    assert password_of(Password("password", " secret\n")) == " secret\n"


def test_a_password_is_read_from_a_variable_at_its_use(monkeypatch: pytest.MonkeyPatch) -> None:
    password = pickle.loads(pickle.dumps(in_variable("HUTCH_TEST_PASSWORD")))
    monkeypatch.setenv("HUTCH_TEST_PASSWORD", "secret")

    assert password_of(password) == "secret"


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
