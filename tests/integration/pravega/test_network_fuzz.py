"""A short attack on all ports of a store; `make network-fuzz` has the long one."""

from pathlib import Path

import pytest

from tests.integration.pravega.network_fuzz import fuzz

ROUNDS = 2_000
SEED = 15

pytestmark = pytest.mark.timeout(150)


def test_damaged_requests_harm_neither_the_store_nor_a_client_beside_them(tmp_path: Path) -> None:
    assert fuzz(tmp_path, SEED, rounds=ROUNDS) == ROUNDS
