"""The settings of the ports for mewbase's protocol."""

import enum
from typing import Self

from pydantic import model_validator

from gateway.settings.fields import (
    HOST_IN_WORDS,
    KIB,
    MIB,
    NAMES_IN_WORDS,
    Host,
    Integer,
    Names,
    SendBacklogSettings,
    SettingsSection,
    SomePath,
    in_order,
    setting,
)

EVENT_BYTES_MAX = MIB - KIB - 64
"""A message of a stream has at most 1 MiB less 1 KiB, and an event is its body."""


BINDER_IDS_MAX = 100_000
"""The most ids of a binder, if the settings do not say otherwise."""


class Form(enum.Enum):
    """Form of answers to clients, where the protocol's page and its first client differ."""

    AUTO = "auto"
    PAGE = "page"
    CLIENT = "client"


class BadSubBatchRule(enum.Enum):
    """The fate of sub-batches that cannot be opened; stream clients alone publish any."""

    FAIL = "fail"
    SKIP = "skip"
    RAW = "raw"


_SUB_BATCH_BYTES_MAX = 64 * MIB
"""The largest that is opened, by the size in its head."""


class _Subscriptions(SettingsSection):
    subscriptions_max: Integer = setting(
        1_000,
        "Subscriptions of one connection; one more is refused.",
        ge=1,
        le=1_000_000,
    )
    window_bytes: Integer = setting(
        4 * MIB,
        "Bytes of events that may be on their way to one subscription without being acknowledged; "
        "the event that takes them above this is the last one sent.",
        unit="bytes",
        ge=KIB,
        le=1024 * MIB,
    )
    window_resume_bytes: Integer = setting(
        2 * MIB,
        "Events are sent again when no more than this is unacknowledged; not above window_bytes.",
        unit="bytes",
        ge=0,
        le=1024 * MIB,
    )

    bad_sub_batches: BadSubBatchRule = setting(
        BadSubBatchRule.SKIP,
        "What subscriptions and projections do at a sub-batch of a stream client that does not "
        "hold what it says. `skip`: go on behind it, with a line of the log. `raw`: take its bytes "
        "as they were sent for one event, {data: bytes}, at its first position. `fail`: go no "
        "further: the connection of the subscription ends, the projection waits.",
    )
    sub_batches_bytes_max: Integer = setting(
        2 * _SUB_BATCH_BYTES_MAX,
        "Bytes that sub-batches of more than 1 MiB may have together while subscriptions and "
        "projections take records from them. Others wait; one connection has one open at a time.",
        unit="bytes",
        ge=_SUB_BATCH_BYTES_MAX,
        le=64 * 1024 * MIB,
    )

    @model_validator(mode="after")
    def _check_windows(self) -> Self:
        return in_order(self, ("window_resume_bytes", "window_bytes"))


class _Transactions(SettingsSection):
    transactions_max: Integer = setting(
        16,
        "Transactions that one connection may have open; one more is refused.",
        ge=1,
        le=1_000_000,
    )
    transaction_bytes_max: Integer = setting(
        16 * MIB,
        "Bytes of events that the open transactions of one connection may have in memory. An event "
        "above this is refused, and its transaction can only be aborted.",
        unit="bytes",
        ge=KIB,
        le=1024 * MIB,
    )
    transactions_bytes_max: Integer = setting(
        256 * MIB,
        "The same for all connections together.",
        unit="bytes",
        ge=KIB,
        le=64 * 1024 * MIB,
    )


