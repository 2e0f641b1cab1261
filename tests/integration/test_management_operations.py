"""What operators' tools ask over the management API: health, attempts to log in, many users."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from compat.certificates import Certificates
from tests.client import Client
from tests.http_client import Api
from tests.integration.conftest import managed_server
from tests.integration.server import HutchServer

NODE: Final = "rabbit@localhost"
LIMITS: Final = "parameters/vhost-limits/%2F/limits"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    folder = tmp_path_factory.mktemp("operations")
    config = folder / "hutch.toml"
    config.write_text("[stream]\nconnections_max = 1\n")
    arguments = ("--durability", "os", "--config", str(config))
    with managed_server(folder, *arguments) as server:
        yield server


@pytest.fixture
def api(target: HutchServer) -> Api:
    return Api(*target.management)


@pytest.mark.parametrize(
    "check",
    [
        "metadata-store/initialized",
        "metadata-store/initialized/with-data",
        "quorum-queues-without-elected-leaders/all-vhosts",
        "quorum-queues-without-elected-leaders/all-vhosts/pattern/.%2A",
        "quorum-queues-without-elected-leaders/vhost/%2F",
        "quorum-queues-without-elected-leaders/vhost/%2F/pattern/x",
    ],
)
def test_what_cannot_be_ill_is_well(api: Api, check: str) -> None:
    assert api.get(f"health/checks/{check}") == {"status": "ok"}


def test_a_server_that_lets_nobody_more_in_is_told_by_its_health(
    api: Api, target: HutchServer
) -> None:
    check = "health/checks/below-node-connection-limit"
    assert api.get(check) == {"status": "ok"}
    with Client.opened(*target.endpoint):
        answer = api.ask("GET", check)
        assert answer.status == 503
        assert answer.json == {
            "status": "failed",
            "reason": "node connection limit is reached",
            "limit": 1,
            "connections": 1,
        }


def test_certificates_that_run_out_soon_are_told_by_the_health(
    tmp_path: Path, made: Certificates
) -> None:
    shown = tmp_path / "shown.pem"
    shown.write_bytes(made.server.certificate.read_bytes())
    files = {"--tls-cert": shown, "--tls-key": made.server.key, "--tls-ca": made.ca}
    arguments = [text for name, path in files.items() for text in (name, str(path))]
    check = "health/checks/certificate-expiration"
    with managed_server(tmp_path, "--durability", "os", "--tls-port", "0", *arguments) as server:
        api = Api(*server.management)
        assert api.get(f"{check}/1/days") == api.get(f"{check}/0/years") == {"status": "ok"}
        answer = api.ask("GET", f"{check}/99999/years")
        assert (answer.status, answer.json["status"]) == (503, "failed")
        expired, *others = answer.json["expired"]
        assert all(each["certfile"] == str(shown) for each in others), "other addresses of the port"
        assert (expired["certfile"], expired["cacertfile"]) == (str(shown), str(made.ca))
        (end,) = expired["certfile_expires_on"]
        left = datetime.fromisoformat(end).replace(tzinfo=UTC) - datetime.now(UTC)
        last, next_ = left.days, left.days + 1
        assert api.status("GET", f"{check}/{last}/days") == 200
        assert api.status("GET", f"{check}/{next_}/days") == 503
        for wrong in ("x/days", "-1/days", "1/hours", "123456/days"):
            assert api.status("GET", f"{check}/{wrong}") == 400
        shown.write_text("nothing")
        assert api.ask("GET", f"{check}/1/days").json["expired"][0]["certfile_expires_on"] == []


def test_without_certificates_none_runs_out(api: Api) -> None:
    assert api.get("health/checks/certificate-expiration/99/years") == {"status": "ok"}


def test_many_users_are_deleted_at_once(api: Api) -> None:
    for name in ("one", "two", "three"):
        assert api.status("PUT", f"users/{name}", {"password": "p", "tags": ""}) == 201
    for wrong in ({}, {"users": "one"}, {"users": ["one", 5]}, {"users": None}):
        assert api.status("POST", "users/bulk-delete", wrong) == 400, wrong
    assert api.status("GET", "users/one") == 200
    assert api.status("POST", "users/bulk-delete", {"users": ["one", "nobody", "two"]}) == 204
    assert [api.status("GET", f"users/{name}") for name in ("one", "two", "three")] == [
        404,
        404,
        200,
    ]
    assert api.status("PUT", "users/three", {"password": "p", "tags": "monitoring"}) == 204
    asker = api.by("three", "p")
    assert asker.status("POST", "users/bulk-delete", {"users": ["three"]}) == 401
    assert api.status("POST", "users/bulk-delete", {"users": ["three"]}) == 204


def test_the_limits_of_a_virtual_host_are_a_parameter_with_a_path(api: Api) -> None:
    assert api.status("GET", LIMITS) == 404
    assert api.status("PUT", LIMITS, {"value": {"max-queues": 5}}) == 201
    kept = {"vhost": "/", "component": "vhost-limits", "name": "limits"}
    assert api.get(LIMITS) == {**kept, "value": {"max-queues": 5}}
    assert api.status("PUT", LIMITS, {"value": {"max-connections": 7}}) == 204
    assert api.get("vhost-limits/%2F") == [{"vhost": "/", "value": {"max-connections": 7}}]
    assert api.status("PUT", LIMITS, {"value": {"no-such": 7}}) == 400
    assert api.status("PUT", "parameters/shovel/%2F/limits", {"value": {}}) == 400
    for other in ("vhost-limits/%2F/other", "shovel/%2F/limits", "vhost-limits/none/limits"):
        assert api.status("GET", f"parameters/{other}") == 404
    assert api.status("DELETE", LIMITS) == 204
    assert api.status("DELETE", LIMITS) == 404
    assert api.get("vhost-limits") == []


def test_attempts_to_log_in_are_counted_by_protocol_and_source(api: Api) -> None:
    assert api.status("DELETE", f"auth/attempts/{NODE}") == 204
    assert api.by("guest", "wrong").status("GET", "whoami") == 401
    (http,) = api.get(f"auth/attempts/{NODE}")
    assert (http["protocol"], http["auth_attempts_failed"]) == ("http", 1)
    assert http["auth_attempts"] == http["auth_attempts_succeeded"] + 1
    (source,) = api.get(f"auth/attempts/{NODE}/source")
    assert (source["remote_address"], source["auth_attempts_failed"]) == (api.host, 1)
    assert api.status("GET", "auth/attempts/none") == 404
    assert api.status("PUT", "users/counted", {"password": "p", "tags": "management"}) == 201
    assert api.by("counted", "p").status("GET", f"auth/attempts/{NODE}") == 401
    tag = {"password": "p", "tags": "monitoring"}
    assert api.status("PUT", "users/counted", tag) == 204
    assert api.by("counted", "p").status("GET", f"auth/attempts/{NODE}") == 200
    assert api.by("counted", "p").status("DELETE", f"auth/attempts/{NODE}") == 401
    assert api.status("DELETE", "users/counted") == 204
    assert api.status("DELETE", f"auth/attempts/{NODE}/source") == 204
