import pytest

from pyspark_hutch.options.errors import WrongOption, shown
from pyspark_hutch.options.given import Given
from pyspark_hutch.options.option import Use
from pyspark_hutch.options.write_options import CREATION, DELIVERY, MESSAGES

# Option: texts that it takes with their values, texts that it does not take.
EXAMPLES: dict[str, tuple[dict[str, object], list[str]]] = {
    "delivery": ({"none": "none", "Dedup": "dedup"}, ["", "staged", "exactly-once"]),
    "producerName": ({"x" * 200: "x" * 200}, ["", "x" * 201]),
    "publishingIdColumn": ({"x" * 255: "x" * 255}, ["", "x" * 256, "a\nb"]),
    "producerKeyColumn": ({"x" * 255: "x" * 255}, ["", "x" * 256, "a\nb"]),
    "dedupOrderBy": ({"a, b": ("a", "b")}, ["", "a,,b", "a,a"]),
    "dedupUnsafePlan": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "maxInFlight": ({"1": 1, "1000000": 1_000_000}, ["0", "1000001", "x"]),
    "confirmTimeoutMs": ({"1": 1, "3600000": 3_600_000}, ["0", "3600001", "x"]),
    "writeId": ({}, ["x"]),
    "routing": ({"hash": "hash", "KEY": "key", "column": "column"}, ["", "custom"]),
    "routingKeyColumn": ({"x" * 255: "x" * 255}, ["", "x" * 256, "a\nb"]),
    "compression": (
        {name: name for name in ("none", "gzip", "snappy", "lz4", "zstd")},
        ["", "brotli", "true"],
    ),
    "subBatchSize": ({"1": 1, "65535": 65_535}, ["0", "65536", "x"]),
    "ignoreUnknownColumns": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "createStream": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "partitions": ({"1": 1, "1000": 1_000}, ["0", "1001", "x"]),
    "retention.maxBytes": ({"1": 1, "2g": 2**31}, ["0", "-1", "x"]),
    "retention.maxAge": ({"1s": 1_000, "7D": 604_800_000}, ["999ms", "1M", "36501d", "7"]),
    "retention.segmentBytes": ({"9": 9, "3000000000": 3 * 10**9}, ["8", "3000000001", "x"]),
}
RIGHT = [(name, text) for name, (right, _) in EXAMPLES.items() for text in right]
WRONG = [(name, text) for name, (_, wrong) in EXAMPLES.items() for text in wrong]
OPTIONS = {
    option.name: option
    for group in (
        CREATION,
        DELIVERY,
        MESSAGES,
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
