"""Many clients that put one object at once: one made it, and the others found it there."""

import threading
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from tests.http_client import Api
from tests.integration.conftest import managed_server

CLIENTS = 20
RIGHTS: dict[str, object] = {"configure": "", "write": "", "read": ""}
LIMIT = {"max-length-bytes": 1_000_000}
EACH: dict[str, dict[str, object]] = {
    "vhosts/new": {},
    "users/new": {"password_hash": "", "tags": ""},
    "permissions/%2F/known": RIGHTS,
    "policies/%2F/new": {"pattern": "^a", "definition": {"max-age": "1h"}},
    "operator-policies/%2F/new": {"pattern": "^a", "definition": LIMIT},
    "queues/%2F/new": {"arguments": {"x-queue-type": "stream"}},
    "exchanges/%2F/new": {"type": "topic"},
    "parameters/vhost-limits/%2F/limits": {"value": {"max-queues": 100}},
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with managed_server(tmp_path_factory.mktemp("at-once"), "--durability", "os") as server:
        api = Api(*server.management)
        assert api.status("PUT", "users/known", {"password_hash": "", "tags": ""}) == 201
        yield api


@pytest.mark.parametrize("path", EACH)
def test_of_twenty_that_put_an_object_at_once_one_is_told_that_it_is_new(
    api: Api, path: str
) -> None:
    ready = threading.Barrier(CLIENTS)
    answers: list[int] = []

    def put() -> None:
        ready.wait()
        answers.append(api.status("PUT", path, EACH[path]))

    threads = [threading.Thread(target=put) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert Counter(answers) == {HTTPStatus.CREATED: 1, HTTPStatus.NO_CONTENT: CLIENTS - 1}
    assert api.status("PUT", path, EACH[path]) == HTTPStatus.NO_CONTENT