class QueryResponse(enum.Enum):
    """Connections that get a QUERYRESPONSE before the results of a query."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class _Queries(SettingsSection):
    binders: Names = setting(
        (),
        "Binders, besides those that projections_file names.",
        takes=NAMES_IN_WORDS,
    )
    projections_file: SomePath | None = setting(
        None,
        "TOML file of the projections, which make documents of binders out of events. "
        "docs/protocols/mewbase.md describes it.",
        unset="no projections",
    )
    binder_ids_max: Integer = setting(
        BINDER_IDS_MAX,
        "Ids of one binder, all of which are in memory: 1 KiB each at most. An event that would "
        "make a document under another one is passed over.",
        ge=1,
        le=100_000_000,
    )
    query_response: QueryResponse = setting(
        QueryResponse.AUTO,
        "Connections that get a QUERYRESPONSE before the results of a query. `auto`: those that "
        "get answers in the form of the page.",
    )
    query_kept_bytes_max: Integer = setting(
        16 * MIB,
        "Bytes of documents that are kept for one open query because they change before it comes "
        "to them; above this the query ends with an error.",
        unit="bytes",
        ge=KIB,
        le=1024 * MIB,
    )
    queries_max: Integer = setting(
        100,
        "Queries that one connection may have open; one more is refused.",
        ge=1,
        le=1_000_000,
    )


class MewbaseSettings(_Subscriptions, _Transactions, _Queries, SendBacklogSettings):
    """The listeners for mewbase's protocol, and limits of their connections.

    docs/protocols/mewbase.md says what clients get.
    """

    host: Host | None = setting(
        None,
        "Address that the ports listen on.",
        unset="stream.host",
        takes=HOST_IN_WORDS,
    )
    port: Integer | None = setting(
        None,
        "Port for clients of mewbase's protocol, usually 7451; 0 lets the system pick one. It "
        "needs `pip install '.[mewbase]'` in the folder of the sources.",
        ge=0,
        le=65_535,
        unset="no such port",
    )
    tls_port: Integer | None = setting(
        None,
        "The same over TLS, with the certificate of [tls].",
        ge=0,
        le=65_535,
        unset="no such port",
    )
    virtual_host: str = setting(
        "/",
        "Virtual host whose streams are the channels.",
    )
    channels: Names = setting(
        (),
        "Channels that are made at the start if they are missing. Publishing to a channel does not "
        "make it.",
        takes=NAMES_IN_WORDS,
    )
    form: Form = setting(
        Form.AUTO,
        "Form of answers. `client`: the number of an error is an int32, as the client of 2016 "
        "needs it; `page`: a string, and the answer to CONNECT names a request. `auto` takes "
        "`client` for connections whose CONNECT has the field authInfo.",
    )
    event_bytes_max: Integer = setting(
        EVENT_BYTES_MAX,
        "Largest event.",
        unit="bytes",
        ge=KIB,
        le=EVENT_BYTES_MAX,
    )
    connections_max: Integer = setting(
        65_536,
        "Connections at a time; one more is refused when it logs in.",
        ge=1,
        le=1_000_000,
    )
    initial_frame_bytes_max: Integer = setting(
        8 * KIB,
        "Largest frame before the login, which any client can make the server buffer.",
        unit="bytes",
        ge=KIB,
        le=MIB,
    )
    connect_timeout_ms: Integer = setting(
        10_000,
        "Longest wait for the login of a client.",
        unit="milliseconds",
        ge=10,
        le=600_000,
    )
    idle_timeout_s: Integer | None = setting(
        None,
        "Longest time that a client may send nothing after its login; its connection ends then, or "
        "up to half as long again later. Any frame counts, PING too; while the client is "
        "behind with reading, so does what it reads.",
        unit="seconds",
        ge=2,
        le=31_536_000,
        unset="no such limit",
    )
    unanswered_events_max: Integer = setting(
        50_000,
        "Events of one connection that may wait for their answer before the server stops reading "
        "from it.",
        ge=1,
        le=10_000_000,
    )
    unanswered_events_resume: Integer = setting(
        40_000,
        "Reading begins again when no more than this many events wait; not above "
        "unanswered_events_max.",
        ge=0,
        le=10_000_000,
    )

    @model_validator(mode="after")
    def _check_unanswered(self) -> Self:
        return in_order(self, ("unanswered_events_resume", "unanswered_events_max"))
