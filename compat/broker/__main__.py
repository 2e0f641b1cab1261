"""`python -m compat.broker`: start, list and stop reference brokers by hand."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields

from compat.broker import records
from compat.broker.ports import Ports
from compat.broker.processes import usage
from compat.broker.running import RunningBroker
from compat.broker.ways import BrokerUnavailable, is_running, obtain, running, stop

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; return the exit status."""
    options = parser().parse_args(arguments)
    verb = options.verb or "run"
    try:
        return {"start": start, "stop": stop_brokers, "status": status, "run": run}[verb](options)
    except BrokerUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    except FileExistsError:
        print(f"a broker named {options.name} is running; stop it first", file=sys.stderr)
        return USAGE_ERROR


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    top = argparse.ArgumentParser(
        prog="python -m compat.broker",
        description="A RabbitMQ 4.3 to compare with: from HUTCH_RABBITMQ=host:port (and "
        "HUTCH_RABBITMQ_HTTP=host:port; HUTCH_RABBITMQ_TLS=host:port with "
        "HUTCH_RABBITMQ_CERTIFICATES=folder), else in a container, else in a Debian chroot.",
        epilog="Without a verb: run. Ports that are not given are picked by the system.",
    )
    verbs = top.add_subparsers(dest="verb", metavar="{run,start,status,stop}")
    add_start_options(top, is_top=True)
    for verb, text in (
        ("run", "start one, print its addresses, stop it on Ctrl-C or SIGTERM"),
        ("start", "start one, print its addresses, leave it running"),
    ):
        add_start_options(verbs.add_parser(verb, help=text, description=text))
    verbs.add_parser("status", help="list the running ones with their CPU time and memory")
    ending = verbs.add_parser("stop", help="stop one by its name, or all")
    ending.add_argument(
        "name", nargs="?", default=argparse.SUPPRESS, help="as printed by start and status"
    )
    ending.add_argument("--all", action="store_true", help="stop every broker started from here")
    return top


def add_start_options(target: argparse.ArgumentParser, *, is_top: bool = False) -> None:
    """Add the options of `run` and `start`.

    Args:
        target: Takes them.
        is_top: Whether it is the top of the grammar, which also sets what is not given. A verb
            that did so would undo what stands before it.
    """

    def default(value: object) -> object:
        return value if is_top else argparse.SUPPRESS

    made_up = "name for status and stop (default: made up)"
    target.add_argument("--name", default=default(""), help=made_up)
    for field in fields(Ports):
        text = f"{field.name} port (default: any free one)"
        option = f"--{field.name}-port"
        target.add_argument(option, type=int, default=default(0), metavar="N", help=text)


def wanted_ports(options: argparse.Namespace) -> Ports:
    """Return the ports that the command line asks for."""
    return Ports(**{field.name: getattr(options, f"{field.name}_port") for field in fields(Ports)})


def show(broker: RunningBroker) -> None:
    """Print one broker on one line of key=value pairs, which scripts may read."""
    pairs = [f"way={broker.way}"]
    if broker.name:
        pairs.insert(0, f"name={broker.name}")
    numbers = ((field.name, getattr(broker.ports, field.name)) for field in fields(Ports))
    pairs += [f"{name}={broker.host}:{number}" for name, number in numbers if number]
    if broker.certificates is not None:
        pairs.append(f"certificates={broker.certificates.folder}")
    if broker.pid is not None:
        pairs.append(f"pid={broker.pid}")
        if (used := usage(broker.pid)) is not None:
            pairs += [f"cpu_s={used.cpu_s:.2f}", f"resident_bytes={used.resident_bytes}"]
    print("rabbitmq", *pairs, flush=True)


def start(options: argparse.Namespace) -> int:
    """Start a broker that stays."""
    show(obtain(wanted_ports(options), name=options.name, detached=True))
    return 0


def run(options: argparse.Namespace) -> int:
    """Start a broker and keep it until a signal comes."""
    signals = {signal.SIGINT, signal.SIGTERM}
    # Blocked from the start: a signal during the start-up waits until there is something to stop.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    broker = obtain(wanted_ports(options), name=options.name)
    try:
        show(broker)
        signal.sigwait(signals)
    finally:
        broker.stop()
    return 0


def status(_: argparse.Namespace) -> int:
    """List the brokers that run; exit status 1 if there is none."""
    alive = [record for record in records.all_records() if is_running(record)]
    for record in alive:
        show(running(record))
    if not alive:
        print("no broker runs")
    return 0 if alive else 1


def stop_brokers(options: argparse.Namespace) -> int:
    """Stop the named broker, all of them, or the only one."""
    known = records.all_records()
    chosen = [record for record in known if options.all or record.name == options.name]
    if not options.name and not options.all and len(known) == 1:
        chosen = known
    if not chosen and not options.all:
        names = ", ".join(record.name for record in known) or "none"
        print(f"which one? running: {names}", file=sys.stderr)
        return USAGE_ERROR
    for record in chosen:
        stop(record)
        print(f"stopped {record.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
