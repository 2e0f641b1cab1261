"""`hutch store`: serve a segment store; check, repair and show one that is not served."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gateway.command_line import complain, visible
from gateway.commands import store_serve
from gateway.commands.store_check import check_store
from gateway.commands.store_inspect import inspect
from gateway.commands.store_repair import Repair
from gateway.management.ctl.ctl import add_place, data_directory
from gateway.management.ctl.grammar import WrongUse
from gateway.settings.errors import ConfigError
from store.errors import DiskFull, OtherFormat, StoreError
from store.files import DirectoryFiles
from store.local.store_check import NotChecked, open_to_check
from store.replica.local_copy import place_in

EXIT_DAMAGED: Final = 1
EXIT_NOT_CHECKED: Final = 2

_DESCRIPTION: Final = """\
Serve a segment store; or look at what a server has stored, or mend it, while that server does not
run. Each takes the lock of the data directory, so that no other server is started meanwhile.
"""

_EPILOG: Final = """\
examples:
  hutch store check --data /var/lib/hutch      finds what is damaged, and changes nothing
  hutch store inspect --data /var/lib/hutch    lists what is stored
  hutch store serve --data /var/lib/hutch-store
                                               serves segments by Pravega's wire protocol

`hutch store check --help` and `hutch store inspect --help` say more.
"""

_CHECK: Final = """\
Read all that is stored and check it: journal and checkpoint, tables, every chunk of every stream,
and what is derived from them. Each damaged place is one line with its stream, file and position.
What Pravega's controller keeps is compared with the segments. Nothing in the directory changes, and
what a start of the server would change is only tried in memory. Lines that begin with `note:` are
no damage.

With --repair, what can be mended is mended. Copies of all that is replaced are kept in
set-aside/. Damaged tables are written anew without the entries that cannot be read, so that the
server starts again; indexes, filter pages and snapshots are dropped, and the server makes them
anew from the chunks. No record that can be read is removed or gets another offset. Damaged chunks
stay where they are: the server passes over them, and a check goes on reporting them.
"""

_CHECK_EPILOG: Final = """\
examples:
  hutch store check --data /var/lib/hutch
  hutch store check --data /var/lib/hutch --repair      copy the directory first, if there is room

exit codes: 0 all is sound, 1 something is damaged (with --repair: and could not be mended),
2 nothing was checked: there is no store, a server has it, it has another format, or there is no
room to mend it
"""

_INSPECT: Final = """\
List what is stored: every segment with its length, its first position and its files. With a NAME,
show what is in it: the records of a stream, the entries of a table, or the bytes of a segment.
Nothing in the directory changes.
"""

_INSPECT_EPILOG: Final = """\
NAME is a stream, or a segment as the list has it. Password hashes are never shown.

examples:
  hutch store inspect --data /var/lib/hutch
  hutch store inspect --data /var/lib/hutch orders --limit 10
  hutch store inspect --data /var/lib/hutch orders --vhost eu --offset 5000
  hutch store inspect --data /var/lib/hutch hutch/_access_kvtable/0.#epoch.0

exit codes: 0 shown, 1 what was to be shown is damaged, 2 there is no such store or name, or
it has another format
"""

_LIMIT: Final = 20


def add_arguments(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """Add the commands; only the one that is given gets its arguments."""
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary, description, epilog, add in (
        (
            "serve",
            "serve segments by Pravega's wire protocol",
            store_serve.DESCRIPTION,
            store_serve.EPILOG,
            store_serve.add_arguments,
        ),
        ("check", "find what is damaged, and mend it", _CHECK, _CHECK_EPILOG, _add_check),
        ("inspect", "show what is stored", _INSPECT, _INSPECT_EPILOG, _add_inspect),
    ):
        subparser = actions.add_parser(
            name,
            help=summary,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        subparser.set_defaults(parser=subparser)
        if name in given:
            add(subparser)


def _add_check(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--repair", action="store_true", help="mend what can be mended")


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="what to show (default: a list of everything)")
    add("--vhost", metavar="VHOST", default="/", help="virtual host of the stream (default: /)")
    add("--offset", metavar="N", type=int, help="begin with this offset (default: the first)")
    add(
        "--limit",
        metavar="N",
        type=int,
        default=_LIMIT,
        help=f"show so many records or entries at most (default: {_LIMIT})",
    )


def run(options: argparse.Namespace) -> int:
    """Run one of the commands; return the exit code."""
    if options.action == "serve":
        return store_serve.run(options)
    # Damage is printed as findings; the log would say it twice.
    logging.getLogger().addHandler(logging.NullHandler())
    do = _check if options.action == "check" else inspect
    try:
        return do(data_directory(options), options)
    except (ConfigError, WrongUse, NotChecked, DiskFull, OtherFormat) as error:
        return complain(str(error), EXIT_NOT_CHECKED)
    except StoreError as error:
        sys.stdout.write(f"damaged: {visible(str(error))}\n")
        return EXIT_DAMAGED


def _check(directory: Path, options: argparse.Namespace) -> int:
    if options.repair and directory.is_dir() and place_in(DirectoryFiles(directory)) is not None:
        raise WrongUse(
            f"{directory} is that of a member of a cluster, whose other members would not have what"
            f" is mended: copy the directory of one that is sound, or make this one a plain store"
            f" with `hutch leave`"
        )
    checked = open_to_check(directory, repairs=options.repair)
    try:
        check = check_store(checked)
        if not options.repair or not check.places:
            return EXIT_DAMAGED if check.places else 0
        repair = Repair(checked, check)
        repair.run()
        for line in repair.left:
            sys.stdout.write(visible(f"left: {line}") + "\n")
        if checked.kept_in:
            kept = directory / checked.kept_in
            sys.stdout.write(visible(f"copies of what was replaced are in {kept}") + "\n")
        return EXIT_DAMAGED if repair.left else 0
    finally:
        checked.close()
