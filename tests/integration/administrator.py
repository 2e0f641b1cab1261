"""Running the commands of `hutch` on a server of a test, and definitions to import."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from gateway import cli
from hutch.client.errors import ServerBusy
from tests.client import Client, Refused
from tests.integration.server import HutchServer, run_to_its_end, server_environment
from tests.waiting import HANG_S

DEFINITIONS = Path(__file__).parents[1] / "unit" / "gateway" / "management" / "definitions"
FULL = DEFINITIONS / "rabbitmq-4.3.json"
ONE_HOST = DEFINITIONS / "rabbitmq-4.3-one-host.json"
NOBODY = 65534
IMPATIENT = {"HUTCH_STREAM__REFUSAL_DELAY_MS": "0"}


def hutch(
    data: Path,
    *arguments: str,
    stdin: bytes = b"",
    check: bool = True,
    within_s: float = HANG_S,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of `hutch` on the server of a data directory."""
    command = [sys.executable, "-m", "gateway", *arguments, "--data", str(data)]
    if stdin:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            timeout=within_s,
            env=server_environment(),
            check=False,
        )
    else:
        done = run_to_its_end(command, within_s=within_s)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert not check or done.returncode == 0, (done.returncode, done.stderr.decode())
    return done


def run_here(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """Run a command of `hutch` in this process, which takes a tenth of the time."""
    stdout, stderr = io.StringIO(), io.StringIO()
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with redirect_stdout(stdout), redirect_stderr(stderr):
            code = cli.main(arguments)
    finally:
        sys.stdin = before
    return code, stdout.getvalue(), stderr.getvalue()


def ctl(server: HutchServer, *arguments: str, stdin: bytes = b"") -> Any:  # noqa: ANN401  # what JSON holds
    """Run a `hutch ctl` command and return its answer."""
    place = ("--json", "--data", str(server.data_dir))
    code, said, complaint = run_here("ctl", *arguments, *place, stdin=stdin)
    assert code == 0, complaint
    return json.loads(said)


def refusal(server: HutchServer, *arguments: str, stdin: bytes = b"") -> tuple[int, str]:
    code, said, complaint = run_here(*arguments, "--data", str(server.data_dir), stdin=stdin)
    assert said == ""
    return code, complaint


def can_log_in(server: HutchServer, user: str, password: str, virtual_host: str = "/") -> bool:
    try:
        Client.opened(
            *server.endpoint, user=user, password=password, virtual_host=virtual_host
        ).disconnect()
    except (Refused, ServerBusy):
        return False
    return True


def report(
    server: HutchServer, *arguments: str, stdin: bytes = b"", within_s: float = HANG_S
) -> Any:  # noqa: ANN401  # what JSON holds
    arguments = ("import", *arguments, "--json")
    return json.loads(hutch(server.data_dir, *arguments, stdin=stdin, within_s=within_s).stdout)


def many(count: int, pad: str = "") -> dict[str, Any]:
    """Definitions of so many objects."""
    each = count // 4
    numbers = range(each)
    return {
        "vhosts": [{"name": "/"}],
        "users": [
            {"name": f"user-{number}", "password_hash": "", "tags": [], "pad": pad}
            for number in numbers
        ],
        "permissions": [
            {"user": f"user-{number}", "vhost": "/", "configure": "", "write": ".*", "read": "^a"}
            for number in numbers
        ],
        "queues": [
            {
                "name": f"stream-{number}",
                "vhost": "/",
                "type": "stream",
                "durable": True,
                "arguments": {"x-queue-type": "stream"},
                "pad": pad,
            }
            for number in numbers
        ],
        "exchanges": [{"name": "events", "vhost": "/", "type": "topic"}],
        "bindings": [
            {
                "source": "events",
                "vhost": "/",
                "destination": f"stream-{number}",
                "destination_type": "queue",
                "routing_key": f"key.{number}",
            }
            for number in numbers
        ],
    }
