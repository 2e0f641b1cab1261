"""Credentials of the scheme Basic."""

import base64

import pytest

from gateway.network.basic import basic_credentials


def encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC"])
def test_name_and_password_are_read(scheme: str) -> None:
    assert basic_credentials(f"{scheme} {encoded(b'app:a:b')}") == (b"app", b"a:b")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        f"Bearer {encoded(b'app:b')}",
        f"Basic {encoded(b'app')}",
        f"Basic {encoded(bytes(1) + b':b')}",
        "Basic a%",
        "Basic é",
        f"Basic {encoded(b'app:' + b'b' * 4096)}",
    ],
)
def test_what_cannot_be_read_gives_none(header: str) -> None:
    assert basic_credentials(header) is None
