"""Requests on scopes, for the owner of the server's files."""

import pytest

from gateway.management.errors import NotFound, WrongRequest
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.management.test_scopes import Lists, User


@pytest.mark.parametrize(
    ("request_name", "name"), [("list_scope_streams", "stream"), ("list_reader_groups", "group")]
)
def test_a_scope_s_lists_are_shown_row_by_row(rig: Rig, request_name: str, name: str) -> None:
    rig.administration.scopes.open(Lists(), User)

    assert rig.ask(request_name, {"scope": "one"}) == [{"name": name}]
    with pytest.raises(WrongRequest, match="scope is missing"):
        rig.ask(request_name)


def test_scopes_are_listed_where_there_is_a_controller(rig: Rig) -> None:
    with pytest.raises(NotFound, match="the controller's port is off"):
        rig.ask("list_scopes")
    rig.administration.scopes.open(Lists(), User)

    assert rig.ask("list_scopes") == [{"name": "one"}, {"name": "two"}]
