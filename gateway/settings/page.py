"""The settings in words: the reference page, those in force, and the help of a flag."""

import enum
import json
from pathlib import Path
from typing import Final, cast

from pydantic.fields import FieldInfo

from gateway.settings.model import Key, allowed_of, field_of, fields_of, sections, variable_of
from gateway.settings.sources import FLAGS, Loaded

_HEAD: Final = """\
# Configuration

<!-- Written by `make docs` from gateway/settings/model.py: change it there. -->

A setting is taken from the first of these that has it:

1. a flag of `hutch serve`, as `--port 5552`;
2. an environment variable, as `HUTCH_STREAM__PORT=5552`;
3. the TOML file that `--config` or `HUTCH_CONFIG` names, as `port = 5552` under `[stream]`;
4. the default.

`hutch config` prints the settings in force, and where each came from, as a TOML file. A setting
that does not exist, has the wrong type or is out of range stops the start with exit code 2 and one
line for each, which names it as it was written; so does one that another source overrides. In the
file numbers and truth values stand as TOML has them, without quotes. Relative paths count from the
directory that the server is started in.

An environment variable is ours only if it begins with `HUTCH_` and names a section and a setting
with two underscores between them; all others are left alone.
"""


def reference() -> str:
    """Write docs/configuration.md: every setting with meaning, unit, default and range."""
    flags = {key: flag for flag, key in FLAGS.items()}
    lines = [_HEAD]
    for section, model in sections().items():
        lines.append(f"## [{section}]\n\n{_first_line(model.__doc__)}\n")
        for name, field in fields_of(model).items():
            key = (section, name)
            lines.append(f"### {section}.{name}\n\n{field.description}\n")
            rows = {
                "takes": allowed_of(field),
                "unit": _extra(field, "unit"),
                "default": _default(field),
                "variable": f"`{variable_of(key)}`",
                "flag": f"`{flags[key]}`" if key in flags else "",
            }
            lines.extend(f"- {title}: {value}" for title, value in rows.items() if value)
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def effective(loaded: Loaded) -> str:
    """Write the settings in force as TOML, with the origin of each as its comment."""
    lines: list[str] = []
    for section, model in sections().items():
        lines.append(f"[{section}]")
        values = getattr(loaded.settings, section)
        for name, field in fields_of(model).items():
            value = getattr(values, name)
            origin = loaded.origins.get((section, name), "default")
            if value is None:
                lines.append(f"# {name} is not set: {_extra(field, 'unset')}")
            else:
                lines.append(f"{name} = {_toml(value)}  # {origin}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def flag_help(key: Key) -> str:
    """Describe a flag in a line or two: meaning, unit and default."""
    field = field_of(key)
    assert field is not None, "FLAGS names settings that exist"
    unit = _extra(field, "unit")
    facts = f"{unit}, default {_default(field)}" if unit else f"default {_default(field)}"
    # argparse reads % as a format.
    return f"{field.description} ({facts})".replace("%", "%%").replace("`", "")


def _default(field: FieldInfo) -> str:
    return _extra(field, "unset") if field.default is None else f"`{_plain(field.default)}`"


def _extra(field: FieldInfo, name: str) -> str:
    return str(cast("dict[str, object]", field.json_schema_extra)[name])


def _plain(value: object) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _toml(value: object) -> str:
    if isinstance(value, enum.Enum | Path | str):
        # A JSON string is a TOML string.
        return json.dumps(_plain(value), ensure_ascii=False)
    return _plain(value)


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0]
