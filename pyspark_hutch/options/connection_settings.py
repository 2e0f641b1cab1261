"""Settings of connections, with their options: frozen values that Spark pickles for its workers.

They hold no live object.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from hutch.client.login import Endpoint
from pyspark_hutch.options.endpoints import ENDPOINTS, URI
from pyspark_hutch.options.kinds import FLAG, NAME_BYTES_MAX, integer, one_of, text_of
from pyspark_hutch.options.option import ALL, READ, Heading, Option, PartOption
from pyspark_hutch.options.passwords import PASSWORD, VARIABLE, Password

GUEST: Final = "guest"
GUEST_PASSWORD: Final = Password("password", GUEST)
VHOST: Final = "/"

DAY_MS: Final = 86_400_000
CLIENT_PROPERTIES_MAX: Final = 20
"""A server reads 8 KiB before the connection is open; a name and a value have 255 bytes at most."""

OWN_PROPERTIES: Final = ("product", "version", "platform", "connection_name")
"""Properties that every connection sets itself; `connectionName` is the option for the last."""

IDLE_MS_MAX: Final = 60_000  # no connection outlives a worker's last task by more
CONNECTION_NAME_BYTES_MAX: Final = 128  # leaves room for application, query and task

_PATH: Final = text_of(takes="the path of a file")


@dataclass(frozen=True, slots=True)
class BrokerTls:
    """Settings of TLS; the files are read where a connection is opened."""

    ca: Annotated[
        str | None,
        Option("tls.ca", ALL, _PATH, without="those that the machine trusts"),
        "File with the certificates of the authorities to trust, on every machine.",
    ] = None
    cert: Annotated[
        str | None, Option("tls.cert", ALL, _PATH), "File with a certificate to show to the server."
    ] = None
    key: Annotated[
        str | None,
        Option("tls.key", ALL, _PATH, without="it stands in the file of `tls.cert`"),
        "File with the private key of `tls.cert`.",
    ] = None
    verify_hostname: Annotated[
        bool,
        Option("tls.verifyHostname", ALL, FLAG),
        "Whether the server's certificate must name the host that is connected to.",
    ] = True
    server_name: Annotated[
        str | None,
        Option("tls.serverName", ALL, text_of(NAME_BYTES_MAX), without="the host of the endpoint"),
        "Host that the server's certificate must name instead.",
    ] = None


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """All that is needed to open connections to one broker."""

    endpoints: Annotated[
        tuple[Endpoint, ...],
        Heading("Servers"),
        PartOption("endpoints", ALL, ENDPOINTS),
        "Servers to ask first. This or `uri` is needed.",
        PartOption("uri", ALL, URI, hidden=True),
        "Server, user, password and virtual host in one; `%2F` stands for a `/` in a part.",
    ]
    vhost: Annotated[
        str, PartOption("vhost", ALL, text_of(), without="`/`, or what `uri` says"), "Virtual host."
    ] = VHOST
    advertised: Annotated[
        bool,
        Option("advertised", ALL, one_of({"use": True, "ignore": False})),
        "Whether to go to the addresses that the servers give for a stream's leader, or to stay "
        "with `endpoints`, as behind a tunnel or for a broker in a container.",
    ] = True
    connect_timeout_ms: Annotated[
        int,
        Option("connectTimeoutMs", ALL, integer(1, DAY_MS)),
        "How long opening a connection may take.",
    ] = 10_000
    request_timeout_ms: Annotated[
        int, Option("requestTimeoutMs", ALL, integer(1, DAY_MS)), "How long an answer may take."
    ] = 10_000
    poll_timeout_ms: Annotated[
        int,
        Option("pollTimeoutMs", READ, integer(1, DAY_MS)),
        "How long a task waits for the next rows before it fails.",
    ] = 120_000
    planner_retries: Annotated[
        int,
        Option("planner.retries", ALL, integer(0, 1_000)),
        "How often what fails for a lost connection is tried again.",
    ] = 5
    planner_retry_interval_ms: Annotated[
        int,
        Option("planner.retryIntervalMs", ALL, integer(1, DAY_MS)),
        "Pause before the first new attempt; each further pause is twice as long, up to 30 s.",
    ] = 1_000
    pool_idle_timeout_ms: Annotated[
        int,
        Option("pool.idleTimeoutMs", ALL, integer(0, IDLE_MS_MAX)),
        "How long a worker keeps a connection that no task uses.",
        PartOption("pool.capacity", ALL, None),
        "a worker keeps one connection for each server, and there is nothing to choose",
    ] = 30_000
    connection_name: Annotated[
        str | None,
        Option(
            "connectionName",
            ALL,
            text_of(CONNECTION_NAME_BYTES_MAX),
            without="the name of the application",
        ),
        "First part of the names that connections have at the server.",
    ] = None
    client_properties: Annotated[
        tuple[tuple[str, str], ...],
        PartOption("client.<name>", ALL, text_of(NAME_BYTES_MAX)),
        "Property of the connections that the server's tools show, its name in lower case; "
        f"at most {CLIENT_PROPERTIES_MAX}, and none of {', '.join(OWN_PROPERTIES)}.",
    ] = ()
    username: Annotated[
        str,
        Heading("User and password"),
        PartOption("username", ALL, text_of(), without="`guest`, or what `uri` says"),
        "User.",
    ] = GUEST
    password: Annotated[
        Password,
        PartOption("password", ALL, PASSWORD, without="`guest` for the user `guest`", hidden=True),
        "Password. It is shipped to the workers with the job; the next two are not.",
        PartOption("passwordFile", ALL, _PATH),
        "File that holds the password, read where a connection is opened: on the driver and on "
        "each worker. A line's end after it does not count.",
        PartOption("passwordEnv", ALL, VARIABLE, hidden=True),
        "Environment variable that holds the password, read in the same places.",
    ] = GUEST_PASSWORD
    tls: Annotated[
        BrokerTls | None,
        Heading("TLS"),
        PartOption("tls", ALL, FLAG, without="`false`, or what `uri` says"),
        "Whether connections use TLS; then the port is 5551 by default.",
    ] = None  # plain TCP
