import pytest

from gateway.broker.rules.arguments import (
    LEADER_LOCATORS,
    NAMES,
    InvalidStreamArgument,
    MaxAge,
    StreamArguments,
    doubts,
)

DAY = 24 * 60 * 60


def parse(**arguments: str) -> StreamArguments:
    return StreamArguments.parse({name.replace("_", "-"): text for name, text in arguments.items()})


def test_no_arguments_are_all_none() -> None:
    assert StreamArguments.parse({}) == StreamArguments()


def test_every_argument_is_read() -> None:
    arguments = StreamArguments.parse(
        {
            "max-length-bytes": "5000",
            "max-age": "7D",
            "stream-max-segment-size-bytes": "1000000",
            "initial-cluster-size": "3",
            "queue-leader-locator": "balanced",
            "stream-filter-size-bytes": "32",
            "stream-initial-offset": "9",
        }
    )

    assert arguments == StreamArguments(
        max_length_bytes=5000,
        max_age=MaxAge("7D"),
        segment_bytes=1_000_000,
        initial_cluster_size=3,
        leader_locator="balanced",
        filter_size_bytes=32,
        initial_offset=9,
    )


@pytest.mark.parametrize(
    "name", ["x-max-age", "max-length", "x-queue-type", "", "Max-Age", "max_age"]
)
def test_an_unknown_name_is_left_out_whatever_its_value(name: str) -> None:
    assert StreamArguments.parse({name: "no integer"}) == StreamArguments()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-1", -1),
        ("+7", 7),
        ("05000", 5000),
        ("100000000000000000000", 10**20),
    ],
)
def test_any_integer_is_a_max_length(text: str, value: int) -> None:
    assert parse(max_length_bytes=text).max_length_bytes == value


@pytest.mark.parametrize(
    "name",
    [
        "max-length-bytes",
        "stream-max-segment-size-bytes",
        "initial-cluster-size",
        "stream-filter-size-bytes",
        "stream-initial-offset",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        " 20",
        "20 ",
        "20\n",
        "20.0",
        "2e1",
        "2_0",
        "0x14",
        "ten",
        "+",
        "-",
        "\u0662\u0660",
        "--2",
    ],
)
def test_what_is_no_integer_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidStreamArgument, match=name):
        StreamArguments.parse({name: text})


@pytest.mark.parametrize("name", ["max-length-bytes", "initial-cluster-size"])
def test_a_number_of_any_length_is_taken_and_kept_as_it_is(name: str) -> None:
    enormous = StreamArguments.parse({name: "9" * 60_000})

    assert StreamArguments.parse(enormous.texts()) == enormous
    assert enormous == StreamArguments.parse({name: "+0" + "9" * 60_000})
    assert enormous != StreamArguments.parse({name: "9" * 59_999 + "8"})
    assert enormous != StreamArguments.parse({name: str(2**63 - 1)})
    assert StreamArguments.parse({name: "0" * 60_000 + "5"}) == StreamArguments.parse({name: "5"})


def test_a_length_of_any_length_is_a_number() -> None:
    assert parse(max_length_bytes="9" * 5_000).max_length_bytes == 2**63 - 1
    assert parse(max_length_bytes="-" + "9" * 5_000).max_length_bytes == -(2**63 - 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("stream-max-segment-size-bytes", "9" * 5_000),
        ("stream-filter-size-bytes", "9" * 5_000),
        ("stream-initial-offset", "9" * 5_000),
        ("initial-cluster-size", "-" + "9" * 5_000),
    ],
)
def test_a_number_of_any_length_is_in_its_range_or_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidStreamArgument, match=name):
        StreamArguments.parse({name: text})


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        ("stream-max-segment-size-bytes", ["9", "3000000000"], ["8", "0", "-5", "3000000001"]),
        ("initial-cluster-size", ["1", "1000"], ["0", "-1"]),
        ("stream-filter-size-bytes", ["16", "255"], ["15", "256", "-16"]),
        ("stream-initial-offset", ["0", "140737488355327"], ["-1", "140737488355328"]),
    ],
)
def test_integers_are_taken_from_their_range_only(
    name: str, accepted: list[str], refused: list[str]
) -> None:
    for text in accepted:
        assert StreamArguments.parse({name: text}).texts() == {name: text}
    for text in refused:
        with pytest.raises(InvalidStreamArgument, match=name):
            StreamArguments.parse({name: text})


@pytest.mark.parametrize("text", LEADER_LOCATORS)
def test_the_five_leader_locators_are_taken(text: str) -> None:
    assert parse(queue_leader_locator=text).leader_locator == text


@pytest.mark.parametrize("text", ["", "Balanced", "min_masters", "client-local "])
def test_any_other_leader_locator_is_refused(text: str) -> None:
    with pytest.raises(InvalidStreamArgument, match="queue-leader-locator"):
        parse(queue_leader_locator=text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("90m", 90 * 60),
        ("1h", 60 * 60),
        ("07D", 7 * DAY),
        ("2M", 60 * DAY),
        ("1Y", 365 * DAY),
    ],
)
def test_a_max_age_counts_in_its_unit(text: str, seconds: int) -> None:
    age = parse(max_age=text).max_age

    assert age is not None
    assert age.text == text
    assert age.seconds == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "5x",
        "0s",
        "5",
        "s",
        "-1h",
        "+1h",
        "1h30m",
        "1 h",
        "1.5h",
        "1H",
        "1h\n",
        "\u0661h",
    ],
)
def test_a_max_age_that_means_nothing_is_taken_and_never_expires(text: str) -> None:
    age = parse(max_age=text).max_age

    assert age is not None
    assert age.text == text
    assert age.seconds is None


