"""Groups of readers in the controller's table."""

from __future__ import annotations

import pytest

from gateway.pravega.controller.readers.group import ReaderGroup


def group(retention: int = 0, **given: object) -> ReaderGroup:
    fields = {
        "scope": "scope",
        "name": "group",
        "identity": "0f0e0d0c-0000-4000-8000-000000000001",
        "generation": 3,
        "refresh_ms": 3_000,
        "checkpoint_ms": -1,
        "outstanding_max": 2,
        "retention": retention,
        "rollover_bytes": 1 << 20,
        "starts": {"scope/one": {0: 5, 1 << 32: 0}, "other/two": {}},
        "ends": {"scope/one": {}, "other/two": {7: 1}},
        "cuts": {"scope/one": {0: 9}},
    }
    return ReaderGroup(**(fields | given))  # type: ignore[arg-type]


@pytest.mark.parametrize("is_ending", [False, True])
def test_a_group_is_read_as_it_was_written(*, is_ending: bool) -> None:
    written = group(1, is_ending=is_ending)

    assert ReaderGroup.from_bytes(written.to_bytes()) == written


@pytest.mark.parametrize("retention", [1, 2])
def test_streams_wait_for_a_group_that_asks_them_to(retention: int) -> None:
    assert group().subscribed == set()
    assert group(retention).subscribed == {"scope/one", "other/two"}
