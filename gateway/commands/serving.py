"""Running a server from the command line: its flags, its settings, its exit code.

What it needs is imported when it is run: a wrong setting is told without loading the server.
"""

import argparse
import logging
import platform
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from gateway.command_line import own_version

if TYPE_CHECKING:
    from gateway.serving.process import MakeServer
    from gateway.settings.model import Key

EXIT_FAILED: Final = 1
EXIT_CONFIG: Final = 2

_METAVARS: Final = {
    "--data": "DIR",
    "--host": "H",
    "--port": "N",
    "--durability": "disk|interval|os",
    "--interval-ms": "N",
    "--log": "URL[,URL…]",
    "--member": "NAME",
    "--advertised-host": "H",
    "--advertised-port": "N",
    "--tls-port": "N",
    "--tls-cert": "FILE",
    "--tls-key": "FILE",
    "--tls-ca": "FILE",
    "--management-port": "N",
    "--store-port": "N",
    "--store-controller-port": "N",
    "--advertise": "HOST[:PORT]",
    "--store-early-port": "N",
    "--mewbase-port": "N",
    "--mewbase-tls-port": "N",
    "--early-port": "N",
    "--controller-port": "N",
    "--token-key-file": "FILE",
    "--users": "FILE",
    "--log-level": "LEVEL",
    "--log-format": "text|json",
}


def add_flags(parser: argparse.ArgumentParser, keys: "Mapping[str, Key]") -> None:
    """Add the flags of settings, and the one that names their file."""
    from gateway.settings import page  # noqa: PLC0415 (see above)

    parser.add_argument("--config", metavar="FILE", help="TOML file with settings. (HUTCH_CONFIG)")
    for flag, key in keys.items():
        parser.add_argument(flag, metavar=_METAVARS[flag], help=page.flag_help(key))


def flags_of(options: argparse.Namespace, keys: "Mapping[str, Key]") -> dict[str, str]:
    """Return the flags that were given, by name."""
    given = {flag: getattr(options, flag.removeprefix("--").replace("-", "_")) for flag in keys}
    return {flag: value for flag, value in given.items() if value is not None}


def run_server(
    options: argparse.Namespace,
    keys: "Mapping[str, Key]",
    server: "Callable[[], MakeServer]",
) -> int:
    """Run a server until it ends; return the exit code of the process.

    Args:
        options: The command line, parsed.
        keys: The setting of each flag.
        server: Loads what makes the server.
    """
    from gateway.kernels import uncompiled  # noqa: PLC0415
    from gateway.logs import configure, tell_fatal  # noqa: PLC0415
    from gateway.settings.errors import ConfigError  # noqa: PLC0415
    from gateway.settings.sources import WrongSettings, as_written, load  # noqa: PLC0415

    log = logging.getLogger(__name__)
    try:
        loaded = load(flags_of(options, keys), options.config, keys)
    except WrongSettings as error:
        tell_fatal(error.logs, str(error))
        return EXIT_CONFIG
    settings = loaded.settings
    logs = settings.logs
    configure(logs)
    log.info("starting version=%s python=%s", own_version(), platform.python_version())
    if slow := uncompiled():
        log.warning("kernels are not compiled, which is slow kernels=%s", ",".join(slow))

    # Only now: a wrong setting is told without loading the server.
    from gateway.serving.process import serve  # noqa: PLC0415
    from store.errors import OtherFormat, StoreError  # noqa: PLC0415

    try:
        return serve(server(), settings)
    except ConfigError as error:
        tell_fatal(logs, str(as_written(error, loaded.origins, keys)))
        return EXIT_CONFIG
    except OtherFormat as error:
        tell_fatal(logs, str(error))
        return EXIT_CONFIG
    except StoreError as error:
        tell_fatal(logs, f"{settings.store.data_directory}: {error}")
    except OSError as error:
        tell_fatal(logs, str(error))
    return EXIT_FAILED
