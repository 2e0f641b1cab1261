import pytest

from pyspark_hutch.options.errors import WrongOption, shown
from pyspark_hutch.options.given import Given
from pyspark_hutch.options.option import Use
from pyspark_hutch.options.places import EARLIEST, LATEST
from pyspark_hutch.options.read_options import BATCHES, END, ROWS, SOURCE, START
from pyspark_hutch.options.settings import Point, PointKind

TIME = Point(PointKind.TIMESTAMP, 12)


# Option: texts that it takes with their values, texts that it does not take.
EXAMPLES: dict[str, tuple[dict[str, object], list[str]]] = {
    "stream": (
        {"a": ("a",), "a, b": ("a", "b"), '["a,b"]': ("a,b",)},
        ["", "a,", "a,a", "x" * 256, "[1]"],
    ),
    "superStream": (
        {"a": ("a",), "a, b": ("a", "b"), '["a,b"]': ("a,b",)},
        ["", "a,", "a,a", "x" * 256, "[1]"],
    ),
    "assign": ({'{"a": [0, 2]}': (("a", (0, 2)),)}, ["", "a", '{"a": [0.5]}']),
    "streamPattern": ({}, ["orders-.*"]),
    "readMode": ({}, ["direct", "stream"]),
    "segmentRoot": ({}, ["/data"]),
    "startingOffsets": (
        {"earliest": EARLIEST, "-9": Point(PointKind.ROWS_BACK, 9), '{"s": -1}': (("s", LATEST),)},
        ["", "9", "soon", '{"s": 1.5}', '{"s": 1, "s": 2}', '{"s": '],
    ),
    "startingTimestamp": ({"12": TIME}, ["", "now", "2026-01-01T00:00:00"]),
    "startingOffsetsByTimestamp": ({'{"s": 12}': (("s", TIME),)}, ["", "12", '{"s": true}']),
    "startingOffsetsByTimestampStrategy": (
        {"error": "error", "LATEST": "latest"},
        ["", "earliest"],
    ),
    "endingOffsets": ({"latest": LATEST, '{"s": -1}': (("s", LATEST),)}, ["", "-9", "soon"]),
    "endingTimestamp": ({"12": TIME}, ["", "-1", "2026-01-01"]),
    "endingOffsetsByTimestamp": ({'{"s": 12}': (("s", TIME),)}, ["", "12", '{"s": "latest"}']),
    "failOnDataLoss": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "maxOffsetsPerTrigger": (
        {"1": 1, str(2**63 - 1): 2**63 - 1},
        ["0", "-1", "x", "1.0", str(2**63)],
    ),
    "maxBytesPerTrigger": ({"1": 1, "64m": 2**26}, ["0", "x", "1.5g"]),
    "minOffsetsPerTrigger": (
        {"1": 1, str(2**63 - 1): 2**63 - 1},
        ["0", "-1", "x", "1.0", str(2**63)],
    ),
    "maxTriggerDelay": ({"1ms": 1, "7d": 604_800_000}, ["0s", "8d", "15", "x"]),
    "minPartitions": ({"1": 1, "100000": 100_000}, ["0", "100001", "x"]),
    "maxRecordsPerPartition": (
        {"1": 1, str(2**63 - 1): 2**63 - 1},
        ["0", "-1", "x", "1.0", str(2**63)],
    ),
    "maxBytesPerPartition": ({}, ["1g"]),
    "bodyFormat": ({"amqp": "amqp", "RAW": "raw"}, ["", "json"]),
    "metadataFields": ({"footer,header": ("header", "footer")}, ["", "headers", "offset"]),
    "includeProperties": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "includeChunkInfo": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "applicationProperties": ({"map": "map", "Variant": "variant"}, ["", "json"]),
    "appColumns": ({"a int": (("a", "int"),)}, ["", "a", "a map", "offset int", "a int, A int"]),
    "filterValues": (
        {"a": ("a",), "a, b": ("a", "b"), '["a,b"]': ("a,b",)},
        ["", "a,", "a,a", "x" * 256, "[1]"],
    ),
    "filterMatchUnfiltered": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "consumerName": ({"x" * 255: "x" * 255}, ["", "x" * 256, "a\nb"]),
}
RIGHT = [(name, text) for name, (right, _) in EXAMPLES.items() for text in right]
WRONG = [(name, text) for name, (_, wrong) in EXAMPLES.items() for text in wrong]
OPTIONS = {
    option.name: option
    for group in (
        BATCHES,
        END,
        ROWS,
        SOURCE,
        START,
    )
    for option in group.options
}


def use_of(name: str) -> Use:
    return next(iter(OPTIONS[name].uses))


def test_every_option_has_examples() -> None:
    assert EXAMPLES.keys() == OPTIONS.keys()
    assert all(bool(EXAMPLES[name][0]) == (row.kind is not None) for name, row in OPTIONS.items())


@pytest.mark.parametrize(("name", "text"), RIGHT)
def test_a_right_value_is_taken_in_any_case_of_the_name(name: str, text: str) -> None:
    given = Given({name.lower(): text}, use_of(name))

    assert given.value(name, object) == EXAMPLES[name][0][text]


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_a_wrong_value_is_told_with_its_option_on_one_line(name: str, text: str) -> None:
    with pytest.raises(WrongOption) as caught:
        Given({name.lower(): text}, use_of(name))

    (problem,) = caught.value.problems
    value = " (not shown)" if OPTIONS[name].hidden or "@" in text else f"={shown(text)}"
    said = f"option {name}{value}"
    assert problem.startswith((f"{said}: ", f"{said} is refused: "))
    assert "\n" not in problem
