import pytest

from hutch.client.login import Endpoint
from pyspark_hutch.options.connection_rules import connection_settings
from pyspark_hutch.options.connection_settings import BrokerSettings, BrokerTls
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.given import Given
from pyspark_hutch.options.option import Use
from pyspark_hutch.options.passwords import Password, password_of

URI = "rabbitmq-stream://user:secret@h:1/v"


def settings_of(options: dict[str, str]) -> BrokerSettings:
    given = Given(options, Use.BATCH_READ)
    settings = connection_settings(given)
    given.settle()
    return settings


def refused(options: dict[str, str]) -> str:
    with pytest.raises(WrongOption) as caught:
        settings_of(options)
    assert "secret" not in str(caught.value)
    assert len(caught.value.problems) == 1
    return str(caught.value)


def test_endpoints_are_all_that_is_needed() -> None:
    assert settings_of({"endpoints": "a,b:1"}) == BrokerSettings(
        (Endpoint("a", 5552), Endpoint("b", 1))
    )


def test_without_a_server_nothing_can_be_read() -> None:
    assert refused({}).startswith("option endpoints is missing")


def test_every_setting_comes_from_its_option() -> None:
    settings = settings_of(
        {
            "endpoints": "a",
            "username": "u",
            "password": "secret",
            "vhost": "v",
            "advertised": "ignore",
            "connectTimeoutMs": "1",
            "requestTimeoutMs": "2",
            "pollTimeoutMs": "3",
            "planner.retries": "4",
            "planner.retryIntervalMs": "5",
            "pool.idleTimeoutMs": "6",
            "connectionName": "job",
            "client.team": "payments",
        }
    )

    assert settings == BrokerSettings(
        (Endpoint("a", 5552),),
        username="u",
        password=Password("password", "secret"),
        vhost="v",
        advertised=False,
        connect_timeout_ms=1,
        request_timeout_ms=2,
        poll_timeout_ms=3,
        planner_retries=4,
        planner_retry_interval_ms=5,
        pool_idle_timeout_ms=6,
        connection_name="job",
        client_properties=(("team", "payments"),),
    )


def test_the_defaults_of_options_and_of_settings_are_the_same() -> None:
    assert settings_of({"endpoints": "a"}) == BrokerSettings((Endpoint("a", 5552),))


def test_a_uri_says_it_all() -> None:
    settings = settings_of({"uri": URI})

    assert settings == BrokerSettings(
        (Endpoint("h", 1),),
        username="user",
        password=Password("password", "secret"),
        vhost="v",
    )
    assert password_of(settings.password) == "secret"
    assert "secret" not in repr(settings)


def test_a_uri_with_tls_has_the_port_of_tls() -> None:
    settings = settings_of({"uri": "rabbitmq-stream+tls://h"})

    assert settings.endpoints == (Endpoint("h", 5551),)
    assert settings.tls == BrokerTls()
    assert settings.vhost == "/"


def test_options_that_say_the_same_as_the_uri_are_right() -> None:
    alone = settings_of({"uri": URI})

    assert alone == settings_of(
        {
            "uri": URI,
            "endpoints": "h:1",
            "username": "user",
            "password": "secret",
            "vhost": "v",
            "tls": "false",
        }
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("endpoints", "h:2"),
        ("endpoints", "h:1,i:1"),
        ("username", "other"),
        ("password", "secret2"),
        ("passwordFile", "/p"),
        ("passwordEnv", "P"),
        ("vhost", "/"),
        ("tls", "true"),
    ],
)
def test_an_option_that_differs_from_the_uri_is_refused(name: str, text: str) -> None:
    problem = refused({"uri": URI, name: text})

    assert problem.startswith(f"options uri (not shown) and {name}")
    assert "contradict each other" in problem


def test_a_uri_without_a_password_takes_that_of_an_option() -> None:
    settings = settings_of({"uri": "rabbitmq-stream://u@h", "passwordEnv": "P"})

    assert settings.password == Password("passwordEnv", "P")


@pytest.mark.parametrize(
    "names",
    [
        ("password", "passwordFile"),
        ("password", "passwordEnv"),
        ("passwordFile", "passwordEnv"),
        ("password", "passwordFile", "passwordEnv"),
    ],
)
def test_a_password_has_one_place(names: tuple[str, ...]) -> None:
    texts = {"password": "secret", "passwordFile": "/p", "passwordEnv": "P"}

    problem = refused({"endpoints": "a"} | {name: texts[name] for name in names})

    assert problem.startswith("options ")
    assert all(name in problem for name in names)


def test_only_guest_has_a_password_by_itself() -> None:
    assert settings_of({"endpoints": "a", "username": "guest"}).password.text == "guest"
    assert refused({"endpoints": "a", "username": "u"}) == (
        "option username='u' needs a password: password, passwordFile or passwordEnv"
    )
    assert refused({"uri": "rabbitmq-stream://u@h"}) == (
        "option uri (not shown) needs a password: password, passwordFile or passwordEnv"
    )


def test_all_of_tls_comes_from_its_options() -> None:
    options = {
        "endpoints": "a,b:5552",
        "tls": "true",
        "tls.ca": "/ca",
        "tls.cert": "/cert",
        "tls.key": "/key",
        "tls.verifyHostname": "false",
        "tls.serverName": "broker",
    }
    settings = settings_of(options)

    assert settings.tls == BrokerTls("/ca", "/cert", "/key", False, "broker")  # noqa: FBT003
    assert settings.endpoints == (Endpoint("a", 5551), Endpoint("b", 5552))


def test_tls_needs_no_more_than_its_switch() -> None:
    assert settings_of({"endpoints": "a", "tls": "true"}).tls == BrokerTls()
    assert settings_of({"endpoints": "a", "tls": "false"}).tls is None


@pytest.mark.parametrize("name", ["tls.ca", "tls.cert", "tls.serverName"])
@pytest.mark.parametrize("switch", [{}, {"tls": "false"}])
def test_an_option_of_tls_needs_its_switch(name: str, switch: dict[str, str]) -> None:
    assert refused({"endpoints": "a", name: "x"} | switch) == f"option {name}='x' needs tls=true"


def test_a_key_needs_its_certificate() -> None:
    assert refused({"endpoints": "a", "tls": "true", "tls.key": "/key"}) == (
        "option tls.key='/key' needs tls.cert"
    )
