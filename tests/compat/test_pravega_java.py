"""Readers by Pravega's Java client, as it is, see on Hutch what they see on a real Pravega."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from compat.broker.ways import REQUIRE_VARIABLE
from compat.clients.programs import Unavailable
from compat.comparison import compare
from compat.pravega.java import written
from compat.pravega.java.coverage import coverage, reason
from compat.pravega.java.expected import EXPECTED
from compat.pravega.java.program import NEWEST, READERS, Scenario, played, run
from compat.pravega.servers import hutch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SCENARIOS: Final = tuple(
    map(
        Scenario,
        (
            *("one-reader", "two-readers", "event-pointer"),
            *("checkpoint", "checkpoint-of-two", "automatic-checkpoints", "reset-to-the-last"),
            *("stream-cuts", "batch", "offline", "closed", "names", "unread-bytes"),
            *("created", "group-deleted", "scope-with-group", "listed-streams"),
            *("scale", "truncated", "subscribers", "retention-by-checkpoint"),
            *("bytes", "revisions", "synchronizer", "transactions", "written-together"),
            *("streams", "stream-settings", "stream-updated", "scope-refused"),
        ),
    )
)
"""Quick ones of each kind; the night has all, with the oldest client, too."""


@pytest.fixture
def _built() -> None:
    """Build the program; skip with the reason where it cannot be had."""
    try:
        READERS.command()
    except Unavailable as error:
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.mark.usefixtures("_built")
def test_readers_of_the_newest_client_see_what_they_saw_on_pravega(tmp_path: Path) -> None:
    known = written.read(NEWEST)
    names = {one.name for one in SCENARIOS}
    with hutch(tmp_path) as server:
        found = compare(
            SCENARIOS,
            lambda chosen: played({one.name: known[one.name] for one in chosen}),
            lambda chosen: played(run(chosen, NEWEST, server.controller, {})),
            [entry for entry in EXPECTED if entry.script in names],
            reference="Pravega",
        )
    assert "Traceback" not in (tmp_path / "hutch.log").read_text()
    assert "\n\n".join(map(str, found.verdict.unexpected)) == ""
    assert [f"{entry.script}: {entry.reason}" for entry in found.verdict.stale] == []


@pytest.mark.usefixtures("_built")
def test_the_programs_call_nine_tenths_of_what_the_client_offers() -> None:
    found = coverage()

    assert [str(each) for each in found.uncalled if not reason(each)] == []
    assert len(found.uncalled) <= (len(found.called) + len(found.uncalled)) / 10
    assert len(found.called) > 350
