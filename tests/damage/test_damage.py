"""Files of a data directory are damaged from seeds; nothing wrong is answered, nothing is silent.

Held of every case:

1. What is delivered or answered is right. What is missing, or older than what replaced it, has a
   line in the log (a warning at least) that names the stream, its segment or the file, and a fault
   has touched what held it: streams and tables that no fault touched are complete.
2. The server starts, or refuses in one line that says why (a `StoreError`), where the checkpoint,
   the journal in use or a table of streams, users, rights, policies or virtual hosts was touched.
   No traceback, and nothing else is raised; in bounded time and memory.
3. The bytes of faulty files are found again, there or in `set-aside/`.
4. Sound streams take new records, and the next opening answers the same.

What may be missing without a line of its own, as `docs/durability.md` says too:

- The last frames of a journal, where no sound frame follows them: they cannot be told from a frame
  that was torn by a crash. A step of which the journal still has a part may have happened or not.
- What was behind the last sync, in `os`: with the warning `journal ends before frames`, or `segment
  was cut`, as after a power cut.
- Bits of what holds nothing: zeros ahead, spare journal files, bytes behind the end of a segment.

What need not be found again: files of indexes and filter pages, which are made anew from the
chunks; journal files and checkpoints that an opening needed no more; files of tables that were
compacted; files that only the lost end of a journal names, if nothing else is damaged; and, in
`os`, data without a sync that a crash could have taken.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.damage.cases import build_all, run_case
from tests.damage.ledger import Built

CASES = 70 if os.environ.get("HYPOTHESIS_PROFILE", "dev") == "dev" else 210
"""Some 1,000 damaged places in CI, thirty directories of each kind; a third of that by hand."""
CASES_OF_A_TEST = 10


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Built]:
    return build_all(tmp_path_factory.mktemp("built"))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(CASES // CASES_OF_A_TEST))
def test_damage_is_told_and_never_answered_or_spread(
    built: Sequence[Built], tmp_path: Path, part: int
) -> None:
    first = part * CASES_OF_A_TEST
    outcomes = [
        run_case(built, seed, tmp_path / str(seed))
        for seed in range(first, first + CASES_OF_A_TEST)
    ]

    assert not [each for each in outcomes if each.complaints], "\n\n".join(
        str(each) for each in outcomes if each.complaints
    )
