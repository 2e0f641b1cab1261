"""How `hutch ctl` lists who uses streams."""

import pytest

from gateway import cli
from tests.unit.gateway.management.ctl.conftest import Server

CONSUMER = {
    "connection_number": 7,
    "subscription_id": 1,
    "stream": "x",
    "messages_consumed": 3,
    "offset": 2,
    "offset_lag": 1,
    "credits": 9,
    "active": True,
    "activity_status": "up",
    "properties": {"name": "plain"},
}


def test_consumers_are_listed_in_the_columns_of_rabbitmqs_tools(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = [CONSUMER]

    cli.main(["ctl", "list_stream_consumers", "-p", "v"])
    cli.main(["ctl", "list_stream_consumers", "connection_pid,active"])

    assert capsys.readouterr().out.splitlines() == [
        "\t".join(name for name in CONSUMER if name != "connection_number"),
        '1\tx\t3\t2\t1\t9\ttrue\tup\t[{"name","plain"}]',
        "connection_pid\tactive",
        "<rabbit@localhost.1.7.0>\ttrue",
    ]
    assert server.asked[0][1:] == ("list_consumers", {"virtual_host": "v"})


@pytest.mark.parametrize(
    ("flags", "kind"), [([], "all"), (["--offset"], "offset"), (["--writer"], "writer")]
)
def test_tracking_is_listed_in_the_columns_of_rabbitmqs_tools(
    flags: list[str], kind: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = {"writers": {"ref": 3}, "offsets": {"app": 1}}

    cli.main(["ctl", "list_stream_tracking", "x", *flags])

    assert capsys.readouterr().out.splitlines() == [
        "type\tname\ttracking_value",
        "writer\tref\t3",
        "offset\tapp\t1",
    ]
    wanted = {"virtual_host": "/", "name": "x", "type": kind}
    assert server.asked[0][1:] == ("list_tracking", wanted)


def test_a_list_of_connections_fits_a_screen(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {"connection_name": "orders", "product": "RabbitMQ Stream", "version": "1.11.0"}
    more = {"information": "x" * 300, "platform": "Java"}
    server.answer = [
        {
            "number": 1,
            "peer": "127.0.0.1:40000",
            "user": "guest",
            "virtual_host": "/",
            "client_properties": said | more,
        }
    ]

    cli.main(["ctl", "list_connections"])

    out = capsys.readouterr().out
    assert "orders" in out
    assert "RabbitMQ Stream 1.11.0" in out
    assert max(map(len, out.splitlines())) <= 100
