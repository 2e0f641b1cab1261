"""The bridge's file: what it says, and all that is wrong with it at once."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.bridge import routes
from gateway.bridge.routes import WrongFile
from tests.unit.gateway.bridge.file_rig import (
    QUEUE,
    STREAM,
    Load,
    Mistakes,
    route,
    source,
    table,
    target,
)

# ---- what it says ----------------------------------------------------------------------------


def test_a_route_of_the_most_common_kind_takes_six_lines(load: Load) -> None:
    text = """\
[[routes]]
name = "orders"
source = { uri = "amqp://guest:${PASSWORD}@old-broker/", queue = "orders" }
target = { uri = "rabbitmq-stream://localhost", stream = "orders", create = {} }
"""

    (found,) = load(text, PASSWORD="s3cret")

    assert (found.name, found.window, found.refused) == ("orders", 1_000, "stop")
    assert found.owned == "hutch-bridge-orders"
    assert found.source.place == ("old-broker", 5672)
    assert found.source.login == ("guest", "s3cret")


AMQP, MQTT, STREAMS = '"amqp://h"', '"mqtt://h"', '"rabbitmq-stream://h"'


@pytest.mark.parametrize(
    ("given", "kind", "fields"),
    [
        ({"uri": AMQP, "queue": '"q"'}, routes.QueueSource, {"queue": "q"}),
        ({"uri": AMQP, "exchange": '"e"'}, routes.ExchangeSource, {"exchange": "e", "keys": ["#"]}),
        (
            {"uri": AMQP, "exchange": '"e"', "keys": '["a", "b.*"]'},
            routes.ExchangeSource,
            {"keys": ["a", "b.*"]},
        ),
        (
            {"uri": MQTT, "topics": '["a/+", "b/#"]'},
            routes.TopicsSource,
            {"topics": ["a/+", "b/#"], "qos": 1, "version": "5", "session_expiry_s": 604_800},
        ),
        (
            {"uri": MQTT, "topics": '"$share/g/a"', "qos": "2", "version": '"3.1.1"'},
            routes.TopicsSource,
            {"topics": ["$share/g/a"], "qos": 2, "version": "3.1.1"},
        ),
        (
            {"uri": STREAMS, "stream": '"s"'},
            routes.StreamSource,
            {"stream": "s", "start": "first"},
        ),
        (
            {"uri": STREAMS, "super_stream": '"s"', "start": '"next"'},
            routes.SuperStreamSource,
            {"super_stream": "s", "start": "next"},
        ),
        ({"uri": STREAMS, "stream": '"s"', "start": "7"}, routes.StreamSource, {"start": 7}),
        (
            {"uri": STREAMS, "stream": '"s"', "start": "2026-01-02T03:04:05Z"},
            routes.StreamSource,
            {"start": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)},
        ),
    ],
)
def test_a_source_is_what_its_key_says(
    load: Load, given: dict[str, str], kind: type[object], fields: dict[str, object]
) -> None:
    (found,) = load(route(source=source(**given)))

    assert type(found.source) is kind
    assert {name: getattr(found.source, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("given", "kind", "fields"),
    [
        ({"uri": STREAMS, "stream": '"s"'}, routes.StreamTarget, {"stream": "s", "create": None}),
        (
            {"uri": STREAMS, "stream": '"s"', "create": '{ max-age = "1h", max-length-bytes = 5 }'},
            routes.StreamTarget,
            {"create": {"max-age": "1h", "max-length-bytes": 5}},
        ),
        (
            {"uri": STREAMS, "super_stream": '"s"'},
            routes.SuperStreamTarget,
            {"super_stream": "s", "partitions": 3, "create": None},
        ),
        ({"uri": AMQP, "exchange": '"e"'}, routes.ExchangeTarget, {"exchange": "e"}),
        ({"uri": AMQP, "queue": '"q"'}, routes.QueueTarget, {"queue": "q"}),
        (
            {"uri": MQTT, "topic": '"t"'},
            routes.TopicTarget,
            {"qos": 1, "retain": False, "version": "5"},
        ),
        (
            {"uri": MQTT, "topic": '"t"', "qos": "0", "retain": "true", "version": '"3.1.1"'},
            routes.TopicTarget,
            {"qos": 0, "retain": True, "version": "3.1.1"},
        ),
    ],
)
def test_a_target_is_what_its_key_says(
    load: Load, given: dict[str, str], kind: type[object], fields: dict[str, object]
) -> None:
    (found,) = load(route(target=target(**given)))

    assert type(found.target) is kind
    assert {name: getattr(found.target, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("given", "key", "text"),
    [
        ({"uri": STREAMS, "super_stream": '"s"'}, "partition_by", "{routing_key}"),
        ({"uri": AMQP, "exchange": '"e"'}, "routing_key", "{routing_key}"),
        ({"uri": AMQP, "exchange": '"e"', "routing_key": '"k"'}, "routing_key", "k"),
        ({"uri": MQTT, "topic": '"a/{topic[1]}"'}, "topic", "a/{topic[1]}"),
    ],
)
def test_keys_and_topics_are_templates(
    load: Load, given: dict[str, str], key: str, text: str
) -> None:
    (found,) = load(route(target=target(**given)))

    assert getattr(found.target, key).text == text


def test_refused_messages_may_go_to_a_stream_of_their_own(load: Load) -> None:
    given = {"uri": '"rabbitmq-stream://h"', "stream": '"dead"'}

    (found,) = load(route(f"refused = {table(given)}", "window = 7"))

    assert isinstance(found.refused, routes.StreamTarget)
    assert (found.refused.stream, found.window) == ("dead", 7)


@pytest.mark.parametrize(
    ("uri", "place", "name"),
    [
        ("amqp://u:p@h/v", ("h", 5672), "queue 'q' at h"),
        ("amqp://u:p@h:7/v", ("h", 7), "queue 'q' at h:7"),
        ("amqps://h", ("h", 5671), "queue 'q' at h"),
        ("amqp://u:p@[::1]:7", ("::1", 7), "queue 'q' at [::1]:7"),
    ],
)
def test_an_end_is_named_without_its_user(
    load: Load, uri: str, place: tuple[str, int], name: str
) -> None:
    (found,) = load(route(source=source(uri=f'"{uri}"', queue='"q"')))

    assert (found.source.place, found.source.name) == (place, name)


def test_an_end_of_topics_is_named_by_its_template(load: Load) -> None:
    (found,) = load(route(target=target(uri='"mqtts://h"', topic='"{topic}"')))

    assert (found.target.place, found.target.name) == (("h", 8883), "topic '{topic}' at h")


# ---- all mistakes at once --------------------------------------------------------------------

TEN = """\
[[route]]
name = "old"
[[routes]]
name = "one"
source = { uri = "amqp://h", queu = "q" }
target = { uri = "rabbitmq-stream://h", stream = "s", creat = {} }
refused = "stopp"
[[routes]]
name = "two"
source = { uri = "amqp://h:${PORT}", queue = "q" }
target = { uri = "http://h", stream = "s", create = { max-age = 1.5 } }
[[routes]]
name = "two"
source = { uri = "rabbitmq-stream://h", stream = "s", start = -1 }
target = { uri = "mqtt://h", topic = "{tpoic}" }
"""


def test_a_file_with_ten_mistakes_gives_ten_lines(mistakes: Mistakes) -> None:
    fields = "routing_key, exchange, topic, topic[0], message_id, correlation_id, content_type"

    found = mistakes(TEN)

    assert len(found) == 10
    assert [line.replace(fields, "…").partition(" (…")[0] for line in found] == [
        "route: there is no such key; did you mean routes?",
        (
            "route 'one': source: it needs one of queue, exchange, topics, stream, super_stream,"
            " and has 0; did you mean queue?"
        ),
        "route 'one': target.creat: there is no such key; did you mean create?",
        (
            'route \'one\': refused: this is "stop", "skip", or a table with `uri` and `stream`;'
            " did you mean stop?"
        ),
        "route 'two': source.uri: the environment has no 'PORT'",
        (
            "route 'two': target.uri: an end with `stream` has rabbitmq-stream://HOST or"
            " rabbitmq-stream+tls://HOST"
        ),
        "route 'two': target.create.max-age: input should be a valid integer, or a valid string",
        (
            "route 'two': source.start: input should be 'first', 'last' or 'next', or greater than"
            " or equal to 0, or a valid datetime"
        ),
        "route 'two': target.topic: there is no field {tpoic}; did you mean topic or topic[0]?",
        "route 'two': name: there is another route of this name",
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["there is no route: each begins with a line [[routes]]"]),
        ("routes = 5", ["there is no route: each begins with a line [[routes]]"]),
        ("routes = []", ["there is no route: each begins with a line [[routes]]"]),
        ("[routes]\nname = 'r'", ["there is no route: each begins with a line [[routes]]"]),
        ("routes = [1]", ["route 1: routes: this is no table"]),
        (f"{route()}\nwindow = 5\nwindo = 5", ["route 'r': windo: there is no such key; "]),
        (route() + route(), ["route 'r': name: there is another route of this name"]),
        (f"[[routes]]\n{QUEUE}\n{STREAM}", ["route 1: name: field required"]),
        (route(name="a b"), ["route 'a b': name: string should match pattern"]),
        (route(name="a" * 101), [f"route '{'a' * 101}': name: string should match pattern"]),
        (route("window = 65536"), ["route 'r': window: input should be less than or equal to"]),
        (
            route(source="", target=""),
            [
                "route 'r': source: this is a table with `uri` and one of queue, exchange, ",
                "route 'r': target: this is a table with `uri` and one of stream, super_stream, ",
            ],
        ),
        (route(source=source(queue='"q"')), ["route 'r': source.uri: field required"]),
        (
            route(source=source(uri='"amqp://h"', queue='"q"', exchange='"e"')),
            ["route 'r': source: it needs one of queue, exchange, topics, stream, super_stream, "],
        ),
        (
            route(source=source(uri='"amqp://h"', queue='""')),
            ["route 'r': source.queue: string should have at least 1 character"],
        ),
        (
            route(source=source(uri='"amqp://h"', exchange='"e"', keys="[]")),
            ["route 'r': source.keys: list should have at least 1 item"],
        ),
        (
            route(source=source(uri='"mqtt://h"', topics="[]")),
            ["route 'r': source.topics: value should have at least 1 item"],
        ),
        (
            route(source=source(uri='"mqtt://h"', topics="[1, 2]")),
            ["route 'r': source.topics: input should be a valid string"],
        ),
        (
            route(source=source(uri='"mqtt://h"', topics='"t"', version='"4"')),
            ["route 'r': source.version: input should be '5' or '3.1.1'"],
        ),
        (
            route(target=target(uri='"amqp://h"', exchange='"e"', routing_key='"{"')),
            ["route 'r': target.routing_key: a brace is alone in '{'"],
        ),
        (
            route(target=target(uri=STREAMS, super_stream='"s"', partitions="0")),
            ["route 'r': target.partitions: input should be greater than or equal to 1"],
        ),
        (
            route(source=source(uri='"amqps://h"', queue='"q"', tls_ca='"/none"')),
            ["route 'r': source.tls_ca: there is no file '/none'"],
        ),
        (
            route(source=source(uri='"amqp://h"', queue='"q"', tls_ca='"/none"')),
            ["route 'r': source.tls_ca: the scheme of `uri` has no TLS"],
        ),
        (
            route(source=source(uri='"http://h"', queue='"q"', tls_key='"/none"')),
            [
                "route 'r': source.uri: an end with `queue` has amqp://HOST or amqps://HOST",
                "route 'r': source.tls_key: there is no file '/none'",
            ],
        ),
        (
            route('refused = { uri = "amqp://h", stream = "s" }'),
            ["route 'r': refused.uri: an end with `stream` has rabbitmq-stream://HOST or "],
        ),
        (
            route('refused = { uri = "amqp://h", queue = "s" }'),
            ["route 'r': refused: it needs one of stream, and has 0"],
        ),
    ],
)
def test_each_mistake_is_a_line_with_route_and_key(
    mistakes: Mistakes, text: str, lines: list[str]
) -> None:
    found = mistakes(text)

    assert [line[: len(start)] for line, start in zip(found, lines, strict=True)] == lines


@pytest.mark.parametrize(
    "uri",
    ["amqp://", "h:5672", "", "amqp:h", "mqtt://h", "amqp://h:0", "amqp://h:99999", "amqp://[::1"],
)
def test_a_uri_of_another_kind_is_a_mistake(mistakes: Mistakes, uri: str) -> None:
    found = mistakes(route(source=source(uri=f'"{uri}"', queue='"q"')))

    assert found == ["route 'r': source.uri: an end with `queue` has amqp://HOST or amqps://HOST"]


@pytest.mark.parametrize("start", ["1.5", '"frist"', '"5"', "true", "-1", '"2026-01-01"'])
def test_a_start_is_a_word_an_offset_or_a_time(mistakes: Mistakes, start: str) -> None:
    found = mistakes(route(source=source(uri=STREAMS, stream='"s"', start=start)))

    assert len(found) == 1
    assert found[0].startswith("route 'r': source.start: input should be 'first', 'last' or 'next'")


def test_a_mistake_of_toml_is_a_line_with_its_place(mistakes: Mistakes) -> None:
    (line,) = mistakes("[[routes]]\nname = orders\n")

    assert "(at line 2, column 8)" in line


def test_a_file_that_is_not_there_is_a_line(tmp_path: Path) -> None:
    with pytest.raises(WrongFile, match=r"none.toml: No such file or directory"):
        routes.load(tmp_path / "none.toml")


def test_a_file_that_is_no_text_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff")

    with pytest.raises(WrongFile, match="can't decode byte 0xff") as caught:
        routes.load(tmp_path / "f")

    assert "\n" not in str(caught.value)
