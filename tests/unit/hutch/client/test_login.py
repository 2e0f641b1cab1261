import sys
import zipfile
from pathlib import Path

import pytest

from hutch.client.login import Endpoint, Login, ServerUrl, described


@pytest.mark.parametrize(
    ("url", "endpoint", "is_tls"),
    [
        ("rabbitmq-stream://", "localhost:5552", False),
        ("rabbitmq-stream://h", "h:5552", False),
        ("rabbitmq-stream://h:1/", "h:1", False),
        ("rabbitmq-stream://[::1]:7", "[::1]:7", False),
        ("rabbitmq-stream+tls://h", "h:5551", True),
        ("rabbitmq-stream+tls://h:9", "h:9", True),
    ],
)
def test_a_url_names_a_server(url: str, endpoint: str, is_tls: bool) -> None:  # noqa: FBT001  # a parameter of the test
    found = ServerUrl.of(url)

    assert (str(found.endpoint), found.is_tls) == (endpoint, is_tls)
    assert found.login == Login()


@pytest.mark.parametrize(
    ("url", "login"),
    [
        ("rabbitmq-stream://u:p@h", Login("u", "p")),
        ("rabbitmq-stream://u@h/%2f", Login("u")),
        ("rabbitmq-stream://%2F:%40@h/v%2Fw", Login("/", "@", "v/w")),
        ("rabbitmq-stream://u:@h/v", Login("u", "", "v")),
    ],
)
def test_a_url_names_a_user_and_a_virtual_host(url: str, login: Login) -> None:
    assert ServerUrl.of(url).login == login


@pytest.mark.parametrize(
    "url", ["", "localhost", "http://u:secret@h:80", "rabbitmq-stream://u:secret@h:x", "a://[::1"]
)
def test_what_is_no_url_of_a_server_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValueError, match="a server's URL begins with rabbitmq-stream://") as caught:
        ServerUrl.of(url)

    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(Login("u", "secret"))


def test_external_sends_no_secret() -> None:
    assert Login("u", "secret", mechanism="EXTERNAL").secret == b""
    assert Login("u", "secret").secret == b"\0u\0secret"


def test_an_ipv6_address_is_shown_in_brackets() -> None:
    assert [str(Endpoint("::1", 7)), str(Endpoint("h", 7))] == ["[::1]:7", "h:7"]


def test_the_version_is_that_of_the_installed_package_and_archives_are_not_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    information = tmp_path / "hutch_streams-9.8.7.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: hutch-streams\nVersion: 9.8.7\n")
    archive = tmp_path / "sources.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(information / "METADATA", f"{information.name}/METADATA")

    monkeypatch.setattr(sys, "path", [str(archive), str(tmp_path)])
    assert described("a client", "a name")["version"] == "9.8.7"

    monkeypatch.setattr(sys, "path", [str(archive)])
    assert described("a client", "a name")["version"] == "unknown"
