"""Values as a column's type, where that changes nothing of them."""

from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from hutch.formats.amqp.values import Moment, Single, Value
from pyspark_hutch.decoding.conversions import converter, to_micros

INT, BIGINT, DOUBLE, BOOLEAN = pa.int32(), pa.int64(), pa.float64(), pa.bool_()
TEXT, BINARY, TIMESTAMP = pa.string(), pa.binary(), pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("kind", "value", "converted"),
    [
        (TEXT, "a", "a"),
        (TEXT, 5, "5"),
        (TEXT, True, "true"),
        (TEXT, [1], "[1]"),
        (TEXT, b"\0", "AA=="),
        (INT, 5, 5),
        (INT, (1 << 31) - 1, (1 << 31) - 1),
        (INT, 1 << 31, None),
        (INT, -(1 << 31), -(1 << 31)),
        (INT, -(1 << 31) - 1, None),
        (INT, 5.0, 5),
        (INT, 5.5, None),
        (INT, Single(5), 5),
        (INT, "5", 5),
        (INT, "-5", -5),
        (INT, "5.0", 5),
        (INT, "5.5", None),
        (INT, "5 ", None),
        (INT, "\u0665", None),
        (INT, "five", None),
        (INT, "1e999999999", None),
        (INT, "9" * 5000, None),
        (INT, True, None),
        (INT, None, None),
        (INT, b"5", None),
        (INT, Decimal(5), 5),
        (INT, Decimal("1E+6000"), None),
        (INT, Decimal("1E-6000"), None),
        (INT, Decimal("NaN"), None),
        (INT, Decimal("Infinity"), None),
        (INT, float("nan"), None),
        (INT, float("inf"), None),
        (BIGINT, (1 << 63) - 1, (1 << 63) - 1),
        (BIGINT, 1 << 63, None),
        (BIGINT, -(1 << 63) - 1, None),
        (BIGINT, "9223372036854775807", (1 << 63) - 1),
        (BIGINT, 9.223372036854775807e18, None),
        (BIGINT, Moment(5), None),
        (DOUBLE, 2.5, 2.5),
        (DOUBLE, Single(2.5), 2.5),
        (DOUBLE, 1 << 53, float(1 << 53)),
        (DOUBLE, (1 << 53) + 1, None),
        (DOUBLE, "1.5e3", 1500.0),
        (DOUBLE, "1e999", None),
        (DOUBLE, "nan", None),
        (DOUBLE, "0." + "1" * 398, float("0." + "1" * 398)),
        (DOUBLE, "0." + "1" * 399, None),
        (DOUBLE, Decimal("0.5"), 0.5),
        (DOUBLE, Decimal("1E+6000"), None),
        (DOUBLE, Decimal("-Infinity"), float("-inf")),
        (DOUBLE, float("inf"), float("inf")),
        (DOUBLE, False, None),
        (BOOLEAN, True, True),
        (BOOLEAN, "false", False),
        (BOOLEAN, "True", None),
        (BOOLEAN, 1, None),
        (BINARY, b"\xff", b"\xff"),
        (BINARY, "ü", "ü".encode()),
        (BINARY, 5, None),
        (BINARY, UUID(int=5), None),
        (TIMESTAMP, Moment(5), 5000),
        (TIMESTAMP, Moment(-5), -5000),
        (TIMESTAMP, Moment((1 << 63) // 1000 + 1), None),
        (TIMESTAMP, Moment(-(1 << 63)), None),
        (TIMESTAMP, "1970-01-01T00:00:01Z", 1_000_000),
        (TIMESTAMP, "1970-01-01T01:00:00.000001+01:00", 1),
        (TIMESTAMP, "1970-01-01T00:00:01", None),
        (TIMESTAMP, "yesterday", None),
        (TIMESTAMP, 5, None),
    ],
)
def test_a_value_is_converted_if_nothing_is_lost(
    kind: pa.DataType, value: Value, converted: object
) -> None:
    found = converter(kind)(value)

    assert found == converted
    assert type(found) in (type(converted), Single)
    assert pa.array([found], kind).to_pylist() is not None


def test_a_type_that_there_is_not_is_refused() -> None:
    with pytest.raises(KeyError):
        converter(pa.date32())


def test_a_time_before_the_epoch_is_exact() -> None:
    assert to_micros("1969-12-31T23:59:59.999999Z") == -1
