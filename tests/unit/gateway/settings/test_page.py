import tomllib
from pathlib import Path

import pytest

from gateway.settings.model import sections, variable_of
from gateway.settings.page import effective, flag_help, reference
from gateway.settings.sources import FLAGS, load

ROOT = Path(__file__).parents[4]


def test_docs_configuration_md_is_what_make_docs_would_write() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")

    assert written == reference(), "run `make docs`"


@pytest.mark.parametrize("section", sections())
def test_the_reference_has_every_setting_with_its_variable(section: str) -> None:
    page = reference()

    for name in sections()[section].model_fields:
        assert f"### {section}.{name}\n" in page
        assert f"`{variable_of((section, name))}`" in page


def test_the_settings_in_force_are_a_file_that_gives_the_same_settings(tmp_path: Path) -> None:
    loaded = load({"--port": "6000", "--durability": "os", "--users": 'a "quoted" name.toml'})
    path = tmp_path / "hutch.toml"

    path.write_text(effective(loaded), encoding="utf-8")

    assert load({}, str(path)).settings == loaded.settings


def test_the_settings_in_force_tell_where_each_came_from() -> None:
    lines = effective(load({"--port": "6000"})).splitlines()

    assert "port = 6000  # --port" in lines
    assert 'host = "localhost"  # default' in lines
    assert "# advertised_port is not set: the port listened on" in lines


def test_what_has_no_value_is_left_out_of_the_toml() -> None:
    content = tomllib.loads(effective(load({})))

    assert "advertised_port" not in content["stream"]
    assert content["users"].keys() == {"guest_loopback_only", "failed_logins_a_second_max"}


@pytest.mark.parametrize("flag", FLAGS)
def test_the_help_of_a_flag_tells_its_default(flag: str) -> None:
    assert "default" in flag_help(FLAGS[flag])
