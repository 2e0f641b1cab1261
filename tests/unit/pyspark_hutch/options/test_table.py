import re

import pytest

from pyspark_hutch.options.option import Option
from pyspark_hutch.options.table import OPTIONS, SPARKS_OWN, TABLE, is_sparks_own, nearest

ROWS = [option for group in TABLE for option in group.options]


def test_every_option_has_its_own_name() -> None:
    assert len(OPTIONS) == len(ROWS)
    assert not SPARKS_OWN & OPTIONS.keys()


@pytest.mark.parametrize("option", ROWS, ids=lambda option: option.name)
def test_a_row_is_complete(option: Option) -> None:
    assert re.fullmatch(r"[a-z]+(\.?[A-Za-z]+)*|client\.<name>", option.name)
    assert option.meaning.endswith(".") == (option.kind is not None)
    assert option.default is None or not option.without
    if option.kind is not None and option.default is not None:
        option.kind.parse(option.default)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("strem", "stream"),
        ("endpoint", "endpoints"),
        ("startingoffset", "startingOffsets"),
        ("superstreams", "superStream"),
        ("failondatalos", "failOnDataLoss"),
        ("tls.verifyhost", "tls.verifyHostname"),
        ("passwd", "password"),
        ("subscribe", "stream"),
        ("kafka.bootstrap.servers", "endpoints"),
        ("includeheaders", "includeProperties"),
        ("mode", "delivery"),
    ],
)
def test_the_nearest_right_name_is_found(wrong: str, right: str) -> None:
    assert nearest(wrong) == right


def test_a_name_like_none_has_no_nearest() -> None:
    assert nearest("quux") is None


@pytest.mark.parametrize(
    "name",
    [
        "path",
        "paths",
        "provider",
        "owner",
        "comment",
        "option.x",
        "checkpointlocation",
        "queryname",
    ],
)
def test_what_spark_adds_is_its_own(name: str) -> None:
    assert is_sparks_own(name)


@pytest.mark.parametrize("name", ["options", "option", "stream", "pathname"])
def test_what_is_like_a_name_of_spark_is_not_its_own(name: str) -> None:
    assert not is_sparks_own(name)
