from store.local.state.waiters import Waiters


class Read:
    """A read that can give up."""

    is_finished = False

    def attempt(self) -> bool:
        return True


def test_those_that_have_given_up_are_passed_over_and_dropped() -> None:
    waiters = Waiters()
    reads = [Read() for _ in range(100)]
    for position, read in enumerate(reads):
        waiters.add(position, read)
    for read in reads[:99]:
        read.is_finished = True
        waiters.give_up()
    assert len(waiters) == 1
    assert len(waiters._heap) < 3
    assert not waiters.is_due(99)
    assert waiters.is_due(100)
    assert waiters.take() == (99, reads[99])
    assert not waiters
    assert not waiters.is_due(1 << 62)


def test_all_are_taken_out_in_the_order_of_positions_and_of_coming() -> None:
    waiters = Waiters()
    first, second, third = Read(), Read(), Read()
    for position, read in ((5, third), (1, first), (1, second)):
        waiters.add(position, read)
    assert waiters.take_all() == [(1, first), (1, second), (5, third)]
    assert not waiters
