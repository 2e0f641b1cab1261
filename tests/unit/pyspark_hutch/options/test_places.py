import pytest

from pyspark_hutch.options.errors import Unfit, WrongOption
from pyspark_hutch.options.kinds import ValueKind
from pyspark_hutch.options.places import (
    EARLIEST,
    ENDING_OFFSETS,
    INSTANT,
    INSTANTS,
    LATEST,
    NAMES_SHOWN_MAX,
    STARTING_OFFSETS,
    TIMESTAMP_MS_MAX,
    Point,
    PointKind,
    Where,
    require_exact,
)


def at(offset: int, incarnation: str | None = None) -> Point:
    return Point(PointKind.OFFSET, offset, incarnation)


def time(ms: int) -> Point:
    return Point(PointKind.TIMESTAMP, ms)


def refused(kind: ValueKind, text: str) -> str:
    with pytest.raises(Unfit) as caught:
        kind.parse(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("earliest", EARLIEST),
        ("Latest", LATEST),
        ("-1", Point(PointKind.ROWS_BACK, 1)),
        ("-1000", Point(PointKind.ROWS_BACK, 1_000)),
        ("- 5", Point(PointKind.ROWS_BACK, 5)),
        ("-10 minutes", Point(PointKind.MS_BACK, 600_000)),
        ("-1h", Point(PointKind.MS_BACK, 3_600_000)),
    ],
)
def test_a_read_starts_at_a_word_or_before_the_end(text: str, value: Point) -> None:
    assert STARTING_OFFSETS.parse(text) == value


@pytest.mark.parametrize(
    "text", ["", "first", "12", "-", "-0", "-0s", "--1", "-1.5", "-x", "+1", "10 minutes", "-9e9"]
)
def test_an_unknown_word_is_no_start(text: str) -> None:
    assert refused(STARTING_OFFSETS, text) == ""


@pytest.mark.parametrize("kind", [STARTING_OFFSETS, ENDING_OFFSETS])
@pytest.mark.parametrize(
    ("value", "point"),
    [
        ("12", at(12)),
        ("0", at(0)),
        (str(2**63 - 1), at(2**63 - 1)),
        ("-2", EARLIEST),
        ("-1", LATEST),
        ('"earliest"', EARLIEST),
        ('"LATEST"', LATEST),
        ('{"o": 12}', at(12)),
        ('{"i": "7f3a", "o": 12}', at(12, "7f3a")),
    ],
)
def test_json_gives_each_stream_its_own_place(kind: ValueKind, value: str, point: Point) -> None:
    assert kind.parse(f'{{"s": {value}}}') == (("s", point),)


@pytest.mark.parametrize(
    "value",
    [
        "true",
        "1.0",
        "1.5",
        "NaN",
        "-3",
        str(2**63),
        "null",
        '"12"',
        '"-1"',
        '"-10 minutes"',
        '"first"',
        "[]",
        "{}",
        '{"o": -1}',
        '{"o": true}',
        '{"i": "x"}',
        '{"o": 1, "x": 1}',
        '{"o": 1, "i": 1}',
        '{"o": 1, "i": null}',
        '{"o": 1, "i": ""}',
    ],
)
def test_what_is_no_place_is_refused_with_its_stream(value: str) -> None:
    assert "stream 's'" in refused(STARTING_OFFSETS, f'{{"s": {value}}}')


def test_an_incarnation_has_a_largest_length() -> None:
    assert STARTING_OFFSETS.parse(f'{{"s": {{"o": 1, "i": "{"x" * 64}"}}}}')
    assert refused(STARTING_OFFSETS, f'{{"s": {{"o": 1, "i": "{"x" * 65}"}}}}')


def test_a_stream_twice_in_json_is_refused() -> None:
    assert refused(STARTING_OFFSETS, '{"s": 1, "s": 2}') == "the key 's' is given twice"


def test_streams_come_in_the_order_of_their_names() -> None:
    assert STARTING_OFFSETS.parse('{"b": 1, "a": 2}') == (("a", at(2)), ("b", at(1)))


def test_only_a_start_can_be_before_the_end() -> None:
    assert refused(ENDING_OFFSETS, "-10") == refused(ENDING_OFFSETS, "-10 minutes") == ""
    assert ENDING_OFFSETS.parse("latest") == LATEST


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("1767225600000", 1_767_225_600_000),
        (str(TIMESTAMP_MS_MAX), TIMESTAMP_MS_MAX),
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01T01:00:00+01:00", 1_767_225_600_000),
        ("2026-01-01 00:00:00.001+00:00", 1_767_225_600_001),
        ("2026-01-01T00:00:00.000001Z", 1_767_225_600_001),
    ],
)
def test_a_time_is_in_milliseconds_or_iso_with_a_zone(text: str, ms: int) -> None:
    assert INSTANT.parse(text) == time(ms)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "1.5",
        "now",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-13-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "0001-01-01T00:00:00+14:00",
        str(TIMESTAMP_MS_MAX + 1),
    ],
)
def test_what_is_no_time_or_lacks_its_zone_is_refused(text: str) -> None:
    assert refused(INSTANT, text) == ""


def test_json_gives_each_stream_its_own_time() -> None:
    text = '{"s": 12, "r": "1970-01-01T00:00:01Z"}'

    assert INSTANTS.parse(text) == (("r", time(1_000)), ("s", time(12)))


@pytest.mark.parametrize("value", ["-1", "true", "1.0", '"latest"', "null", '{"o": 1}'])
def test_what_is_no_time_of_a_stream_is_refused_with_it(value: str) -> None:
    assert "stream 's'" in refused(INSTANTS, f'{{"s": {value}}}')


def test_times_by_stream_are_json() -> None:
    assert refused(INSTANTS, "12") == ""


def test_a_point_for_all_is_the_point_of_each_stream() -> None:
    point = Point(PointKind.EARLIEST)

    assert Where("startingOffsets", everywhere=point).points(("b", "a")) == {"a": point, "b": point}


def test_points_by_name_are_those_of_the_streams() -> None:
    a, b = Point(PointKind.OFFSET, 1), Point(PointKind.OFFSET, 2)
    where = Where("startingOffsets", by_stream=(("a", a), ("b", b)))

    assert where.points(("b", "a")) == {"a": a, "b": b}
    with pytest.raises(WrongOption, match="option startingOffsets"):
        where.points(("a",))


def test_names_that_are_missing_or_too_many_are_told_in_one_line() -> None:
    with pytest.raises(WrongOption) as caught:
        require_exact("endingOffsets", ("a", "x", "y"), ("a", "b"))

    assert str(caught.value) == (
        "option endingOffsets: must name each stream that is read: it misses 'b' and names what is "
        "not read, 'x', 'y'"
    )


def test_the_same_names_in_another_order_are_right() -> None:
    require_exact("endingOffsets", ("a", "b"), ("b", "a"))


def test_many_names_are_told_in_part() -> None:
    most = tuple(f"s{number}" for number in range(NAMES_SHOWN_MAX))

    with pytest.raises(WrongOption, match=r"'s4'$"):
        require_exact("startingOffsets", (), most)
    with pytest.raises(WrongOption, match=r"'s4' and 2 more$"):
        require_exact("startingOffsets", (), (*most, "t", "u"))
