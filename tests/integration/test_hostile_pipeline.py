"""The bounds of the commands of pipelines on a running server, beside a neighbour at work."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from typing import Final

import pytest

from hutch.client.connection import Connection
from hutch.client.errors import ClosedByServer
from hutch.client.login import Endpoint, Login
from hutch.stream import pipeline as p
from hutch.stream.codec import encode_request
from hutch.stream.codes import ResponseCode
from hutch.stream.messages import Message
from hutch.stream.pipeline import TABLE
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.conftest import assert_no_traceback
from tests.integration.neighbour import MIB, Neighbour, refuse_logins
from tests.integration.server import HutchServer
from tests.integration.test_commits import content, pipeline_client
from tests.waiting import HANG_S

REFUSED: Final = ResponseCode.PRECONDITION_FAILED
STAGES_MAX: Final = 20_000
NEST: Final = r"(?i)(.{0,9}\w{0,9}){15}z"
SUB_BATCH: Final = struct.Struct(">BHII")
"""Marker, records, size when unpacked, size of the data."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    """One server for all of this, with a few streams of long names."""
    data = tmp_path_factory.mktemp("pipeline") / "data"
    with HutchServer(data, "--durability", "os") as server:
        with Client.opened(*server.endpoint) as client:
            for stream in ("s", "t", *(f"{number:03d}".ljust(255, "a") for number in range(100))):
                client.create(stream)
        ctl(server, "add_user", "clerk", stdin=b"secret\n")
        ctl(server, "set_permissions", "clerk", "", "^t$", "^t$")
        refuse_logins(server)
        yield server
        server.terminate()
        assert_no_traceback(server)


@pytest.fixture
def client(target: HutchServer) -> Iterator[Connection]:
    with pipeline_client(target) as client:
        yield client


@contextlib.contextmanager
def clerk_of(server: HutchServer) -> Iterator[Connection]:
    """Connect as a user that may use the stream t alone."""
    login = Login("clerk", password="secret", asks_for_pipeline=True)
    connection = Connection.to(Endpoint(*server.endpoint), login, timeout_s=HANG_S)
    try:
        yield connection
    finally:
        connection.disconnect()


def opened(client: Connection, stream: str = "s", sink: str = "q") -> int:
    return client.ask(p.StageOpened, "open_stage", p.OpenStage(sink, 0, stream)).stage


def told(client: Connection, name: str, message: Message) -> tuple[int, str]:
    """Return code and reason of an answer."""
    answer = client.request(name, message)
    return answer.code, answer.reason or ""  # type: ignore[attr-defined]  # all answers have them


def record(body: bytes) -> bytes:
    return len(body).to_bytes(4) + body


# Lists


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("describe_streams", p.DescribeStreams(("s",) * 10_000, None)),
        ("plan_streams", p.PlanStreams((p.RangeToPlan("s", 1, 0, 9, 1),) * 10_000)),
    ],
)
def test_a_list_is_taken_up_to_its_bound_and_malformed_above_it(
    target: HutchServer, client: Connection, name: str, message: Message
) -> None:
    count_at = 12  # behind size, key, version and correlation id
    with Neighbour(target, growth_bytes_max=64 * MIB):
        frame = bytearray(encode_request(TABLE.by_name[name], message, correlation_id=7))
        assert client.request(name, message).code == ResponseCode.OK  # type: ignore[attr-defined]
        assert int.from_bytes(frame[count_at : count_at + 4]) == 10_000
        frame[count_at : count_at + 4] = (10_001).to_bytes(4)
        client.send_bytes(bytes(frame))
        with pytest.raises(ClosedByServer):
            client.next_answer(deadline=float("inf"))


@pytest.mark.parametrize("size", [10_001, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("key", [0x4800, 0x4801, 0x4805, 0x4806])
def test_a_count_that_the_frame_cannot_hold_ends_the_connection(
    target: HutchServer, client: Connection, key: int, size: int
) -> None:
    body = b"\0\1q" + bytes(8) if key == 0x4805 else b""
    with Neighbour(target):
        frame = struct.pack(">HHI", key, 1, 7) + body + size.to_bytes(4) + bytes(100)
        client.send_bytes(len(frame).to_bytes(4) + frame)
        with pytest.raises(ClosedByServer):
            client.next_answer(deadline=float("inf"))


@pytest.mark.parametrize("pattern", [NEST, "(a+)+$", "(a|a)*b", "(.*)*x"])
def test_a_pattern_that_backtracks_keeps_no_other_client_waiting(
    target: HutchServer, client: Connection, pattern: str
) -> None:
    with Neighbour(target):
        for _ in range(3):
            assert told(client, "describe_streams", p.DescribeStreams((), pattern))[0] in {
                ResponseCode.OK,
                REFUSED,
            }


# Stages


def test_a_user_opens_so_many_stages_and_no_more(target: HutchServer, client: Connection) -> None:
    asked = p.OpenStage("q", 0, "s")
    with Neighbour(target, growth_bytes_max=64 * MIB):
        answers = list(client.requests([("open_stage", asked)] * (STAGES_MAX + 5)))
        stages = tuple(answer.stage for answer in answers if isinstance(answer, p.StageOpened))
        assert len(set(stages[:STAGES_MAX])) == STAGES_MAX
        for answer in answers[STAGES_MAX:]:
            reason = f"user 'guest' has {STAGES_MAX} stages: discard some"
            assert answer == p.StageOpened(REFUSED, reason, 0)
        with clerk_of(target) as clerk:
            mine = opened(clerk, "t")
            clerk.must("discard_stages", p.DiscardStages((mine,)))
        client.must("discard_stages", p.DiscardStages(stages[:STAGES_MAX]))
    assert ctl(target, "list_stages") == []


def lies(stage: int) -> list[tuple[p.StageRecords, str]]:
    """Return frames that are refused, each with the words that the reason has."""
    many = b"".join(SUB_BATCH.pack(0x80, 0xFFFF, 0xFFFFFFFF, 0) for _ in range(65_535))
    return [
        (p.StageRecords(stage, 0, 2, 2, record(b"x")), "sequence 0 is not 2 entries with 2"),
        (p.StageRecords(stage, 0, 1, 0xFFFFFFFF, record(b"x")), "is not 1 entries"),
        (p.StageRecords(stage, 0, 0, 0, b""), "is not 0 entries"),
        (p.StageRecords(stage, 0, 0xFFFF, 0xFFFF, b""), "is not 65535 entries"),
        (p.StageRecords(stage, 0, 1, 1, b"\x7f\xff\xff\xffx"), "is not 1 entries"),
        (p.StageRecords(stage, 0, 1, 1, bytes(MIB - 30)), "bytes at once, a chunk has"),
        (
            p.StageRecords(stage, 0, 1, 5, SUB_BATCH.pack(0x80, 5, 9, 0xFFFFFFFF)),
            "is not 1 entries",
        ),
        (p.StageRecords(stage, 0, 65_535, 5, many), "is not 65535 entries"),
        (p.StageRecords(stage, 0xFFFFFFFF, 1, 1, record(b"x")), "came instead of 0"),
    ]


def test_frames_that_lie_are_refused_by_their_stage_and_nothing_is_taken(
    target: HutchServer, client: Connection
) -> None:
    stage = opened(client)
    with Neighbour(target):
        for message, words in lies(stage):
            code, reason = told(client, "stage", message)
            assert code == REFUSED
            assert reason.startswith(f"stage {stage}: ")
            assert words in reason
            assert "\n" not in reason
    closed = client.ask(p.StageClosed, "close_stage", p.CloseStage(stage))
    assert (closed.code, closed.records) == (ResponseCode.OK, 0)
    client.must("discard_stages", p.DiscardStages((stage,)))


def test_sub_batches_that_claim_huge_sizes_are_stored_and_never_unpacked(
    target: HutchServer, client: Connection
) -> None:
    stage = opened(client, "t", sink="bombs")
    data = SUB_BATCH.pack(0x80 | 1 << 4, 0xFFFF, 0xFFFFFFFF, 3) + b"gz?"
    with Neighbour(target):
        client.must("stage", p.StageRecords(stage, 0, 1, 0xFFFF, data))
        client.must("close_stage", p.CloseStage(stage))
        client.must("commit_stages", p.CommitStages("bombs", 0, (stage,)))


def test_stages_of_another_user_are_refused(target: HutchServer, client: Connection) -> None:
    stage = opened(client, "t")
    with Neighbour(target), clerk_of(target) as clerk:
        for name, message in (
            ("stage", p.StageRecords(stage, 0, 1, 1, record(b"x"))),
            ("close_stage", p.CloseStage(stage)),
            ("discard_stages", p.DiscardStages((stage,))),
            ("commit_stages", p.CommitStages("q", 0, (stage,))),
        ):
            expected = ResponseCode.ACCESS_REFUSED, f"stage {stage} is of another user"
            assert told(clerk, name, message) == expected
        assert told(clerk, "open_stage", p.OpenStage("q", 0, "s")) == (
            ResponseCode.ACCESS_REFUSED,
            "no write on 's'",
        )
    client.must("close_stage", p.CloseStage(stage))
    client.must("discard_stages", p.DiscardStages((stage,)))


def test_commits_of_too_many_doubled_and_unknown_stages_are_refused(
    target: HutchServer, client: Connection
) -> None:
    stage = opened(client)
    client.must("close_stage", p.CloseStage(stage))
    with Neighbour(target, growth_bytes_max=32 * MIB):
        for stages, reason in (
            (tuple(range(100_000)), "100000 stages, and a commit may have 10000"),
            ((stage, stage), f"stage {stage} is named twice"),
            ((stage, 5), "stage 5 is unknown"),
            ((2**64 - 1,), f"stage {2**64 - 1} is unknown"),
        ):
            code, said = told(client, "commit_stages", p.CommitStages("q", 0, stages))
            assert code == REFUSED
            assert said.startswith(reason)
        client.must("discard_stages", p.DiscardStages((*range(100_000), stage, stage)))
    assert ctl(target, "list_stages") == []


@pytest.mark.parametrize(
    ("sink", "code"),
    [
        ("s" * 255, ResponseCode.OK),
        ("s" * 256, ResponseCode.OK),
        ("é" * 512, ResponseCode.OK),
        ("s" * 1_025, REFUSED),
        ("s" * 32_767, REFUSED),
        ("\udcff\udcfe", ResponseCode.OK),
        ("../\0\n", ResponseCode.OK),
    ],
)
def test_sinks_have_any_name_of_so_many_bytes(client: Connection, sink: str, code: int) -> None:
    answer = client.ask(p.StageOpened, "open_stage", p.OpenStage(sink, 3, "s"))
    assert (answer.code, told(client, "close_stage", p.CloseStage(answer.stage))[0]) == (code, code)
    commit = p.CommitStages(sink, 3, (answer.stage,))
    found, reason = told(client, "commit_stages", commit)
    assert found == code
    if code == ResponseCode.OK:
        state = client.ask(p.SinkStateReply, "sink_state", p.SinkState(sink))
        assert state.last_batch == 3
        assert client.ask(p.StagesCommitted, "commit_stages", commit).is_repeat
    else:
        assert reason == f"sink {sink[:40]!r}… is above 1024 bytes"


# Connections


def flood(client: Connection, data: bytes) -> None:
    """Send and read nothing, until the server takes no more."""
    client.socket.settimeout(1)
    for _ in range(100_000):
        client.socket.sendall(data)


def test_a_client_that_stages_and_reads_no_answer_is_not_read_in_turn(
    target: HutchServer, client: Connection
) -> None:
    describe = encode_request(
        TABLE.by_name["describe_streams"],
        p.DescribeStreams(("s",) * 10_000, None),
        correlation_id=7,
    )
    stage = opened(client)
    frame = encode_request(
        TABLE.by_name["stage"], p.StageRecords(stage, 9, 1, 1, record(b"x")), correlation_id=7
    )
    with Neighbour(target, growth_bytes_max=48 * MIB), pipeline_client(target) as greedy:
        for flooding, data in ((client, frame * 1_000), (greedy, describe)):
            with pytest.raises((TimeoutError, ConnectionError)):
                flood(flooding, data)
    with pipeline_client(target) as again:
        again.must("discard_stages", p.DiscardStages((stage,)))


def test_a_client_that_goes_in_the_midst_leaves_what_another_connection_goes_on_with(
    target: HutchServer,
) -> None:
    with Neighbour(target, growth_bytes_max=64 * MIB):
        with pipeline_client(target) as client:
            stage = opened(client, sink="gone")
            for sequence in range(20):
                piece = p.StageRecords(stage, sequence, 1, 1, record(b"s %d" % sequence))
                client.send_request("stage", piece)
            frame = encode_request(
                TABLE.by_name["stage"],
                p.StageRecords(stage, 20, 1, 1, record(bytes(500_000))),
                correlation_id=7,
            )
            client.send_bytes(frame[:-1])
        with pipeline_client(target) as client:
            for sequence in range(20):
                piece = p.StageRecords(stage, sequence, 1, 1, record(b"s %d" % sequence))
                client.must("stage", piece)
            client.must("close_stage", p.CloseStage(stage))
            client.send_request("commit_stages", p.CommitStages("gone", 0, (stage,)))
        with pipeline_client(target) as client:
            client.check(client.request("commit_stages", p.CommitStages("gone", 0, (stage,))), "")
    assert content(target, "s") == [b"s %d" % number for number in range(20)]


@pytest.mark.parametrize("key", range(0x4800, 0x4808))
def test_a_client_that_did_not_ask_for_them_finds_unknown_keys(
    target: HutchServer, key: int
) -> None:
    frame = struct.pack(">HHI", key, 1, 7) + bytes(40)
    unknown = struct.pack(">HHI", 0x4FFF, 1, 7) + bytes(40)
    ends = []
    with Neighbour(target):
        for each in (frame, unknown):
            with Client.opened(*target.endpoint) as client:
                client.send_frame(each)
                with pytest.raises(ClosedByServer) as closed:
                    client.receive()
                ends.append(closed.value.code)
    assert ends[0] == ends[1]


def test_commands_before_the_login_end_the_connection(target: HutchServer) -> None:
    request = encode_request(
        TABLE.by_name["open_stage"], p.OpenStage("q", 0, "s"), correlation_id=7
    )
    with Neighbour(target), Client(*target.endpoint) as client:
        client.send(request)
        client.wait_until_gone(HANG_S)
