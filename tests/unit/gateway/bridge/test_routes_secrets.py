"""Secrets of the bridge's file, which stay so, and the files for TLS."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from compat.certificates import make
from tests.unit.gateway.bridge.file_rig import (
    Load,
    Mistakes,
    route,
    source,
    target,
)

SECRET = "s3cret"
MQTT, STREAMS = '"mqtt://h"', '"rabbitmq-stream://h"'


def uri_with(secret: str) -> str:
    return route(source=source(uri=f"'amqp://u:{secret}@h/'", queue='"q"'))


@pytest.mark.parametrize("password", [SECRET, "p@ss/w:rd?#%41", "ü ", "[::1]"])
def test_a_password_comes_from_the_environment_as_it_is(load: Load, password: str) -> None:
    (found,) = load(uri_with("${PASSWORD}"), PASSWORD=password)

    assert found.source.login == ("u", password)
    assert found.source.name == "queue 'q' at h"


def test_a_password_comes_from_a_file_without_the_end_of_its_line(
    load: Load, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("p@ss\n")

    (found,) = load(uri_with(f"${{file:{tmp_path / 'secret'}}}"))

    assert found.source.login == ("u", "p@ss")


def test_a_whole_uri_and_any_text_may_come_from_the_environment(load: Load) -> None:
    text = route(source=source(uri='"${URI}"', queue='"${TEAM}-${NAME}"'))

    (found,) = load(text, URI="amqp://u:p%40@h:7/v", TEAM="a/b", NAME="q")

    assert found.source.place == ("h", 7)
    assert found.source.login == ("u", "p@")
    assert getattr(found.source, "queue", "") == "a/b-q"


def test_texts_in_lists_and_tables_have_secrets_too(load: Load) -> None:
    text = route(
        source=source(uri='"mqtt://${HOST}:${PORT}"', topics='["${A}/b"]'),
        target=target(uri=STREAMS, stream='"s"', create='{ max-age = "${A}" }'),
    )

    (found,) = load(text, HOST="h", PORT="7", A="a")

    assert found.source.place == ("h", 7)
    assert getattr(found.source, "topics", []) == ["a/b"]
    assert getattr(found.target, "create", {}) == {"max-age": "a"}


@pytest.mark.parametrize(
    ("secret", "line"),
    [
        ("${NONE}", "route 'r': source.uri: the environment has no 'NONE'"),
        ("${}", "route 'r': source.uri: the environment has no ''"),
        ("${file:/none}", "route 'r': source.uri: the file '/none' cannot be read"),
        ("${file:/}", "route 'r': source.uri: the file '/' cannot be read"),
    ],
)
def test_a_secret_that_is_not_there_is_a_mistake(
    mistakes: Mistakes, secret: str, line: str
) -> None:
    assert mistakes(uri_with(secret)) == [line]


@pytest.mark.parametrize(
    "text",
    [
        uri_with("${PASSWORD}") + uri_with("${PASSWORD}"),
        route(source=source(uri='"amqp://u:${PASSWORD}@h:0"', queue='"q"')),
        route(source=source(uri='"amqp://u:${PASSWORD}@[::1"', queue='"q"')),
        route(source=source(uri='"${PASSWORD}"', queue='"q"')),
        route(source=source(uri=f'"amqp://u:{SECRET}@h:x"', queue='"q"')),
        route(source=source(uri=f'"http://u:{SECRET}@h"', queue='"q"')),
        route(source=source(uri=f'"amqp://u:{SECRET}@h"', queu='"q"')),
        route('window = "${PASSWORD}"', 'refused = "${PASSWORD}"', name="${PASSWORD} "),
        route(source=source(uri=STREAMS, stream='"s"', start='"${PASSWORD}"')),
        route(target=target(uri=MQTT, topic='"t"', qos='"${PASSWORD}"', version='"${PASSWORD}"')),
        route(target=target(uri=MQTT, topic='"t"', retain='"${PASSWORD}"')),
    ],
)
def test_no_mistake_shows_a_secret(mistakes: Mistakes, text: str) -> None:
    assert SECRET not in "\n".join(mistakes(text, PASSWORD=SECRET))


def test_a_route_that_is_printed_shows_no_secret(load: Load) -> None:
    (found,) = load(uri_with("${PASSWORD}"), PASSWORD=SECRET)

    assert SECRET not in f"{found!r} {found} {found.source!r} {found.source.name}"


# ---- TLS -------------------------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["amqp://h", "mqtt://h", "rabbitmq-stream://h"])
def test_plain_schemes_have_no_tls(load: Load, uri: str) -> None:
    key = {"amqp": "queue", "mqtt": "topics"}.get(uri.partition(":")[0], "stream")

    (found,) = load(route(source=source(uri=f'"{uri}"', **{key: '"q"'})))

    assert found.source.tls() is None


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401  # a folder of them
    return make(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("uri", ["amqps://h", "mqtts://h", "rabbitmq-stream+tls://h"])
def test_tls_has_the_files_that_the_route_names(load: Load, uri: str, files: Any) -> None:  # noqa: ANN401
    key = {"amqps": "queue", "mqtts": "topics"}.get(uri.partition(":")[0], "stream")
    client = files.client
    given = {
        "uri": f'"{uri}"',
        key: '"q"',
        "tls_ca": f'"{files.ca}"',
        "tls_cert": f'"{client.certificate}"',
        "tls_key": f'"{client.key}"',
    }

    (found,) = load(route(source=source(**given)))
    context = found.source.tls()

    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert len(context.get_ca_certs()) == 1


def test_a_certificate_that_is_none_is_an_error_of_the_system(load: Load, tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("nothing")
    given = {"uri": '"amqps://h"', "queue": '"q"', "tls_ca": f'"{tmp_path / "ca"}"'}

    (found,) = load(route(source=source(**given)))

    with pytest.raises(OSError):  # noqa: PT011  # what OpenSSL says differs
        found.source.tls()


def test_tls_may_do_without_a_certificate_of_the_client(load: Load, files: Any) -> None:  # noqa: ANN401
    given = {"uri": '"amqps://h"', "queue": '"q"', "tls_ca": f'"{files.ca}"'}

    (found,) = load(route(source=source(**given)))
    context = found.source.tls()

    assert context is not None
    assert len(context.get_ca_certs()) == 1


def test_a_certificate_without_its_key_is_an_error_of_the_system(
    load: Load,
    files: Any,  # noqa: ANN401
) -> None:
    given = {"uri": '"amqps://h"', "queue": '"q"', "tls_cert": f'"{files.client.certificate}"'}

    (found,) = load(route(source=source(**given)))

    with pytest.raises(OSError):  # noqa: PT011  # what OpenSSL says differs
        found.source.tls()
