import pytest

from hutch.client.login import Endpoint
from pyspark_hutch.options.endpoints import ENDPOINTS, ENDPOINTS_MAX, URI, ListedAddress, Uri
from pyspark_hutch.options.errors import Unfit


def addresses(text: str) -> object:
    return ENDPOINTS.parse(text)


def uri(text: str) -> Uri:
    parsed = URI.parse(text)
    assert isinstance(parsed, Uri)
    return parsed


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost", ListedAddress("localhost", None)),
        ("localhost:5552", ListedAddress("localhost", 5552)),
        ("10.0.0.1:1", ListedAddress("10.0.0.1", 1)),
        ("my-broker.example.org:65535", ListedAddress("my-broker.example.org", 65535)),
        ("[::1]", ListedAddress("::1", None)),
        ("[fe80::1%eth0]:5552", ListedAddress("fe80::1%eth0", 5552)),
    ],
)
def test_a_server_is_a_host_with_or_without_a_port(text: str, address: ListedAddress) -> None:
    assert addresses(text) == (address,)


def test_servers_stand_between_commas() -> None:
    assert addresses("a:1 , b") == (ListedAddress("a", 1), ListedAddress("b", None))


@pytest.mark.parametrize(
    "text",
    ["", "a,", ":5552", "a:", "a:x", "a:1:2", "::1", "[::1", "[x]:1", "[abcd]", "a b", "http://a"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Unfit, match=r"^$"):
        addresses(text)


@pytest.mark.parametrize("text", ["a:0", "a:65536"])
def test_a_port_has_a_range(text: str) -> None:
    with pytest.raises(Unfit, match="ports from 1 to 65535"):
        addresses(text)


def test_a_server_twice_is_refused() -> None:
    with pytest.raises(Unfit, match="twice"):
        addresses("a:1,a:1")


def test_servers_have_a_largest_number() -> None:
    most = ",".join(f"h{number}" for number in range(ENDPOINTS_MAX))
    addresses(most)

    with pytest.raises(Unfit, match="at most 1,000"):
        addresses(most + ",x")


def test_a_user_has_no_place_in_a_list_of_servers() -> None:
    with pytest.raises(Unfit, match="options of their own"):
        addresses("user:secret@host")


@pytest.mark.parametrize(("tls", "port"), [(False, 5552), (True, 5551)])
def test_tls_has_another_usual_port(tls: bool, port: int) -> None:  # noqa: FBT001  # a parameter
    assert ListedAddress("a", None).endpoint(tls=tls) == Endpoint("a", port)
    assert ListedAddress("a", 7).endpoint(tls=tls) == Endpoint("a", 7)


def test_all_of_a_uri_is_taken() -> None:
    assert uri("rabbitmq-stream://user:pa%2Fss%40@[::1]:1/%2Fv") == Uri(
        ListedAddress("::1", 1), tls=False, username="user", password="pa/ss@", vhost="/v"
    )


@pytest.mark.parametrize("text", ["rabbitmq-stream+tls://h", "RabbitMQ-Stream+TLS://h/"])
def test_a_uri_needs_no_more_than_a_host(text: str) -> None:
    assert uri(text) == Uri(
        ListedAddress("h", None), tls=True, username=None, password=None, vhost=None
    )


def test_a_uri_may_have_a_user_without_a_password() -> None:
    assert uri("rabbitmq-stream://u@h").username == "u"
    assert uri("rabbitmq-stream://u@h").password is None


def test_a_uri_does_not_show_its_password() -> None:
    assert "secret" not in repr(uri("rabbitmq-stream://u:secret@h"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h:5552",
        "amqp://h",
        "rabbitmq-stream://",
        "rabbitmq-stream://[::1",
        "rabbitmq-stream://u:secret@",
        "rabbitmq-stream://:secret@h",
        "rabbitmq-stream://u:@h",
        "rabbitmq-stream://u:secret%00@h",
        "rabbitmq-stream://u:secret%zz@h",
        "rabbitmq-stream://u:secret%ff@h",
        "rabbitmq-stream://u%0A:secret@h",
        "rabbitmq-stream://u:secret@h/a/b",
        "rabbitmq-stream://u:secret@h/%0A",
        "rabbitmq-stream://u:secret@h?x=1",
        "rabbitmq-stream://u:secret@h#x",
        "rabbitmq-stream://u:sec#ret@h",
        "rabbitmq-stream://u:sec\nret@h",
        "rabbitmq-stream://u:secret@h:0",
        "rabbitmq-stream://u:secret@h,i",
    ],
)
def test_a_wrong_uri_is_refused_without_showing_its_password(text: str) -> None:
    with pytest.raises(Unfit) as caught:
        uri(text)

    assert "sec" not in str(caught.value)
