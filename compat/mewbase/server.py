"""A server of mewbase's protocol for test suites that start and stop one for each test.

    compat/mewbase/serve --channel channel1,channel2 --projection channel1:binder1:id

It prints one line when clients may come, and ends by SIGTERM.
"""

import argparse
import base64
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import bson

from gateway.cli import main as hutch
from gateway.mewbase.handlers import connect
from gateway.mewbase.wire.reading import Request

PORT: Final = 7451
USERS: Final = {"mew": "base", "base": "mew"}
_SALT: Final = b"mewb"


def arguments_of(given: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="compat/mewbase/serve",
        description="Serve mewbase's protocol on one port, for test suites of other programs.",
    )
    parser.add_argument("--port", default=PORT, type=int, help=f"(default {PORT})")
    parser.add_argument("--data", type=Path, help="data directory (default: a new one)")
    parser.add_argument(
        "--channel",
        "--channels",
        action="append",
        default=[],
        metavar="NAMES",
        help="channels to make, with commas between them; may be given more than once",
    )
    parser.add_argument(
        "--binder",
        "--binders",
        action="append",
        default=[],
        metavar="NAMES",
        help="the same of binders",
    )
    parser.add_argument(
        "--projection",
        "--projections",
        action="append",
        default=[],
        metavar="CHANNEL:BINDER:FIELD",
        help="an event of the channel is the document that its field names; may be given more "
        "than once",
    )
    parser.add_argument("--tls-cert", type=Path, help="serve over TLS alone, with this certificate")
    parser.add_argument("--tls-key", type=Path, help="its key")
    parser.add_argument(
        "--auth",
        choices=["none", "users", "success"],
        default="none",
        help="none: anyone may come in; users: mew with base, and base with mew; success: where "
        "authInfo.success is true (default none)",
    )
    found = parser.parse_args(given)
    if (found.tls_cert is None) != (found.tls_key is None):
        parser.error("--tls-cert and --tls-key go together")
    for text in found.projection:
        if len(text.split(":")) != len(("channel", "binder", "field")):
            parser.error(f"{text!r} is not CHANNEL:BINDER:FIELD")
    return found


def definitions() -> dict[str, object]:
    """Return the users; they may do everything."""
    return {
        "users": [
            {
                "name": name,
                "password_hash": base64.b64encode(
                    _SALT + hashlib.sha256(_SALT + password.encode()).digest()
                ).decode(),
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": "administrator",
            }
            for name, password in USERS.items()
        ],
        "vhosts": [{"name": "/"}],
        "permissions": [
            {"user": name, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
            for name in USERS
        ],
    }


def projections(texts: list[str]) -> str:
    """Return the file of projections."""
    tables = []
    for text in texts:
        channel, binder, field = text.split(":")
        described = {"name": text, "channel": channel, "binder": binder, "id": field}
        lines = [f"{key} = {json.dumps(value)}" for key, value in described.items()]
        tables.append("\n".join(["[[projections]]", *lines, ""]))
    return "\n".join(tables)


def settings_of(found: argparse.Namespace, folder: Path) -> dict[str, str]:
    """Return the settings as variables, after writing the files that they name to a folder."""
    (folder / "definitions.json").write_text(json.dumps(definitions()))
    (folder / "projections.toml").write_text(projections(found.projection))
    variables = {
        "DEFINITIONS__FILE": str(folder / "definitions.json"),
        "MANAGEMENT__ENABLED": "false",
        "MEWBASE__BINDERS": ",".join(found.binder),
        "MEWBASE__CHANNELS": ",".join(found.channel),
        # The end may take a second, whatever clients have not read.
        "MEWBASE__CLOSE_TIMEOUT_MS": "300",
        "MEWBASE__PROJECTIONS_FILE": str(folder / "projections.toml"),
        "STORE__DATA_DIRECTORY": str(found.data or folder / "data"),
        "STREAM__PORT": "0",
    }
    if found.auth != "users":
        variables["USERS__ANONYMOUS"] = "mew"
    if found.tls_cert is None:
        variables["MEWBASE__PORT"] = str(found.port)
    else:
        variables["MEWBASE__TLS_PORT"] = str(found.port)
        variables["TLS__CERTIFICATE"] = str(found.tls_cert)
        variables["TLS__KEY"] = str(found.tls_key)
        variables["TLS__PORT"] = "0"
    return {f"HUTCH_{name}": value for name, value in variables.items()}


def by_success(request: Request) -> tuple[str, bytes]:
    """Return the login of a CONNECT by the rule that authInfo.success has to be true."""
    raw = request.values["authInfo"]
    given: dict[str, Any] = {} if raw is None else bson.decode(raw)
    return ("ANONYMOUS", b"") if given.get("success") is True else ("PLAIN", b"\0\0")


def anyone(request: Request) -> tuple[str, bytes]:
    """Return the login of any CONNECT: that of the anonymous user."""
    del request
    return "ANONYMOUS", b""


def main(given: list[str]) -> int:
    """Serve; return the exit code."""
    found = arguments_of(given)
    if found.auth == "none":
        connect.credentials_of = anyone
    elif found.auth == "success":
        connect.credentials_of = by_success
    with tempfile.TemporaryDirectory(prefix="hutch-mewbase-") as folder:
        os.environ.update(settings_of(found, Path(folder)))
        return hutch(["serve"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
