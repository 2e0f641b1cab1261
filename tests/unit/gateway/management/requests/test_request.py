"""Requests that are described by the signatures of their functions."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import pytest

from gateway.broker.access.access import Access, Demand, to_configure, to_read
from gateway.broker.locks import Check
from gateway.management.administration import Administration, Role
from gateway.management.errors import NotFound, WrongRequest
from gateway.management.fields import Arguments
from gateway.management.requests.request import AdminRequest, Host, Hosts, Name, request
from gateway.pending import Pending
from tests.unit.gateway.management.requests.administration_rig import Rig


def result(rig: Rig, row: AdminRequest, arguments: dict[str, Any], body: bytes = b"") -> Any:  # noqa: ANN401
    """Return what a request that gives back all that it took has taken."""
    given = Arguments(arguments, body=body)
    return rig.broker.store_rig.run(row.do(rig.administration, given))


def test_a_request_has_the_name_of_its_function_and_takes_a_body_if_that_does(rig: Rig) -> None:
    @request(Role.MONITORING)
    async def look() -> None: ...

    @request(tells=True)
    async def put(body: bytes) -> object:
        return body

    assert (look.name, look.role, look.takes_body, look.tells) == (
        *("look", Role.MONITORING),
        *(False, False),
    )
    assert (put.name, put.role, put.takes_body, put.tells) == (
        *("put", Role.ADMINISTRATOR),
        *(True, True),
    )
    assert result(rig, put, {}, b"x") == b"x"


@request()
async def take(
    name: str,
    key: Name,
    text: str = "usual",
    *,
    other: str | None,
    number: int | None,
    texts: tuple[str, ...],
    fields: dict[str, Any],
    flag: bool = True,
) -> object:
    return [name, key, text, other, number, texts, fields, flag]


def test_arguments_are_taken_by_the_types_of_parameters(rig: Rig) -> None:
    least = {"name": "n", "key": "k\udcff"}
    more = {"text": "t", "other": "o", "number": 5, "texts": ["x"], "flag": False}

    usual: list[object] = ["n", "k\udcff", "usual", None, None, (), {}, True]
    assert result(rig, take, least) == usual
    assert result(rig, take, {**least, **more, "fields": {"a": None}}) == [
        *("n", "k\udcff", "t", "o", 5),
        *(("x",), {"a": None}, False),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"key": "k"}, "name is missing"),
        ({"name": "n"}, "key is missing"),
        ({"name": "n\udcff", "key": "k"}, "name is not Unicode text"),
        ({"name": "n", "key": "k", "number": "1"}, "number is not a whole number"),
        ({"name": "n", "key": "k", "flag": 1}, "flag is neither true nor false"),
        ({"name": "n", "key": "k", "more": 1}, "there is no argument 'more'"),
    ],
)
def test_wrong_arguments_are_refused_before_the_function_begins(
    rig: Rig, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(WrongRequest, match=words):
        result(rig, take, arguments)


def test_the_virtual_host_is_the_default_one_or_all_where_none_is_named(rig: Rig) -> None:
    @request()
    async def one(host: Host) -> object:
        return host.name

    @request()
    async def some(hosts: Hosts) -> object:
        return [host.name for host in hosts]

    rig.ask("add_vhost", {"name": "v"})
    assert (result(rig, one, {}), result(rig, one, {"virtual_host": "v"})) == ("/", "v")
    assert result(rig, some, {}) == ["/", "v"]
    assert result(rig, some, {"virtual_host": "v"}) == ["v"]
    for row in (one, some):
        with pytest.raises(NotFound):
            result(rig, row, {"virtual_host": "x"})


def test_a_parameter_may_say_itself_how_it_is_taken(rig: Rig) -> None:
    def _doubled(_: Administration, arguments: Arguments, name: str, default: int = 1) -> int:
        return 2 * arguments.integer(name, default)

    @request()
    async def double(number: Annotated[int, _doubled]) -> object:
        return number

    assert result(rig, double, {"number": 4}) == 8
    assert result(rig, double, {}) == 2


def test_what_a_request_acts_on_is_no_argument(rig: Rig) -> None:
    judged: list[bool] = []

    @request()
    async def act(administration: Administration, access: Access, judge: Check) -> object:
        judge()
        return (administration, access) == (rig.administration, rig.administration.access)

    given = Arguments({}, lambda: judged.append(True))
    assert rig.broker.store_rig.run(act.do(rig.administration, given))
    assert judged == [True]
    for name in ("judge", "access"):
        with pytest.raises(WrongRequest, match=f"no argument '{name}'"):
            result(rig, act, {name: 1})


def test_rights_are_found_out_from_parameters_of_their_own(rig: Rig) -> None:
    def _rights(name: str, alternate: str = "") -> list[Demand]:
        return [*to_configure(name), *to_read(alternate)]

    @request(Role.MANAGEMENT, needs=_rights)
    async def make(name: str, number: int | None) -> None:
        del name, number

    given = Arguments({"name": "s", "number": 1, "alternate": "e"})
    found = make.demands(rig.administration, given)
    assert found == [*to_configure("s"), *to_read("e")]


def test_a_parameter_of_a_type_that_cannot_be_taken_is_found_at_once() -> None:
    async def wrong(place: complex) -> None:
        del place

    describe: Callable[[Callable[..., Coroutine[Pending[Any], None, object]]], AdminRequest] = (
        request()
    )
    with pytest.raises(KeyError):
        describe(wrong)
