"""Which connection without a login gives way, whoever opens how many."""

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from gateway.network.pre_login import PreLogin


def strangers(places: int, *came: str) -> PreLogin[str]:
    """Return strangers, named for their address and their turn there."""
    made: PreLogin[str] = PreLogin(places)
    for number, address in enumerate(came):
        made.add(f"{address} {number}", address)
    return made


def test_the_oldest_goes_of_the_address_that_has_most() -> None:
    there = strangers(100, "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.3")

    assert there.in_the_way("10.0.0.4", is_full=True) == "10.0.0.2 1"
    assert there.address_of("10.0.0.2 1") == "10.0.0.2"
    there.remove("10.0.0.2 1")
    assert there.in_the_way("10.0.0.4", is_full=True) == "10.0.0.1 0"


def test_nothing_goes_while_there_is_room() -> None:
    assert strangers(100, *["10.0.0.1"] * 49).in_the_way("10.0.0.1", is_full=False) is None


def test_of_an_address_that_has_its_share_the_oldest_goes_though_there_is_room() -> None:
    there = strangers(8, *["10.0.0.1"] * 4, *["2001:db8::1"] * 4)

    assert there.in_the_way("10.0.0.1", is_full=False) == "10.0.0.1 0"
    assert there.in_the_way("2001:db8::ffff", is_full=False) == "2001:db8::1 4", "one network"
    assert there.in_the_way("10.0.0.2", is_full=False) is None


def test_what_has_logged_in_or_is_gone_does_not_give_way() -> None:
    there = strangers(8, "10.0.0.1", "10.0.0.1")
    there.remove("10.0.0.1 0")
    there.remove("10.0.0.1 0")
    there.replace("10.0.0.1 0", "nothing")
    there.replace("10.0.0.1 1", "greeted")

    assert there.first_to_go() == "greeted"
    there.remove("greeted")

    assert len(there) == 0
    assert there.first_to_go() is None
    assert there.in_the_way("10.0.0.1", is_full=True) is None


@given(
    st.lists(st.tuples(st.sampled_from(["come", "come", "go"]), st.integers(0, 4)), max_size=80),
    st.integers(0, 1000),
)
def test_whatever_comes_and_goes_the_first_to_go_is_of_the_address_with_most(
    steps: list[tuple[str, int]], seed: int
) -> None:
    there: PreLogin[int] = PreLogin(1000)
    model: OrderedDict[int, str] = OrderedDict()
    for number, (step, which) in enumerate(steps):
        if step == "come":
            model[number] = f"10.0.0.{which}"
            there.add(number, model[number])
        elif model:
            gone = list(model)[seed % len(model)]
            del model[gone]
            there.remove(gone)
        first = there.first_to_go()
        addresses = list(model.values())
        assert len(there) == len(model)
        assert (first is None) == (not model)
        if first is not None:
            address = model[first]
            assert addresses.count(address) == max(addresses.count(each) for each in addresses)
            assert first == next(each for each in model if model[each] == address)
