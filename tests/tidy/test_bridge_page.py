"""docs/bridge.md is complete, and what it prints is right as far as that shows without a broker."""

import argparse
import configparser
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from gateway.bridge import lane, routes, running
from gateway.bridge.metrics import Metrics
from gateway.bridge.templates import NAMES, Template
from gateway.commands.bridge import add_arguments
from tests.tidy.sources import ROOT

PAGE: Final = (ROOT / "docs" / "bridge.md").read_text(encoding="utf-8")
NAMED: Final = dict(
    re.findall(r"`([^`\n]+\.(?:toml|service))`[^\n]*:\n\n```\w+\n(.*?)```", PAGE, re.DOTALL)
)
"""Files that the page prints, by their names."""
DOCUMENTS: Final = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
PARTS: Final = {
    "The file": (routes.Route, routes.End),
    "Sources": tuple(lane.SOURCES),
    "Targets": tuple(lane.TARGETS),
}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("hutch bridge")
    add_arguments(found)
    return found


def section(title: str) -> str:
    (found,) = re.findall(rf"^#+ {title}\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def rows(title: str) -> dict[str, str]:
    """Return the second cells of a section's tables by the names in their first ones."""
    cells = re.findall(r"^\| ([^|]+) \| ([^|]*?) ?\|", section(title), re.MULTILINE)
    return {name: second for first, second in cells for name in re.findall(r"`([^`]+)`", first)}


def in_toml(value: object) -> str:
    match value:
        case Template():
            return f'"{value.text}"'
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case list():
            return f"[{', '.join(map(in_toml, value))}]"
    return str(value)


@pytest.mark.parametrize("title", PARTS)
def test_every_key_of_a_file_is_in_a_table_with_its_default(title: str) -> None:
    told = rows(title)
    shared = set() if title == "The file" else set(routes.End.model_fields)
    fields: dict[str, Any] = {}
    for model in PARTS[title]:
        fields |= model.model_fields

    assert fields.keys() - shared <= told.keys()
    for name in fields.keys() - shared:
        default = fields[name].default
        if fields[name].is_required():
            assert told[name] in {"needed", ""}, name
        elif default is not None:
            assert told[name].strip("`") == in_toml(default), name


def test_the_tables_have_no_key_that_there_is_not() -> None:
    for title in ("Sources", "Targets"):
        known = {name for model in PARTS[title] for name in model.model_fields}
        assert rows(title).keys() <= known


def test_every_metric_is_in_the_table_and_no_other_one() -> None:
    none = cast("Metrics", SimpleNamespace(_lanes=()))
    found = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in Metrics.collect(none)
    }

    assert set(re.findall(r"hutch_bridge_\w+", PAGE)) == found


def test_every_flag_is_in_the_table_and_no_other_one() -> None:
    flags = {flag for action in parser()._actions for flag in action.option_strings}

    told = {name.split()[0] for name in rows("Flags")}

    assert told == {flag for flag in flags if flag.startswith("--")} - {"--help"}


def test_every_field_of_a_template_is_in_the_table() -> None:
    assert {f"{{{name}}}" for name in NAMES} <= rows("Templates").keys()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_on_the_page_has_no_mistake(document: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush")
    path = tmp_path / "bridge.toml"
    path.write_text(re.sub(r"\$\{file:[^}]*\}", f"${{file:{secret}}}", document))
    environment = dict.fromkeys(re.findall(r"\$\{(\w+)\}", document), "hush")

    assert routes.load(path, environment)


def test_every_command_on_the_page_is_one_for_a_file_on_the_page() -> None:
    blocks = re.findall(r"```(?:sh|ini)\n(.*?)```", PAGE, re.DOTALL)
    commands = [
        found for block in blocks for found in re.findall(r"hutch bridge (.*)", block) if found
    ]

    assert len(commands) >= 6
    for command in commands:
        assert str(parser().parse_args(shlex.split(command)).file) in NAMED


def test_the_unit_waits_longer_than_a_stop_takes() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(NAMED["/etc/systemd/system/hutch-bridge.service"])

    assert unit.getint("Service", "TimeoutStopSec") > lane.FINISH_S + running.SPARE_S
    assert unit["Service"]["Restart"] == "on-failure"


def test_of_the_gateway_the_bridge_is_kept_from_all_but_what_it_may_know() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    listed = contracts["importlinter:contract:bridge_alone"]["forbidden_modules"].split()
    there = {
        path.stem
        for path in (ROOT / "gateway").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }

    forbidden = {name.removeprefix("gateway.") for name in listed if name.startswith("gateway.")}
    assert there - forbidden == {"__init__", "bridge", "command_line"}
