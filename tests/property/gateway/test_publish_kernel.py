"""The Publish kernel, compiled and interpreted, against the slow model and against each other."""

import re
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.property.gateway import publish_model
from tests.property.gateway.kernel_builds import BUILDS, load, source_of
from tests.property.gateway.publish_calls import calls, publish_frames, run
from tests.property.gateway.publish_model import CHUNK_FULL, Call

NAME = "gateway.stream.kernel.publish"


@pytest.fixture(params=BUILDS, scope="module")
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return load(NAME, request.param)


def test_reasons_and_places_have_the_numbers_that_its_stub_says(kernel: ModuleType) -> None:
    stub = source_of(NAME).with_suffix(".pyi").read_text()
    promised = {name: int(number) for name, number in re.findall(r"(\w+): Final = (\d+)", stub)}

    assert len(promised) == 5
    assert {name: getattr(kernel, name) for name in promised} == promised
    assert kernel.CHUNK_FULL == CHUNK_FULL


def one_frame(*entries: bytes) -> bytes:
    body = bytes.fromhex("0002 0001 00 00000000") + b"".join(entries)
    return len(body).to_bytes(4) + body


HIGH = one_frame((2**63).to_bytes(8) + bytes(4), (2**63 - 1).to_bytes(8) + bytes(4))


@given(calls())
@example(Call(HIGH, is_named=True))
@example(Call(HIGH, is_named=True, last=2**63))
@example(Call(HIGH, is_named=True, last=2**64 - 1))
@example(Call(HIGH, is_named=True, last=2**63 - 1))
def test_a_call_does_what_the_rules_say(kernel: ModuleType, call: Call) -> None:
    assert run(kernel, call) == publish_model.take(call)


@given(calls(filtered=True))
def test_a_call_with_filter_values_does_what_the_rules_say(kernel: ModuleType, call: Call) -> None:
    assert run(kernel, call) == publish_model.take(call)


@given(
    source=st.lists(publish_frames(), max_size=6).map(b"".join),
    capacity=st.sampled_from([120, 150, 1 << 12]),
    duplicates_max=st.sampled_from([1, 512]),
    is_named=st.booleans(),
)
def test_what_is_stored_in_all_does_not_depend_on_how_much_a_chunk_takes(
    kernel: ModuleType, source: bytes, capacity: int, duplicates_max: int, *, is_named: bool
) -> None:
    unbounded = Call(source, is_named=is_named)
    bounded = replace(
        unbounded, capacity=capacity, duplicates_max=duplicates_max, target_bytes=1 << 12
    )

    parts = []
    for model in publish_model.whole(bounded):
        part = run(kernel, bounded)
        assert part == model
        parts.append(part)
        bounded = _next_call(bounded, part)

    whole = publish_model.take(unbounded)
    assert b"".join(part.stored for part in parts) == whole.stored
    assert [each for part in parts for each in part.ids] == whole.ids
    assert [each for part in parts for each in part.duplicates] == whole.duplicates
    assert sum(part.records for part in parts) == whole.records
    assert (parts[-1].reason, parts[-1].position) == (whole.reason, whole.position)


def _next_call(call: Call, out: publish_model.Outcome) -> Call:
    written, entries_max = 56, 65_535
    if out.reason == CHUNK_FULL and len(out.duplicates) == call.duplicates_max:
        written = call.written + len(out.stored)
        entries_max = call.entries_max - len(out.ids)
    return replace(
        call,
        position=out.position,
        frame_end=out.frame_end,
        last=out.last,
        written=written,
        entries_max=entries_max,
    )


@given(
    source=st.binary(max_size=200) | publish_frames() | publish_frames(version=2),
    position=st.integers(0, 20),
    version=st.sampled_from([1, 2]),
)
def test_the_ids_of_a_frame_are_those_of_its_entries_up_to_the_one_that_does_not_fit(
    kernel: ModuleType, source: bytes, position: int, version: int
) -> None:
    position = min(position, len(source))
    call = Call(source, filtered=version == 2)
    expected: list[int] = []
    place = position
    try:
        while place < len(source):
            entry = publish_model.entry_at(call, place, len(source))
            expected.append(entry.publishing_id)
            place = entry.end
    except publish_model.Cut:
        pass

    found, end = kernel.publishing_ids_of(bytearray(source), position, len(source), version)

    assert (found, end) == (expected, place)


@given(source=st.binary(max_size=300), call=calls())
def test_any_bytes_give_the_same_compiled_and_interpreted(source: bytes, call: Call) -> None:
    call = replace(call, source=source, limit=-1)

    assert run(load(NAME, "compiled"), call) == run(load(NAME, "interpreted"), call)
