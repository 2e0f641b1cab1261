"""Sources of settings: flags, the environment, a file; merged, checked, and each traced.

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

from gateway.settings.errors import ConfigError, Problem
from gateway.settings.fields import Needs
from gateway.settings.model import (
    ENVIRONMENT_PREFIX,
    Key,
    LogsSettings,
    Settings,
    allowed_of,
    field_of,
    sections,
    toml_types_of,
    variable_of,
)

CONFIG_VARIABLE: Final = "HUTCH_CONFIG"
_SHOWN_MAX: Final = 80
"""Characters of a wrong value that are shown."""

FLAGS: Final[Mapping[str, Key]] = {
    "--data": ("store", "data_directory"),
    "--host": ("stream", "host"),
    "--port": ("stream", "port"),
    "--durability": ("store", "durability"),
    "--interval-ms": ("store", "interval_ms"),
    "--log": ("cluster", "log"),
    "--member": ("cluster", "member"),
    "--advertised-host": ("stream", "advertised_host"),
    "--advertised-port": ("stream", "advertised_port"),
    "--tls-port": ("tls", "port"),
    "--tls-cert": ("tls", "certificate"),
    "--tls-key": ("tls", "key"),
    "--tls-ca": ("tls", "ca"),
    "--management-port": ("management", "port"),
    "--store-port": ("wire", "port"),
    "--store-controller-port": ("wire", "controller_port"),
    "--store-early-port": ("early", "port"),
    "--mewbase-port": ("mewbase", "port"),
    "--mewbase-tls-port": ("mewbase", "tls_port"),
    "--token-key-file": ("wire", "token_key_file"),
    "--users": ("users", "file"),
    "--log-level": ("logs", "level"),
    "--log-format": ("logs", "format"),
}
"""The settings that have a flag of their own; --config is the other flag."""

STORE_FLAGS: Final[Mapping[str, Key]] = {
    "--data": ("store", "data_directory"),
    "--host": ("wire", "host"),
    "--port": ("wire", "port"),
    "--early-port": ("early", "port"),
    "--controller-port": ("wire", "controller_port"),
    "--advertise": ("wire", "advertise"),
    "--users": ("wire", "users_file"),
    "--token-key-file": ("wire", "token_key_file"),
    "--durability": ("store", "durability"),
    "--interval-ms": ("store", "interval_ms"),
    "--tls-cert": ("tls", "certificate"),
    "--tls-key": ("tls", "key"),
    "--log-level": ("logs", "level"),
    "--log-format": ("logs", "format"),
}
"""The same for `hutch store serve`."""


@dataclass(frozen=True)
class Loaded:
    """The settings in force, with the source of each."""

    settings: Settings
    origins: Mapping[Key, str]
    """The flag, variable or file key of every setting that is not left at its default."""


_Layer = dict[Key, tuple[object, str]]
"""Settings of one source: the value of each, and its name as it was written there."""


class WrongSettings(ConfigError):
    """Settings that are wrong.

    Attributes:
        logs: How to tell it.
    """

    def __init__(self, logs: LogsSettings, *problems: Problem) -> None:
        super().__init__(*problems)
        self.logs = logs


def load(
    flags: Mapping[str, str], config: str | None = None, keys: Mapping[str, Key] = FLAGS
) -> Loaded:
    """Read the settings from flags, environment and file, check them, and say where each came from.

    Each source is read once: a pipe is empty then.

    Args:
        flags: The value of each flag that was given, by its name ("--port").
        config: The file given with --config; without it HUTCH_CONFIG names the file, if any.
        keys: The setting of each flag that there is.

    Raises:
        WrongSettings: With every problem there is: unknown settings, wrong types, out of range.
    """
    problems: list[Problem] = []
    in_file = _known(_file_layer(config, problems), problems)
    in_environment = _known(_environment_layer(problems), problems)
    # An overridden value is checked too: it counts as soon as it is not overridden.
    problems.extend(_wrong_values(in_file, is_typed=True))
    problems.extend(_wrong_values(in_environment))
    given = _flag_layer(flags, keys)
    problems.extend(_wrong_values(given))
    merged = in_file | in_environment | given
    origins = {key: written for key, (_, written) in merged.items()}
    try:
        settings = _settings_of(merged)
    except ValidationError as error:
        problems.extend(_wrong_pairs(error, origins))
        raise WrongSettings(_logs_of(merged), *problems) from None
    if problems:
        raise WrongSettings(settings.logs, *problems)
    return Loaded(settings, origins)


def _logs_of(layer: _Layer) -> LogsSettings:
    """Return the settings of the logs where others are wrong; defaults if these are."""
    given: dict[str, Any] = {
        name: value for (section, name), (value, _) in layer.items() if section == "logs"
    }
    try:
        return LogsSettings(**given)
    except ValidationError:
        return LogsSettings()


def as_written(
    error: ConfigError, origins: Mapping[Key, str], keys: Mapping[str, Key] = FLAGS
) -> ConfigError:
    """Name settings as the user wrote them where the server named them by flag or section.key."""
    problems = []
    for setting, reason in error.problems:
        section, _, name = setting.partition(".")
        key = keys.get(setting, (section, name))
        written = setting
        if field_of(key) is not None:
            flags = {key: flag for flag, key in keys.items()}
            written = origins.get(key) or flags.get(key) or variable_of(key)
        problems.append(Problem(written, reason))
    return ConfigError(*problems)


def _known(layer: _Layer, problems: list[Problem]) -> _Layer:
    """Report unknown settings and leave them out."""
    for key, (_, written) in layer.items():
        if field_of(key) is None:
            problems.append(Problem(written, _unknown(key)))
    return {key: given for key, given in layer.items() if field_of(key) is not None}


def _settings_of(layer: _Layer) -> Settings:
    """Check settings and build them. Raises ValidationError."""
    given: dict[str, dict[str, object]] = {}
    for (section, name), (value, _) in layer.items():
        given.setdefault(section, {})[name] = value
    return Settings(**cast("dict[str, Any]", given))


def _wrong_values(layer: _Layer, *, is_typed: bool = False) -> list[Problem]:
    """Report each value that its setting does not take, whatever the others are.

    Args:
        layer: What is given, all of it settings.
        is_typed: Whether a value has to have the setting's type, and not only to read like it.
    """
    wrong: set[Key] = set()
    try:
        _settings_of(layer)
    except ValidationError as error:
        wrong.update((str(at[0]), str(at[1])) for at in _places_of(error) if len(at) > 1)
    problems = []
    for section, model in sections().items():
        for name, field in model.model_fields.items():
            if (section, name) not in layer:
                continue
            value, written = layer[section, name]
            if (section, name) in wrong or (is_typed and type(value) not in toml_types_of(field)):
                problems.append(Problem(written, f"{_shown(value)} is not {allowed_of(field)}"))
    return problems


def _places_of(error: ValidationError) -> list[tuple[int | str, ...]]:
    return [item["loc"] for item in error.errors()]


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def _flag_layer(flags: Mapping[str, str], keys: Mapping[str, Key]) -> _Layer:
    return {keys[flag]: (value, flag) for flag, value in flags.items()}


def _is_ours(variable: str) -> bool:
    # Only names with a section are ours: Kubernetes, for one, sets HUTCH_PORT and its like for
    # every pod beside a service called hutch.
    return variable.startswith(ENVIRONMENT_PREFIX) and "__" in variable


def _environment_layer(problems: list[Problem]) -> _Layer:
    for name in filter(_is_ours, os.environ):
        section, _, field = name.removeprefix(ENVIRONMENT_PREFIX).lower().partition("__")
        if section not in sections():
            problems.append(Problem(name, _unknown((section, field))))
    source = EnvSettingsSource(Settings)
    # Of what differs in case alone it takes any: only names that begin as ours do are looked at.
    ours = {name: value for name, value in os.environ.items() if _is_ours(name)}
    source.env_vars = {name.lower(): value for name, value in ours.items()}
    written = {name.upper(): name for name in ours}
    try:
        given = source()
    except SettingsError as error:
        problems.append(Problem("environment", str(error)))
        return {}
    return {
        (section, name): (value, written[variable_of((section, name))])
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
        if config is not None:
            problems.append(Problem("--config", "names no file"))
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


def _wrong_pairs(error: ValidationError, origins: Mapping[Key, str]) -> list[Problem]:
    """Report settings that do not fit others; not those whose own value is wrong."""
    problems = []
    for item in error.errors():
        if len(item["loc"]) > 1:
            continue
        section = str(item["loc"][0])
        wrong = item["ctx"]["error"]
        one, other = ((section, name) for name in wrong.args)
        if isinstance(wrong, Needs):
            problems.append(Problem(origins[one], f"needs {'.'.join(other)} beside it"))
        else:
            values = cast("dict[str, object]", item["input"])
            problems.append(_out_of_order(one, other, values, origins))
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
