"""Rows of the table: how the servers are reached."""

import re
from typing import Final

from pyspark_hutch.options import kinds
from pyspark_hutch.options.endpoints import ENDPOINTS, URI
from pyspark_hutch.options.errors import Unfit
from pyspark_hutch.options.kinds import FLAG, Kind, choice, integer, text_of
from pyspark_hutch.options.option import ALL, READ, Group, Option
from pyspark_hutch.options.settings import PASSWORD_BYTES_MAX, is_password

DAY_MS: Final = 86_400_000
CLIENT_PROPERTIES_MAX: Final = 20
"""A server reads 8 KiB before the connection is open; a name and a value have 255 bytes at most."""

OWN_PROPERTIES: Final = ("product", "version", "platform", "connection_name")
"""Properties that every connection sets itself; `connectionName` is the option for the last."""

IDLE_MS_MAX: Final = 60_000  # no connection outlives a worker's last task by more
CONNECTION_NAME_BYTES_MAX: Final = 128  # leaves room for application, query and task


def _password(text: str) -> str:
    if not is_password(text):
        raise Unfit("")
    return text


def _variable(text: str) -> str:
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,254}", text):
        raise Unfit("")
    return text


_PASSWORD: Final = Kind(f"1 to {PASSWORD_BYTES_MAX:,} bytes of text", _password)
_VARIABLE: Final = Kind("the name of an environment variable", _variable)
_PATH: Final = text_of(takes="the path of a file")

SERVERS: Final = Group(
    "Servers",
    (
        Option(
            "endpoints",
            ALL,
            ENDPOINTS,
            None,
            "Servers to ask first. This or `uri` is needed.",
        ),
        Option(
            "uri",
            ALL,
            URI,
            None,
            "Server, user, password and virtual host in one; `%2F` stands for a `/` in a part.",
            hidden=True,
        ),
        Option("vhost", ALL, text_of(), None, "Virtual host.", without="`/`, or what `uri` says"),
        Option(
            "advertised",
            ALL,
            choice("use", "ignore"),
            "use",
            "Whether to go to the addresses that the servers give for a stream's leader, or to "
            "stay with `endpoints`, as behind a tunnel or for a broker in a container.",
        ),
        Option(
            "connectTimeoutMs",
            ALL,
            integer(1, DAY_MS),
            "10000",
            "How long opening a connection may take.",
        ),
        Option(
            "requestTimeoutMs",
            ALL,
            integer(1, DAY_MS),
            "10000",
            "How long an answer may take.",
        ),
        Option(
            "pollTimeoutMs",
            READ,
            integer(1, DAY_MS),
            "120000",
            "How long a task waits for the next rows before it fails.",
        ),
        Option(
            "planner.retries",
            ALL,
            integer(0, 1_000),
            "5",
            "How often what fails for a lost connection is tried again.",
        ),
        Option(
            "planner.retryIntervalMs",
            ALL,
            integer(1, DAY_MS),
            "1000",
            "Pause before the first new attempt; each further pause is twice as long, up to 30 s.",
        ),
        Option(
            "pool.idleTimeoutMs",
            ALL,
            integer(0, IDLE_MS_MAX),
            "30000",
            "How long a worker keeps a connection that no task uses.",
        ),
        Option(
            "pool.capacity",
            ALL,
            None,
            None,
            "a worker keeps one connection for each server, and there is nothing to choose",
        ),
        Option(
            "connectionName",
            ALL,
            text_of(CONNECTION_NAME_BYTES_MAX),
            None,
            "First part of the names that connections have at the server.",
            without="the name of the application",
        ),
        Option(
            "client.<name>",
            ALL,
            text_of(kinds.NAME_BYTES_MAX),
            None,
            "Property of the connections that the server's tools show, its name in lower case; "
            f"at most {CLIENT_PROPERTIES_MAX}, and none of {', '.join(OWN_PROPERTIES)}.",
        ),
    ),
)

USER: Final = Group(
    "User and password",
    (
        Option("username", ALL, text_of(), None, "User.", without="`guest`, or what `uri` says"),
        Option(
            "password",
            ALL,
            _PASSWORD,
            None,
            "Password. It is shipped to the workers with the job; the next two are not.",
            without="`guest` for the user `guest`",
            hidden=True,
        ),
        Option(
            "passwordFile",
            ALL,
            _PATH,
            None,
            "File that holds the password, read where a connection is opened: on the driver and "
            "on each worker. A line's end after it does not count.",
        ),
        Option(
            "passwordEnv",
            ALL,
            _VARIABLE,
            None,
            "Environment variable that holds the password, read in the same places.",
            hidden=True,
        ),
    ),
)

TLS: Final = Group(
    "TLS",
    (
        Option(
            "tls",
            ALL,
            FLAG,
            None,
            "Whether connections use TLS; then the port is 5551 by default.",
            without="`false`, or what `uri` says",
        ),
        Option(
            "tls.ca",
            ALL,
            _PATH,
            None,
            "File with the certificates of the authorities to trust, on every machine.",
            without="those that the machine trusts",
        ),
        Option("tls.cert", ALL, _PATH, None, "File with a certificate to show to the server."),
        Option(
            "tls.key",
            ALL,
            _PATH,
            None,
            "File with the private key of `tls.cert`.",
            without="it stands in the file of `tls.cert`",
        ),
        Option(
            "tls.verifyHostname",
            ALL,
            FLAG,
            "true",
            "Whether the server's certificate must name the host that is connected to.",
        ),
        Option(
            "tls.serverName",
            ALL,
            text_of(kinds.NAME_BYTES_MAX),
            None,
            "Host that the server's certificate must name instead.",
            without="the host of the endpoint",
        ),
    ),
)
