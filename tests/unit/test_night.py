"""The night's parts run to their end or their limit, and what is known of them is kept."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.night import results
from tests.night.__main__ import INTERRUPTED, main
from tests.night.part import Lane, Part, make, program

COMMIT = "0123abc"


def part(name: str, program: str, **fields: object) -> Part:
    """Return a part that runs a program of Python."""
    options: dict[str, object] = {"amount": "9 things", "limit_s": 120, **fields}
    command = (sys.executable, "-c", program)
    return Part(name, "a law holds", command, **options)  # type: ignore[arg-type]


GOOD = part("good", "print('3 of 9 things'); print('9 things, all well')")
BAD = part("bad", "print('4 things'); raise SystemExit(3)")
ENDLESS = part(
    "endless", "import time\nprint('5 things', flush=True)\nwhile True: time.sleep(1)", limit_s=2
)
SOURCELESS = part("sourceless", "print('x: not run: get its sources'); raise SystemExit(2)")
MISSING = part("missing", "", needs=(program("no-such-program", "install it from nowhere"),))


@pytest.fixture(autouse=True)
def _commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "tried_commit", lambda: COMMIT)


def rows(folder: Path) -> dict[str, list[str]]:
    """Return the cells of the table, by the names of the parts."""
    lines = (folder / "night.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[4:]]
    return {name: rest for name, *rest in cells}


def test_after_a_part_that_fails_the_next_one_runs_and_the_table_has_all(tmp_path: Path) -> None:
    status = main(["--folder", str(tmp_path)], [BAD, ENDLESS, MISSING, SOURCELESS, GOOD], [])

    assert status == 1
    table = rows(tmp_path)
    assert [table[name][0].partition(", see")[0] for name in table] == [
        "failed with status 3",
        "cut off at 5 of 9 things",
        "not run: no-such-program is missing: install it from nowhere",
        "not run: get its sources",
        "passed",
    ]
    assert [table[name][2] for name in table] == ["4 things", "", "", "", "9 things, all well"]
    assert all(float(table[name][3]) >= 0 for name in table)
    assert (tmp_path / "night" / "bad.log").read_text() == "4 things\n"


def test_a_night_in_which_all_passes_ends_with_status_0(tmp_path: Path) -> None:
    assert main(["--folder", str(tmp_path)], [GOOD], []) == 0


def test_patience_stretches_the_limits(tmp_path: Path) -> None:
    slow = part("slow", "import time; time.sleep(3); print('5 things')", limit_s=1)
    none, much = tmp_path / "none", tmp_path / "much"

    assert main(["--folder", str(none)], [slow], []) == 1
    assert main(["--folder", str(much), "--patience", "60"], [slow], []) == 0


def test_what_has_passed_on_this_commit_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "night" / "good.log"

    def ran() -> bool:
        log.write_text("old")
        main(["--folder", str(tmp_path)], [GOOD], [])
        return log.read_text() != "old"

    assert main(["--folder", str(tmp_path)], [GOOD], []) == 0
    assert not ran()
    monkeypatch.setattr(results, "tried_commit", lambda: "4567def")
    assert ran()
    monkeypatch.setattr(results, "tried_commit", lambda: "4567def+")
    assert ran()
    assert ran(), "files that differ from the commit may have changed"


def test_a_part_that_failed_is_run_again_and_parts_run_by_name(tmp_path: Path) -> None:
    once = part("once", f"import pathlib; pathlib.Path({str(tmp_path / 'once')!r}).mkdir()")
    other = part("other", "print('1 thing')")

    assert main(["--folder", str(tmp_path), "once"], [once, other], []) == 0
    assert rows(tmp_path)["other"][0] == "not yet"
    assert main(["--folder", str(tmp_path), "--anew", "once"], [once, other], []) == 1
    (tmp_path / "once").rmdir()
    assert main(["--folder", str(tmp_path)], [once, other], []) == 0


def test_the_last_run_of_a_long_part_is_in_the_table_with_its_day_and_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--folder", str(tmp_path), "--long"], [GOOD], [part("long", "")]) == 0
    monkeypatch.setattr(results, "tried_commit", lambda: "4567def")
    assert main(["--folder", str(tmp_path)], [GOOD], [part("long", "")]) == 0
    assert rows(tmp_path)["long (long)"][0].startswith("passed, 20")
    assert rows(tmp_path)["long (long)"][0].endswith(f"at {COMMIT}")


def test_parts_that_wait_run_beside_those_that_compute_and_the_bench_alone(tmp_path: Path) -> None:
    meet = (
        "import pathlib, sys, time\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "(folder / sys.argv[1]).touch()\n"
        "while not (folder / sys.argv[2]).exists(): time.sleep(0.01)"
    )
    one = part("one", f"import sys; sys.argv[1:] = 'a', 'b'; exec({meet!r})")
    two = part("two", f"import sys; sys.argv[1:] = 'b', 'a'; exec({meet!r})", lane=Lane.WAITS)
    found = f"import os; os.rmdir({str(tmp_path / 'c')!r})"
    last = part("last", found, lane=Lane.ALONE)
    first = part("first", f"import os; os.mkdir({str(tmp_path / 'c')!r})")

    assert main(["--folder", str(tmp_path)], [last, two, one, first], []) == 0


def test_a_lane_at_its_end_takes_the_last_parts_of_the_other(tmp_path: Path) -> None:
    last = tmp_path / "last"
    until = (
        f"import pathlib, time\nwhile not pathlib.Path({str(last)!r}).exists(): time.sleep(0.01)"
    )
    long = part("long", until)
    other = part("other", f"open({str(last)!r}, 'w')")
    waits = part("waits", "", lane=Lane.WAITS)

    assert main(["--folder", str(tmp_path)], [long, other, waits], []) == 0


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """Let SIGINT interrupt, which a shell may have its background ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts")
def test_an_interrupted_night_ends_the_parts_of_both_lanes(tmp_path: Path) -> None:
    beside = part(
        "beside",
        "import os, pathlib, time\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "while True: time.sleep(1)",
        lane=Lane.WAITS,
    )
    interrupts = part(
        "interrupts",
        "import os, pathlib, signal, time\n"
        f"pid = pathlib.Path({str(tmp_path / 'pid')!r})\n"
        "while not pid.exists() or not pid.read_text(): time.sleep(0.01)\n"
        "os.kill(os.getppid(), signal.SIGINT)\n"
        "while True: time.sleep(1)",
    )

    assert main(["--folder", str(tmp_path)], [interrupts, beside], []) == INTERRUPTED
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_an_unknown_part_is_refused_and_nothing_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["--folder", str(tmp_path), "godo"], [GOOD], [])
    assert refused.value.code == 2
    assert "no part is named godo" in capsys.readouterr().err
    assert not (tmp_path / "night.md").exists()


def test_targets_get_none_of_the_arguments_of_the_night() -> None:
    assert make("spark-both")[-1] == "ARGS="
    assert make("roots", "ARGS=trixie")[-1] == "ARGS=trixie"
