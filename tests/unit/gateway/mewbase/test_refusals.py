"""Tests of the numbers that clients of mewbase are told."""

import pytest

from gateway.broker import errors as broker
from gateway.mewbase.refusals import refusal_of
from gateway.mewbase.wire.errors import Code
from store.errors import StoreError

FAILURES = (broker.StreamNotAvailable("c"), broker.InternalError("c"), StoreError("c"))


@pytest.mark.parametrize("error", FAILURES)
def test_a_store_that_failed_means_not_stored_to_a_client_that_stores(error: Exception) -> None:
    refusal = refusal_of(error, is_storing=True)
    assert refusal is not None
    assert refusal.code is Code.NOT_STORED


@pytest.mark.parametrize("error", FAILURES)
def test_a_store_that_failed_is_the_servers_fault_to_a_client_that_reads(error: Exception) -> None:
    refusal = refusal_of(error)
    assert refusal is not None
    assert refusal.code is Code.SERVER


def test_a_missing_right_stays_one_for_a_client_that_stores() -> None:
    refusal = refusal_of(broker.AccessRefused("c"), is_storing=True)
    assert refusal is not None
    assert refusal.code is Code.NOT_AUTHORISED


def test_a_fault_of_ours_is_no_refusal() -> None:
    assert refusal_of(KeyError("c"), is_storing=True) is None
