"""Credentials of the scheme Basic."""

import base64
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import decode, encode

from compat.differential.scripts.amqplain import LOGIN, PASSWORD, RIGHT, WRONG, text_field
from gateway.broker.access.credentials import basic_credentials, credentials_of


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


texts = st.text(max_size=80)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(allow_nan=False, width=32),
    texts,
    st.lists(texts, max_size=3),
    st.dictionaries(st.text("abc", max_size=3), texts, max_size=3),
)
tables = st.dictionaries(st.text("xyz-", min_size=1, max_size=9), values, max_size=5)


def read(data: bytes) -> tuple[int, Mapping[str, object]]:
    """What pamqp reads in a table that comes without its outer length."""
    used, found = decode.field_table(len(data).to_bytes(4) + data)
    return used - 4, found


@given(login=texts, password=texts)
def test_pamqp_reads_what_our_client_sends_and_so_does_the_server(
    login: str, password: str
) -> None:
    sent = text_field("LOGIN", login) + text_field("PASSWORD", password)

    assert read(sent) == (len(sent), {"LOGIN": login, "PASSWORD": password})
    assert credentials_of(sent) == (login.encode(), password.encode())


@given(login=texts, password=texts, others=tables)
def test_the_server_reads_what_pamqp_writes_among_fields_of_any_kind(
    login: str, password: str, others: dict[str, object]
) -> None:
    table = others | {"LOGIN": login, "PASSWORD": password}
    written = encode.field_table(table)[4:]  # type: ignore[arg-type]  # values are of pamqp's kinds

    assert credentials_of(written) == (login.encode(), password.encode())


@pytest.mark.parametrize("data", [LOGIN + PASSWORD, *RIGHT.values()], ids=[None, *RIGHT])
def test_every_login_that_the_comparison_sends_reads_alike(data: bytes) -> None:
    assert credentials_of(data) == (b"guest", b"guest")


@pytest.mark.parametrize("cut", range(1, len(LOGIN + PASSWORD)))
def test_a_table_cut_anywhere_is_refused_by_both(cut: int) -> None:
    data = (LOGIN + PASSWORD)[:-cut]

    with pytest.raises(ValueError, match="a field"):
        credentials_of(data)
    try:
        _, found = read(data)
    except (ValueError, TypeError, LookupError):
        return
    assert found.get("PASSWORD") != "guest"  # it does not look at every size


def test_bytes_that_are_no_table_are_refused() -> None:
    for name in ("the outer length in front", "a kind that nobody knows", "what PLAIN sends"):
        with pytest.raises(ValueError, match="a field"):
            credentials_of(WRONG[name])
