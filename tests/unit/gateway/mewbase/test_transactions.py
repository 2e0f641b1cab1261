"""Open transactions of connections: what they hold, and what becomes of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.mewbase.refusals import RequestRefusal
from gateway.mewbase.transactions import Held, OpenTransactions
from gateway.mewbase.wire.errors import Code
from gateway.settings.mewbase import MewbaseSettings
from store.api import ENTRY_BYTES_MAX
from tests.unit.gateway.broker.commits.staging_rig import StagingRig
from tests.unit.gateway.stream.link_rig import Broker

SETTINGS = MewbaseSettings(
    transactions_max=2, transaction_bytes_max=4_000, transactions_bytes_max=6_000
)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[StagingRig]:
    rig = StagingRig(Broker(tmp_path), tmp_path)
    yield rig
    rig.broker.close()


def code(refused: pytest.ExceptionInfo[RequestRefusal]) -> Code:
    return refused.value.code


def test_what_they_hold_is_counted_until_the_commit_has_ended(rig: StagingRig) -> None:
    held = Held()
    transactions = OpenTransactions(SETTINGS, held)
    a, b = rig.broker.stream("a"), rig.broker.stream("b")
    transactions.begin(1)
    transactions.begin(5)
    transactions.add(1, a, b"1")
    transactions.add(5, b, b"22")
    transactions.add(1, b, b"333")
    before = held.size_bytes
    with transactions.ending(1) as batch:
        assert 1 not in transactions
        assert [bytes(some.data) for some in batch] == [b"\0\0\0\x011", b"\0\0\0\x03333"]
        assert held.size_bytes == before > batch.size_bytes
    assert 0 < held.size_bytes < before
    transactions.abort_all()
    assert held.size_bytes == 0
    assert 5 not in transactions


def test_there_is_one_of_a_session_and_so_many_of_a_connection() -> None:
    transactions = OpenTransactions(SETTINGS, Held())
    transactions.begin(1)
    with pytest.raises(RequestRefusal) as twice:
        transactions.begin(1)
    transactions.begin(2)
    with pytest.raises(RequestRefusal, match=r"mewbase\.transactions_max") as third:
        transactions.begin(3)
    with pytest.raises(RequestRefusal) as unknown:
        transactions.abort(3)
    with pytest.raises(RequestRefusal) as ended, transactions.ending(3):
        pass
    codes = [code(each) for each in (twice, third, unknown, ended)]
    assert codes == [
        Code.TRANSACTION_OPEN,
        Code.BAD_REQUEST,
        Code.NO_TRANSACTION,
        Code.NO_TRANSACTION,
    ]


def test_one_that_gets_too_large_holds_nothing_and_can_only_be_aborted(rig: StagingRig) -> None:
    held = Held()
    transactions, others = OpenTransactions(SETTINGS, held), OpenTransactions(SETTINGS, held)
    a = rig.broker.stream("a")
    for each in (transactions, others):
        each.begin(1)
        each.begin(2)
    transactions.add(1, a, bytes(3_000))
    with pytest.raises(
        RequestRefusal, match=r"mewbase\.transaction_bytes_max, 4000 bytes"
    ) as caught:
        transactions.add(2, a, bytes(1_000))
    assert code(caught) is Code.NOT_STORED
    with pytest.raises(RequestRefusal, match="can only be aborted"):
        transactions.add(2, a, b"")
    with pytest.raises(RequestRefusal, match="can only be aborted"), transactions.ending(2):
        pass
    with pytest.raises(RequestRefusal, match=r"mewbase\.transactions_bytes_max, 6000 bytes"):
        others.add(1, a, bytes(3_500))
    others.add(2, a, bytes(2_000))
    transactions.abort(2)
    transactions.abort(1)
    assert 2_000 < held.size_bytes < 2_200


def test_one_chunk_of_a_channel_is_the_most_whatever_the_settings_say(rig: StagingRig) -> None:
    transactions = OpenTransactions(MewbaseSettings(), Held())
    transactions.begin(1)
    transactions.add(1, rig.broker.stream("a"), bytes(ENTRY_BYTES_MAX - 3_000))
    with pytest.raises(RequestRefusal, match="one commit may have"):
        transactions.add(1, rig.broker.stream("a"), bytes(3_000))
