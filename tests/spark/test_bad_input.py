"""Bad options, bad input and bad servers: each gives one line that names the fault.

One test of each kind reads through Spark, the others by the calls that Spark makes.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from typing import Final

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import LongType, StructField, StructType

from pyspark_hutch import DefaultSource
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer
from tests.spark import in_process
from tests.spark.conftest import Place, Read
from tests.spark.proxy import DELIVER_HEAD_BYTES, Proxy, without_pipeline
from tests.spark.publishing import publish
from tests.spark.queries import refusal

CONTRADICTION = (
    "options stream='x' and superStream='y' contradict each other: one of them says what is read"
)
HEADER_BYTES = 48
CHUNK_ID_PLACE = DELIVER_HEAD_BYTES + 24
DATA_SIZE_PLACE = DELIVER_HEAD_BYTES + 36
RECORDS_PLACE = DELIVER_HEAD_BYTES + 4


@pytest.fixture
def rows(place: Place, stream: str) -> str:
    """A stream of 300 rows in three chunks, each too large to be joined with the next."""
    with place.client() as client:
        publish(client, stream, [bytes(2_000)] * 300, at_once=100)
    return stream


@pytest.fixture
def proxy(place: Place) -> Iterator[Proxy]:
    with Proxy(place.host, place.port) as opened:
        yield opened


SOON: Final = {"planner.retries": "1", "planner.retryIntervalMs": "50"}
OFFSETS: Final = StructType([StructField("offset", LongType())])


def line_of(place: Place, stream: str, **options: str) -> str:
    """Return what a read by the calls of Spark is refused with."""
    wanted = place.options | SOON | {"stream": stream} | options
    return in_process.refusal(lambda: in_process.read(wanted, OFFSETS))


def line_from_spark(read: Read, place: Place, stream: str, **options: str) -> str:
    """Return what a read of Spark is refused with."""
    wanted = SOON | {"stream": stream} | options
    return refusal(read(place, "offset bigint", **wanted).collect)


# ---- options, users, addresses ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            {"steam": "x"},
            "option steam='x' is unknown: the nearest is stream",
        ),
        (
            {"stream": "x", "superStream": "y"},
            CONTRADICTION,
        ),
        (
            {"stream": "x", "failOnDataLoss": "perhaps"},
            "option failOnDataLoss='perhaps': takes true or false",
        ),
        (
            {"stream": "x", "minPartitions": "0"},
            "option minPartitions='0': takes a whole number from 1 to 100000",
        ),
    ],
    ids=["unknown", "contradiction", "flag", "number"],
)
def test_a_wrong_option_fails_at_load(place: Place, options: dict[str, str], line: str) -> None:
    source = DefaultSource(CaseInsensitiveDict(place.options | options))

    assert in_process.refusal(source.schema) == line


def test_a_wrong_option_fails_as_spark_loads(place: Place, read: Read) -> None:
    line = refusal(lambda: read(place, steam="x"))

    assert line == "option steam='x' is unknown: the nearest is stream"


def test_a_stream_that_does_not_exist_is_named(either: Place, stream: str, read: Read) -> None:
    assert line_from_spark(read, either, stream) == f"stream {stream!r} does not exist"
    frame = read(either, "offset bigint", superStream=stream)
    assert refusal(frame.collect) == f"super stream {stream!r} does not exist"


def test_a_wrong_password_is_told_without_the_password(place: Place, stream: str) -> None:
    line = line_of(place, stream, username="guest", password="topsecret")

    at = f"{place.host}:{place.port}"
    assert line == f"{at} refused user 'guest': user name or password is wrong"


def test_a_host_and_a_port_that_are_wrong_are_named(place: Place, stream: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    line = line_of(place, stream, endpoints=f"127.0.0.1:{port}")
    assert line == f"cannot connect to 127.0.0.1:{port}: Connection refused"

    line = line_of(place, stream, endpoints="nowhere.invalid:5552")
    assert re.fullmatch(r"cannot connect to nowhere\.invalid:5552: [\w ]+", line)


def test_a_user_without_the_right_to_read_is_told_so(
    hutch: HutchServer, place: Place, rows: str
) -> None:
    user = f"writer-{os.urandom(4).hex()}"
    ctl(hutch, "add_user", user, stdin=b"secret\n")
    ctl(hutch, "set_permissions", user, ".*", ".*", "")

    line = line_of(place, rows, username=user, password="secret")

    assert line == f"stream {rows!r} may not be used by this user (access refused)"
    line = line_of(place, rows, vhost="elsewhere")
    at = f"{place.host}:{place.port}"
    assert line == f"{at}: virtual host 'elsewhere' does not exist, or the user has no access to it"


def test_a_broker_that_does_not_say_how_far_it_is_committed_is_refused(
    proxy: Proxy, rows: str
) -> None:
    def hide(name: str, frame: bytearray) -> bytearray:
        frame = without_pipeline(name, frame)
        return frame.replace(b"committed_offset", b"committed_bygone")

    proxy.on_answer = hide

    assert line_of(through(proxy), rows) == (
        f"stream {rows!r}: the broker's statistics lack committed_offset, which reading needs; "
        "RabbitMQ has it from 4.3 on"
    )


# ---- a server that misbehaves ----------------------------------------------------------------


def changed_deliver(proxy: Proxy, chunk_id: int, place: int, data: bytes) -> None:
    """Change bytes in one of the chunks, whenever it comes by."""
    wanted = chunk_id.to_bytes(8)

    def change(name: str, frame: bytearray) -> bytearray:
        if name == "deliver" and frame[CHUNK_ID_PLACE : CHUNK_ID_PLACE + 8] == wanted:
            frame[place : place + len(data)] = data
        return frame

    proxy.on_answer = change


def through(proxy: Proxy) -> Place:
    return Place("hutch", proxy.host, proxy.port)


def test_a_damaged_chunk_is_named_by_stream_and_offset(proxy: Proxy, rows: str, read: Read) -> None:
    changed_deliver(proxy, 100, DELIVER_HEAD_BYTES + HEADER_BYTES + 500, b"damage")

    line = line_from_spark(read, through(proxy), rows)

    assert line == f"stream {rows!r} is damaged at offset 100: its data has another checksum"


def test_a_chunk_that_lies_about_its_size_is_named(proxy: Proxy, rows: str) -> None:
    changed_deliver(proxy, 0, DATA_SIZE_PLACE, b"\x7f\xff\xff\xff")

    line = line_of(through(proxy), rows)

    assert line == f"stream {rows!r}: the chunk at offset 0 is not whole"


def test_a_chunk_that_lies_about_its_records_is_named(proxy: Proxy, rows: str) -> None:
    changed_deliver(proxy, 0, RECORDS_PLACE, (77).to_bytes(4))

    line = line_of(through(proxy), rows)

    assert line.startswith(f"stream {rows!r} is damaged at offset ")


def test_a_frame_of_impossible_size_is_refused(proxy: Proxy, rows: str) -> None:
    def announce(name: str, frame: bytearray) -> bytearray:
        return bytearray(b"\x7f\xff\xff\xff") + frame[4:] if name == "deliver" else frame

    proxy.on_answer = announce

    line = line_of(through(proxy), rows)

    at = f"{proxy.host}:{proxy.port}"
    assert line == f"{at} announced a frame of 2147483647 bytes, which is too large"


def test_frames_that_come_late_or_never_end_the_read_in_time(proxy: Proxy, rows: str) -> None:
    def swallow(name: str, frame: bytearray) -> bytearray:
        return bytearray() if name == "deliver" else frame

    proxy.on_answer = swallow
    begun = time.monotonic()

    line = line_of(through(proxy), rows, pollTimeoutMs="300")

    at = f"{proxy.host}:{proxy.port}"
    missing = "offsets 0 to 299 were not read"
    assert line == f"stream {rows!r}: {at} did not answer in time; {missing}"
    assert time.monotonic() - begun < 30


def test_answers_that_do_not_follow_the_protocol_are_told(proxy: Proxy, rows: str) -> None:
    def garble(name: str, frame: bytearray) -> bytearray:
        return frame[:4] + b"\xff" * (len(frame) - 4) if name == "describe_streams" else frame

    proxy.on_answer = garble

    line = line_of(through(proxy), rows)

    assert line.startswith(f"{proxy.host}:{proxy.port} broke the protocol: ")


def test_a_server_that_goes_away_in_the_middle_and_does_not_come_back_is_named(
    proxy: Proxy, rows: str
) -> None:
    delivered = 0

    def leave(name: str, frame: bytearray) -> bytearray | None:
        nonlocal delivered
        delivered += name == "deliver"
        if delivered < 2:
            return frame
        proxy.close()
        return None

    proxy.on_answer = leave

    line = line_of(through(proxy), rows)

    at = f"{proxy.host}:{proxy.port}"
    gone = f"cannot connect to {at}: Connection refused"
    assert line in {
        gone,
        f"stream {rows!r}: {gone}; offsets 100 to 299 were not read",
        f"stream {rows!r}: {gone}; offsets 0 to 299 were not read",
    }


def test_a_server_that_comes_back_in_the_middle_costs_nothing(proxy: Proxy, rows: str) -> None:
    delivered = 0

    def drop(name: str, frame: bytearray) -> bytearray | None:
        nonlocal delivered
        delivered += name == "deliver"
        return None if delivered in (2, 4) and name == "deliver" else frame

    proxy.on_answer = drop

    soon = {"planner.retryIntervalMs": "50", "stream": rows}
    found = in_process.read(through(proxy).options | soon, OFFSETS)

    offsets = [offset for batch in found for offset in batch.column("offset").to_pylist()]
    assert sorted(offsets) == list(range(300))
    assert delivered >= 5
