"""Where settings come from: flags, the environment, a file; merged, checked, and each traced.

A setting is taken from the first of these that has it:

    flag (--port 5552)  >  environment (HUTCH_STREAM__PORT=5552)  >  TOML file  >  default

The file is named by --config or HUTCH_CONFIG.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError

from gateway.config import (
    ENVIRONMENT_PREFIX,
    ConfigError,
    Key,
    Problem,
    Settings,
    allowed_of,
    field_of,
    sections,
    variable_of,
)
from gateway.config_fields import Needs

CONFIG_VARIABLE: Final = "HUTCH_CONFIG"

FLAGS: Final[Mapping[str, Key]] = {
    "--data": ("store", "data_directory"),
    "--host": ("stream", "host"),
    "--port": ("stream", "port"),
    "--durability": ("store", "durability"),
    "--interval-ms": ("store", "interval_ms"),
    "--advertised-host": ("stream", "advertised_host"),
    "--advertised-port": ("stream", "advertised_port"),
    "--tls-port": ("tls", "port"),
    "--tls-cert": ("tls", "certificate"),
    "--tls-key": ("tls", "key"),
    "--tls-ca": ("tls", "ca"),
    "--management-port": ("management", "port"),
    "--users": ("users", "file"),
    "--log-level": ("logs", "level"),
    "--log-format": ("logs", "format"),
}
"""The settings that have a flag of their own; --config is the other flag."""


@dataclass(frozen=True)
class Loaded:
    """The settings in force, and how each came to be what it is."""

    settings: Settings
    origins: Mapping[Key, str]
    """The flag, variable or file key of every setting that is not left at its default."""


def load(flags: Mapping[str, str], config: str | None = None) -> Loaded:
    """Read the settings from flags, environment and file, check them, and say where each came from.

    Args:
        flags: The value of each flag that was given, by its name ("--port"); keys of `FLAGS`.
        config: The file given with --config; without it HUTCH_CONFIG names the file, if any.

    Raises:
        ConfigError: With every problem there is: unknown settings, wrong types, out of range.
    """
    problems: list[Problem] = []
    values: dict[Key, object] = {}
    origins: dict[Key, str] = {}
    # Least important first: the later ones overwrite.
    for layer in (_file_layer(config, problems), _environment_layer(problems), _flag_layer(flags)):
        for key, (value, written) in layer.items():
            if field_of(key) is None:
                problems.append(Problem(written, _unknown(key)))
            else:
                values[key], origins[key] = value, written
    given: dict[str, dict[str, object]] = {}
    for (section, name), value in values.items():
        given.setdefault(section, {})[name] = value
    try:
        settings = Settings(**cast("dict[str, Any]", given))
    except ValidationError as error:
        problems.extend(_problems_of(error, origins))
        raise ConfigError(*problems) from None
    if problems:
        raise ConfigError(*problems)
    return Loaded(settings, origins)


_Layer = dict[Key, tuple[object, str]]
"""For each setting of one source: the value, and the setting's name as it was written there."""


def _flag_layer(flags: Mapping[str, str]) -> _Layer:
    return {FLAGS[flag]: (value, flag) for flag, value in flags.items()}


def _environment_layer(problems: list[Problem]) -> _Layer:
    # Only names with a section are ours: Kubernetes, for one, sets HUTCH_PORT and its like for
    # every pod beside a service called hutch.
    for name in os.environ:
        section, delimiter, field = name.removeprefix(ENVIRONMENT_PREFIX).lower().partition("__")
        if name.startswith(ENVIRONMENT_PREFIX) and delimiter and section not in sections():
            problems.append(Problem(name, _unknown((section, field))))
    try:
        given = EnvSettingsSource(Settings)()
    except SettingsError as error:
        problems.append(Problem("environment", str(error)))
        return {}
    return {
        (section, name): (value, variable_of((section, name)))
        for section, fields in given.items()
        for name, value in fields.items()
    }


def _file_layer(config: str | None, problems: list[Problem]) -> _Layer:
    layer: _Layer = {}
    path, content = _read_file(config, problems)
    for section, fields in content.items():
        if not isinstance(fields, dict):  # a key above the first [section]
            problems.append(Problem(f"{path}: {section}", _unknown(("", section))))
        elif section not in sections():
            problems.append(Problem(f"{path}: [{section}]", _unknown((section, ""))))
        else:
            for name, value in fields.items():
                layer[section, name] = (value, f"{path}: {section}.{name}")
    return layer


def _read_file(config: str | None, problems: list[Problem]) -> tuple[str, dict[str, object]]:
    """Return the configuration file's path and content; empty ones if there is none to read."""
    path = os.environ.get(CONFIG_VARIABLE, "") if config is None else config
    if not path:
        return "", {}
    try:
        return path, tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        origin = CONFIG_VARIABLE if config is None else "--config"
        problems.append(Problem(origin, f"cannot read {path}: {error.strerror}"))
    except ValueError as error:  # of TOML or of UTF-8
        problems.append(Problem(path, f"not TOML: {error}"))
    return path, {}


def _unknown(key: Key) -> str:
    """Say that there is no such setting, and which one was probably meant."""
    section, name = key
    names = [
        f"{known}.{field}" for known, model in sections().items() for field in model.model_fields
    ]
    close = difflib.get_close_matches(f"{section}.{name}", names, n=1) if section else []
    if not close:
        close = [known for known in names if name and known.endswith(f".{name}")]
    if not close:
        return f"no such setting; the sections are {', '.join(sections())}"
    return f"no such setting; did you mean {close[0]}?"


def _problems_of(error: ValidationError, origins: Mapping[Key, str]) -> list[Problem]:
    problems = []
    for item in error.errors():
        section, *rest = (str(part) for part in item["loc"])
        if not rest:
            values = cast("dict[str, object]", item["input"])
            wrong = item["ctx"]["error"]
            one, other = ((section, name) for name in wrong.args)
            if isinstance(wrong, Needs):
                reason = f"needs {'.'.join(other)} beside it"
                problems.append(Problem(origins[one], reason))
            else:
                problems.append(_out_of_order(one, other, values, origins))
            continue
        field = field_of((section, rest[0]))
        assert field is not None, "unknown settings never reach the model"
        value = item["input"]
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        problems.append(Problem(origins[section, rest[0]], f"{shown} is not {allowed_of(field)}"))
    return problems


def _out_of_order(
    low: Key, high: Key, given: Mapping[str, object], origins: Mapping[Key, str]
) -> Problem:
    """Blame the one of the two that the user wrote."""

    def value(key: Key) -> object:
        field = field_of(key)
        return given.get(key[1], None if field is None else field.default)

    if low in origins:
        return Problem(origins[low], f"{value(low)} is above {high[1]}, which is {value(high)}")
    return Problem(origins[high], f"{value(high)} is below {low[1]}, which is {value(low)}")
