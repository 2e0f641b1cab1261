"""`hutch store serve`: the segment store alone, for clients of Pravega's wire protocol."""

import argparse
from typing import TYPE_CHECKING, Final

from gateway.commands.serving import add_flags, run_server

if TYPE_CHECKING:
    from gateway.serving.process import MakeServer

DESCRIPTION: Final = """\
Serve the segment store of a data directory by Pravega's wire protocol, without the stream protocol.
It prints one line beginning `hutch ready` when clients can connect, and stops on SIGTERM or Ctrl-C:
it takes no more connections, stores and acknowledges what has arrived, exits 0.

With --users clients log in to the controller with Basic credentials, and each request needs a token
that the controller has given. With --token-key-file tokens are signed with the key in that file.
Without either every client that reaches the port reads and changes all segments, so it listens on
this machine alone unless --host says otherwise. A directory that `hutch serve` has made is kept by
its own key of tokens, and no client changes its streams.
"""

EPILOG: Final = """\
examples:
  hutch store serve --data /var/lib/hutch-store
      for clients on this machine, at 127.0.0.1:12345
  hutch store serve --data /var/lib/hutch-store --host 0.0.0.0 \\
                    --tls-cert server.pem --tls-key server-key.pem
      for clients anywhere, over TLS
  hutch store serve --data /var/lib/hutch-store --controller-port 9090
      for Pravega's own clients, which find streams at tcp://127.0.0.1:9090
  hutch store serve --data /var/lib/hutch-store --host 0.0.0.0 --controller-port 9090 \\
                    --advertise store.example.org --users users.txt \\
                    --tls-cert server.pem --tls-key server-key.pem
      the same for clients anywhere, each with a user: a line of users.txt is
      NAME:HASH:prn::/scope:SCOPE,READ_UPDATE, with a hash that `hutch hash-password` prints

`hutch serve --store-port N` serves the same protocol beside the stream protocol.

exit codes: as of `hutch serve`: 0 stopped, 1 it could not do its work, 2 a wrong setting, or a
directory of another format
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    from gateway.settings.sources import STORE_FLAGS  # noqa: PLC0415  # takes time to import

    add_flags(parser, STORE_FLAGS)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    from gateway.settings.sources import STORE_FLAGS  # noqa: PLC0415

    return run_server(options, STORE_FLAGS, _server)


def _server() -> "MakeServer":
    from gateway.serving.store_backend import store_server  # noqa: PLC0415

    return store_server
