"""`hutch bridge`: the command line of the bridge."""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from gateway.command_line import complain, did_you_mean

EXIT_CONFIG: Final = 2
_NEEDS: Final = ("aio_pika", "aiomqtt", "mmh3", "rich", "prometheus_client")
METRICS_HOST: Final = "127.0.0.1"

DESCRIPTION: Final = """\
Carry messages between queues, exchanges, topics and streams, at least once and in order. Each end
may be Hutch, RabbitMQ or another broker; the bridge needs their addresses only.
"""

EPILOG: Final = """\
example: empty a queue into a stream, with a file of six lines
  cat >orders.toml <<'END'
  [[routes]]
  name = "orders"
  source = { uri = "amqp://guest:${PASSWORD}@old-broker/", queue = "orders" }
  target = { uri = "rabbitmq-stream://guest:guest@localhost", stream = "orders", create = {} }
  END
  hutch bridge orders.toml --check
  hutch bridge orders.toml --until-empty

sources: queue = "…" · exchange = "…", keys = ["…"] · topics = ["…"] · stream = "…" ·
         super_stream = "…"
targets: stream = "…" · super_stream = "…", partition_by = "{routing_key}" · exchange = "…",
         routing_key = "{routing_key}" · queue = "…" · topic = "{topic}"
${NAME} is a variable of the environment, ${file:PATH} the content of a file.
docs/bridge.md describes each key, and what becomes of a message on its way.

exit status: 0 when it was told to stop or the sources are empty, 1 when a route stopped, 2 when
the file is wrong or an end could not be opened at the start.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add all flags."""
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="the routes, as TOML")
    add("--check", action="store_true", help="say what is wrong with FILE, and do nothing else")
    add(
        "--until-empty",
        action="store_true",
        help="end when the sources are empty and all is acknowledged",
    )
    add("--wait", action="store_true", help="wait for ends that cannot be opened at the start")
    add("--remove", metavar="ROUTE", help="take away the queue, session or place of a route")
    add("--metrics", metavar="[HOST:]PORT", type=_address, help="serve /metrics and /health")
    add("--log-format", choices=("text", "json"), default="text", help="of the lines on stderr")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 0xFFFF:  # noqa: PLR2004  # the largest port
        raise argparse.ArgumentTypeError(f"{text!r}: write PORT or HOST:PORT")
    return host or METRICS_HOST, int(port)


def run(options: argparse.Namespace) -> int:
    """Run the bridge; return the exit status."""
    missing = [name for name in _NEEDS if find_spec(name) is None]
    if missing:
        words = f"the bridge needs the extra `bridge`: {', '.join(missing)} missing"
        return complain(words, EXIT_CONFIG)
    from gateway import logs  # noqa: PLC0415  # what the command needs is imported here
    from gateway.bridge import routes, running  # noqa: PLC0415
    from gateway.settings.model import LogFormat, LogsSettings  # noqa: PLC0415

    try:
        found = routes.load(options.file)
    except routes.WrongFile as error:
        return complain(str(error), EXIT_CONFIG)
    if options.check:
        count = "1 route" if len(found) == 1 else f"{len(found)} routes"
        sys.stdout.write(f"{options.file}: {count}, nothing is wrong\n")
        return 0
    logs.configure(LogsSettings(format=LogFormat(options.log_format)))
    if options.remove is not None:
        for route in found:
            if route.name == options.remove:
                return running.remove(route)
        meant = did_you_mean(options.remove, [route.name for route in found])
        return complain(f"{options.file}: no route {options.remove!r}{meant}", EXIT_CONFIG)
    return running.run(
        found, waits=options.wait, until_empty=options.until_empty, metrics=options.metrics
    )
