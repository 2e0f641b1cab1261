"""`python -m compat.clients`: run the clients' programs against both servers, print the tables."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compat.broker import BrokerUnavailable, obtain
from compat.clients.comparison import Campaign, Comparison
from compat.clients.programs import PROGRAMS
from compat.clients.report import is_whole, keep, page
from compat.clients.servers import serving


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return 1 if anything was not as it should be."""
    parser = argparse.ArgumentParser(
        prog="python -m compat.clients",
        description="The same scenarios by all clients, against Hutch and RabbitMQ.",
    )
    names = [program.client for program in PROGRAMS]
    parser.add_argument("--only", action="append", choices=names, help="this client (repeatable)")
    parser.add_argument("--write", action="store_true", help="put the tables into the README")
    parser.add_argument("--verbose", action="store_true", help="say what is being done")
    options = parser.parse_args(arguments)
    level = logging.INFO if options.verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(message)s")
    programs = [one for one in PROGRAMS if one.client in (options.only or names)]
    try:
        broker = obtain()
    except BrokerUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    try:
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            with serving(folder, broker) as servers:
                found = Campaign(programs, servers, folder).run()
    finally:
        broker.stop()
    print(page(found))
    if options.write and is_whole(found):
        keep(page(found))
    return show_faults(found)


def show_faults(found: Comparison) -> int:
    """Print what is wrong; return 1 if anything is."""
    faults = [*found.unavailable.values(), *found.broken.values(), *found.crossing_faults()]
    for client in found.offered:
        if client not in found.broken:
            faults += [*found.offer_faults(client), *found.faults(client)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
