"""The settings of a cluster: the replicated log, and this member of it."""

import re
import socket
from typing import Annotated, Final

from pydantic import AfterValidator

from gateway.settings.fields import (
    MIB,
    NAMES_IN_WORDS,
    Integer,
    Names,
    SettingsSection,
    SomePath,
    setting,
)

NAME_IN_WORDS: Final = "1 to 64 letters, digits, - and _"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_URL: Final = re.compile(r"(nats|tls)://\S+")


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("no name")
    return value


Name = Annotated[str, AfterValidator(_name)]


def _urls(value: tuple[str, ...]) -> tuple[str, ...]:
    if not all(map(_URL.fullmatch, value)):
        raise ValueError("no addresses of NATS")
    return value


Urls = Annotated[Names, AfterValidator(_urls)]


def this_machine() -> str:
    """Return the machine's name, in the letters of a member's."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname().partition(".")[0])[:64] or "member"


class ClusterSettings(SettingsSection):
    """Several machines: the log that keeps each change on them, and this member."""

    log: Urls = setting(
        (),
        "Servers of NATS JetStream that keep the log: nats://HOST[:PORT], with commas between "
        "them; a user and a password may stand before the host. A change is confirmed when a "
        "majority of the log's replicas have it on their disks. Without any the server is alone.",
        takes=NAMES_IN_WORDS.replace("names", "addresses nats://HOST:PORT or tls://HOST:PORT"),
    )
    member: Name | None = setting(
        None,
        "Name of this member of the cluster, which no other one has.",
        unset="the name of the machine",
        takes=NAME_IN_WORDS,
    )
    name: Name = setting(
        "hutch",
        "Name of the cluster, and of the stream of JetStream that is its log.",
        takes=NAME_IN_WORDS,
    )
    replicas: Integer = setting(
        3,
        "Servers of the log that keep each change: 1, 3 or 5. With 1 it survives the loss of no "
        "machine.",
        ge=1,
        le=5,
    )
    credentials_file: SomePath | None = setting(
        None, "File with the credentials for NATS, as nsc makes it.", unset="none are shown"
    )
    ca: SomePath | None = setting(
        None,
        "Certificates that sign those of the NATS servers (PEM).",
        unset="those that the system trusts",
    )
    log_bytes_max: Integer = setting(
        16 * 1024 * MIB,
        "Size of the log. Near it what the active member has on its disk leaves the log, also if "
        "members that are away do not have it yet: they then have to be made anew.",
        unit="bytes",
        ge=64 * MIB,
        le=2**50,
    )
    beat_ms: Integer = setting(
        1_000,
        "Time between two signs of life of a member, each of which goes through the log.",
        unit="milliseconds",
        ge=100,
        le=60_000,
    )
    takeover_beats: Integer = setting(
        6,
        "A member takes over once the log has taken so many of its own signs of life since the "
        "last one of the active member. Where that takes less than 5 s in all, the end of a pause "
        "of the log may lead to a takeover.",
        ge=3,
        le=1_000,
    )

    request_timeout_s: Integer = setting(
        8,
        "While the log does not answer, requests that create, delete or change something wait so "
        "long, and are then answered as not done yet: stream not available, or 503. They may still "
        "be done. Publishers wait for their confirms without a limit.",
        unit="seconds",
        ge=1,
        le=86_400,
    )

    @property
    def member_name(self) -> str:
        """The name of this member."""
        return self.member or this_machine()
