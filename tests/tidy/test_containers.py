"""What the container files say is true of this repository, though no engine may run here."""

import argparse
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from compat.broker.settings import PLUGINS
from gateway.bridge.routes import load as load_routes
from gateway.commands.bridge import add_arguments
from gateway.settings.model import sections, variable_of
from gateway.settings.sources import load

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "compat" / "docker" / "Dockerfile").read_text(encoding="utf-8")
VARIABLES = {
    variable_of((section, name)): (section, name)
    for section, model in sections().items()
    for name in model.model_fields
}


def environments() -> dict[str, dict[str, str]]:
    image = dict(re.findall(r"(HUTCH_\w+)=(\S+)", DOCKERFILE))
    return {
        "Dockerfile": image,
        "docker-compose.yml": image | COMPOSE["services"]["hutch"]["environment"],
    }


@pytest.mark.parametrize(("file", "environment"), environments().items(), ids=environments())
def test_every_setting_in_a_container_file_exists_and_takes_its_value(
    file: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert environment.keys() <= VARIABLES.keys(), file
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)

    loaded = load({})

    assert set(loaded.origins.values()) == set(environment)


def test_the_composed_server_is_reached_where_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in environments()["docker-compose.yml"].items():
        monkeypatch.setenv(variable, value)
    settings = load({}).settings

    address, published, inside = COMPOSE["services"]["hutch"]["ports"][0].split(":")

    assert int(inside) == settings.stream.port
    assert int(published) == settings.stream.advertised_port
    assert settings.stream.advertised_host == "localhost"
    assert address == "127.0.0.1", "guest is open: this machine only"
    assert settings.stream.host == "0.0.0.0"
    assert settings.users.guest_loopback_only is False


def test_the_image_alone_keeps_guest_shut() -> None:
    assert "HUTCH_USERS__GUEST_LOOPBACK_ONLY" not in environments()["Dockerfile"]


def test_the_data_directory_is_the_volume() -> None:
    data = environments()["docker-compose.yml"]["HUTCH_STORE__DATA_DIRECTORY"]

    volume, inside = COMPOSE["services"]["hutch"]["volumes"][0].split(":")

    assert inside == data
    assert f"VOLUME {data}\n" in DOCKERFILE
    assert volume in COMPOSE["volumes"]


def test_the_image_is_built_from_files_that_exist() -> None:
    build = COMPOSE["services"]["hutch"]["build"]

    assert (ROOT / build["context"] / build["dockerfile"]).exists()
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for source in sources.split():
            assert (ROOT / source).exists(), source


@pytest.mark.parametrize("service", ["hutch", "rabbitmq", "bridge"])
def test_every_service_says_when_it_is_healthy(service: str) -> None:
    assert COMPOSE["services"][service]["healthcheck"]["test"][0] == "CMD"


def test_the_reference_broker_has_ports_and_plugins_of_its_own() -> None:
    rabbitmq = COMPOSE["services"]["rabbitmq"]
    settings = COMPOSE["configs"]["rabbitmq-settings"]["content"]
    published = [port.split(":")[1] for port in rabbitmq["ports"]]

    assert rabbitmq["image"] == "rabbitmq:4.3-management"
    assert "5552" not in published
    assert "stream.advertised_port = 5553\n" in settings
    assert "127.0.0.1:5553:5553" in rabbitmq["ports"]
    assert COMPOSE["configs"]["rabbitmq-plugins"]["content"] == f"[{','.join(PLUGINS)}].\n"


def test_the_composed_bridge_has_routes_without_mistakes_between_the_other_services(
    tmp_path: Path,
) -> None:
    bridge = COMPOSE["services"]["bridge"]
    path = tmp_path / "routes.toml"
    path.write_text(COMPOSE["configs"]["bridge-routes"]["content"])
    parser = argparse.ArgumentParser()
    add_arguments(parser)

    (route,) = load_routes(path, {})
    options = parser.parse_args(bridge["command"])

    assert {route.source.place[0], route.target.parts.hostname} == set(bridge["depends_on"])
    assert str(options.file) == bridge["configs"][0]["target"]
    address, published, inside = bridge["ports"][0].split(":")
    assert options.metrics == ("0.0.0.0", int(inside))
    assert (address, published) == ("127.0.0.1", inside)
    assert f"127.0.0.1:{inside}/health" in bridge["healthcheck"]["test"][-1]
    assert f" AS {bridge['build']['target']}\n" in DOCKERFILE


def test_only_hutch_starts_without_a_profile() -> None:
    services = COMPOSE["services"]

    assert [name for name in services if "profiles" not in services[name]] == ["hutch"]
    assert "bridge" in services["rabbitmq"]["profiles"]
