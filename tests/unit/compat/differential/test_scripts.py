"""The scripts as data: how many there are, and that each can be named."""

from collections import Counter

from compat.differential.expected import EXPECTED
from compat.differential.scripts import SCRIPTS


def test_there_are_hundreds_of_exchanges() -> None:
    assert sum(script.exchange_count for script in SCRIPTS) >= 1000


def test_no_two_scripts_have_one_name() -> None:
    counts = Counter(script.name for script in SCRIPTS)
    assert [name for name, count in counts.items() if count > 1] == []


def test_every_meant_difference_has_a_reason() -> None:
    assert [entry for entry in EXPECTED if len(entry.reason) < 10] == []
