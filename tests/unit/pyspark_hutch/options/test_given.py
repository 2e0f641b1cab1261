import pytest

from pyspark_hutch.options.connection_settings import CLIENT_PROPERTIES_MAX, OWN_PROPERTIES
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.given import Given, unused
from pyspark_hutch.options.option import Use


def of_batch(**options: str) -> Given:
    return Given(options, Use.BATCH_READ)


def refused(options: dict[str, str], use: Use = Use.BATCH_READ) -> tuple[str, ...]:
    with pytest.raises(WrongOption) as caught:
        Given(options, use)
    return caught.value.problems


def test_names_are_taken_in_any_case() -> None:
    given = of_batch(SUPERSTREAM="Orders")

    assert given.value("superStream", tuple) == ("Orders",)
    assert given.has("superStream")


def test_blanks_around_a_value_are_left_out_but_for_a_password() -> None:
    given = of_batch(minpartitions=" 3 ", password=" p ")

    assert given.value("minPartitions", int) == 3
    assert given.value("password", str) == " p "


def test_a_default_stands_in_for_what_was_not_given() -> None:
    given = of_batch()

    assert given.certain("pollTimeoutMs", int) == 120_000
    assert given.value("minPartitions", int) is None
    assert not given.has("pollTimeoutMs")


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    assert refused({"strem": "x"}) == ("option strem='x' is unknown: the nearest is stream",)
    assert refused({"quux": "x"}) == ("option quux='x' is unknown: the page of options lists all",)


def test_a_wrong_value_is_told_with_what_is_allowed() -> None:
    assert refused({"minPartitions": "0"}) == (
        "option minPartitions='0': takes a whole number from 1 to 100000",
    )


def test_a_reason_of_its_own_goes_before_what_is_allowed() -> None:
    assert refused({"stream": "a,a"}) == ("option stream='a,a': 'a' is given twice",)


def test_all_wrong_names_and_values_are_told_in_one_line() -> None:
    problems = refused({"minPartitions": "x", "strem": "a\nb" * 100, "endpoints": ":\n:"})

    assert [problem.split("=")[0] for problem in problems] == [
        "option strem",
        "option endpoints",
        "option minPartitions",
    ]
    assert "\n" not in str(WrongOption(*problems))


def test_a_strange_name_is_told_on_one_line() -> None:
    assert refused({"a\nb": "x"})[0].startswith(r"option 'a\nb'='x'")
    assert len(refused({"x" * 1_000: "x"})[0]) < 200


def test_a_refused_option_is_told_with_its_reason_whatever_it_is_for() -> None:
    for use in Use:
        (problem,) = refused({"segmentRoot": "/data"}, use)
        assert problem.startswith("option segmentRoot='/data' is refused: rows are read over")


def test_an_option_for_the_other_way_of_reading_is_told() -> None:
    assert refused({"endingOffsets": "latest"}, Use.STREAMING_READ) == (
        "option endingOffsets='latest': is for a batch read, and this is a streaming read",
    )
    assert refused({"maxOffsetsPerTrigger": "1"}, Use.BATCH_READ) == (
        "option maxOffsetsPerTrigger='1': is for a streaming read, and this is a batch read",
    )


def test_an_option_for_writes_does_nothing_in_a_read_but_must_be_right() -> None:
    options = {"DELIVERY": "none", "stream": "s"}

    Given(options, Use.BATCH_READ)

    assert unused(options, Use.BATCH_READ) == ("delivery",)
    assert unused(options, Use.BATCH_WRITE) == ()
    assert refused({"delivery": "x"}) == ("option delivery='x': takes auto, staged, none or dedup",)


def test_an_option_for_reads_does_nothing_in_a_write() -> None:
    options = {"endingOffsets": "latest", "maxOffsetsPerTrigger": "1"}

    Given(options, Use.STREAMING_WRITE)

    assert unused(options, Use.STREAMING_WRITE) == ("endingOffsets", "maxOffsetsPerTrigger")


@pytest.mark.parametrize("name", ["path", "Provider", "owner", "option.strem", "queryName"])
def test_names_of_spark_pass(name: str) -> None:
    Given({name: "\0"}, Use.BATCH_READ)


@pytest.mark.parametrize(
    "options",
    [
        {"password": ""},
        {"password": "secret\0"},
        {"pasword": "secret"},
        {"passwd": "secret"},
        {"my.pwd": "secret"},
        {"apiToken": "secret"},
        {"uri": "rabbitmq-stream://u:secret@"},
        {"url": "rabbitmq-stream://u:secret@h"},
        {"brokerAddress": "amqp://u:secret@h"},
        {"endpoints": "u:secret@h"},
        {"passwordEnv": "secret!"},
        {"client.product": "u:secret@h"},
        {"client.password": "secret\n"},
    ],
)
def test_a_password_is_in_no_error(options: dict[str, str]) -> None:
    (problem,) = refused(options)

    assert "secret" not in problem
    assert "(not shown)" in problem


def test_properties_of_connections_pass_through() -> None:
    given = Given({"client.Team": "pay ments", "client.a": "b"}, Use.BATCH_WRITE)

    assert given.client_properties == (("a", "b"), ("team", "pay ments"))


@pytest.mark.parametrize("name", OWN_PROPERTIES)
def test_properties_that_connections_set_themselves_are_refused(name: str) -> None:
    assert refused({f"client.{name}": "x"}) == (
        f"option client.{name}='x': every connection sets this itself",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [("client.", "x"), ("client.a", ""), ("client.a", "x" * 256), ("client." + "a" * 256, "x")],
)
def test_a_property_has_a_name_and_a_value_of_255_bytes_at_most(name: str, text: str) -> None:
    assert refused({name: text})[0].endswith("takes a name and a value of 1 to 255 bytes")
    Given({"client." + "a" * 255: "x" * 255}, Use.BATCH_READ)


def test_properties_have_a_largest_number() -> None:
    most = {f"client.{number}": "x" for number in range(CLIENT_PROPERTIES_MAX)}
    Given(most, Use.BATCH_READ)

    assert refused(most | {"client.x": "x"}) == ("options client.*: takes at most 20 of them",)


def test_contradictions_name_all_options_with_their_values() -> None:
    given = of_batch(minPartitions="3")

    given.clash(("minPartitions", "pollTimeoutMs"), "because")
    given.need("minPartitions", "stream")
    given.refuse("minPartitions", "is too large")

    with pytest.raises(WrongOption) as caught:
        given.settle()
    assert caught.value.problems == (
        "options minPartitions='3' and pollTimeoutMs='120000' contradict each other: because",
        "option minPartitions='3' needs stream",
        "option minPartitions='3': is too large",
    )