def test_no_age_agrees_with_itself_and_not_with_none_in_another_unit() -> None:
    assert parse(max_age="0s") == parse(max_age="0s")
    assert parse(max_age="0s") != parse(max_age="0h")
    assert parse(max_age="0s") != parse(max_age="00s")
    assert parse(max_age="1h") == parse(max_age="060m")


def test_a_max_age_too_long_to_be_meant_never_expires() -> None:
    age = parse(max_age="9" * 5_000 + "s").max_age

    assert age is not None
    assert age.seconds is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"max-age": "60m"}, {"max-age": "1h"}),
        ({"max-age": "30D"}, {"max-age": "1M"}),
        ({"max-age": "abc"}, {"max-age": "abc"}),
        ({"max-length-bytes": "05000"}, {"max-length-bytes": "5000"}),
        ({"max-length-bytes": "1", "x-other": "1"}, {"max-length-bytes": "1"}),
    ],
)
def test_arguments_of_the_same_meaning_are_equal(
    one: dict[str, str], other: dict[str, str]
) -> None:
    assert StreamArguments.parse(one) == StreamArguments.parse(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"max-age": "1h"}),
        ({}, {"stream-max-segment-size-bytes": "500000000"}),
        ({}, {"queue-leader-locator": "client-local"}),
        ({}, {"stream-filter-size-bytes": "16"}),
        ({}, {"stream-initial-offset": "0"}),
        ({"max-age": "1h"}, {"max-age": "61m"}),
        ({"max-age": "abc"}, {"max-age": "def"}),
        ({"max-age": "abc"}, {"max-age": "0s"}),
        ({"max-length-bytes": "1"}, {"max-length-bytes": "2"}),
        ({"max-length-bytes": "1"}, {"max-length-bytes": "1", "max-age": "1h"}),
        ({"queue-leader-locator": "random"}, {"queue-leader-locator": "balanced"}),
    ],
)
def test_missing_added_and_other_values_differ(one: dict[str, str], other: dict[str, str]) -> None:
    assert StreamArguments.parse(one) != StreamArguments.parse(other)


def test_stored_texts_give_the_same_arguments_again() -> None:
    arguments = StreamArguments.parse(
        {
            "max-length-bytes": "05000",
            "max-age": "soon",
            "stream-max-segment-size-bytes": "9",
            "initial-cluster-size": "1",
            "queue-leader-locator": "least-leaders",
            "stream-filter-size-bytes": "255",
            "x-unknown": "1",
        }
    )

    texts = arguments.texts()

    assert texts == {
        "max-length-bytes": "5000",
        "max-age": "soon",
        "stream-max-segment-size-bytes": "9",
        "initial-cluster-size": "1",
        "queue-leader-locator": "least-leaders",
        "stream-filter-size-bytes": "255",
    }
    assert StreamArguments.parse(texts) == arguments


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("max-length-bytes", "-1", "below 0"),
        ("max-length-bytes", "-" + "9" * 2_000, "below 0"),
        ("max-age", "0s", "no age"),
        ("max-age", "soon", "no age"),
        ("max-age", "", "no age"),
    ],
)
def test_some_values_are_taken_from_stream_clients_alone(name: str, text: str, reason: str) -> None:
    StreamArguments.parse({name: text})

    with pytest.raises(InvalidStreamArgument, match=f"{name} is .*{reason}"):
        StreamArguments.parse({name: text}, is_strict=True)


def test_what_is_taken_strictly_is_read_alike() -> None:
    given = {"max-length-bytes": "0", "max-age": "7D", "stream-filter-size-bytes": "32"}
    assert StreamArguments.parse(given, is_strict=True) == StreamArguments.parse(given)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("x-max-age", "7D", "'x-max-age' is no argument of a stream: did you mean max-age?"),
        ("max_age", "7D", "'max_age' is no argument of a stream: did you mean max-age?"),
        ("MAX-AGE", "7D", "'MAX-AGE' is no argument of a stream: did you mean max-age?"),
        (
            "x-max-length-byte",
            "1",
            "'x-max-length-byte' is no argument of a stream: did you mean max-length-bytes?",
        ),
        ("colour", "red", "'colour' is no argument of a stream"),
        ("max-age" * 20_000, "", f"{('max-age' * 20)[:64]!r} is no argument of a stream"),
        ("max-age", "1d", "max-age '1d' is no age such as 7D: records of any age are kept"),
        ("max-age", "P1D", "max-age 'P1D' is no age such as 7D: records of any age are kept"),
        ("max-age", "12 h", "max-age '12 h' is no age such as 7D: records of any age are kept"),
        ("max-age", "0s", "max-age '0s' is no age such as 7D: records of any age are kept"),
        ("max-length-bytes", "-1", "max-length-bytes is below 0: only the newest unit is kept"),
    ],
)
def test_an_argument_that_does_not_do_what_was_meant_is_named(
    name: str, value: str, reason: str
) -> None:
    assert list(doubts({"max-age": "7D", name: value})) == [reason]


def test_arguments_that_do_what_they_say_are_not_doubted() -> None:
    taken = {
        "max-length-bytes": "0",
        "max-age": "12h",
        "stream-max-segment-size-bytes": "500000",
        "initial-cluster-size": "3",
        "queue-leader-locator": "random",
        "stream-filter-size-bytes": "32",
        "stream-initial-offset": "5",
    }
    assert taken.keys() == set(NAMES)
    assert list(doubts(taken)) == []
