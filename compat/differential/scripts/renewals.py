"""Renewing the secret of an open connection after the rights of its user have changed."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.administration import hashed
from compat.differential.script import (
    PASSWORD,
    Reached,
    Script,
    Step,
    Wait,
    add_user,
    administer,
    allow,
    ask,
    opened,
    reached,
    script,
    silence,
    timed,
    until_end,
)

TO_THE_END = Wait(fin=True)
RENEWAL = f.plain("~u", PASSWORD, corr=21)
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}


def renewed(name: str, *before: Step, after: tuple[Step, ...], told: int, **rights: str) -> Script:
    """Return a script: a user does something, gets other rights, renews its secret, goes on."""
    return script(
        f"renewal: {name}",
        add_user("~u"),
        allow("~u", **EVERYTHING),
        opened("A", user="~u"),
        ask("A", f.create("~s")),
        ask("A", f.create("~t")),
        *before,
        allow("~u", **(EVERYTHING | rights)),
        ask("A", RENEWAL, wait=Wait(frames=1 + told), label="renewal"),
        silence("A"),
        *after,
    )


BOTH = (ask("A", f.declare(1, "~s", "ref")), ask("A", f.subscribe(1, "~s")))
AFTER_BOTH = (
    ask("A", f.messages(1, 1, b"m"), wait=Wait(frames=1, timeout_s=0.5), label="publish"),
    ask("A", f.unsubscribe(1), label="unsubscribe"),
    ask("A", f.delete_publisher(1), label="delete publisher"),
    ask("A", f.metadata("~s"), label="metadata"),
)
ON_T = (ask("A", f.declare(2, "~t")), ask("A", f.subscribe(2, "~t")))

LOSSES = (
    renewed(
        "the right to write is lost, both are used",
        *BOTH, *ON_T, after=AFTER_BOTH, told=1, write="~t",
    ),
    renewed(
        "the right to read is lost, both are used", *BOTH, *ON_T, after=AFTER_BOTH, told=1,
        read="~t",
    ),
    renewed(
        "both rights are lost, both are used", *BOTH, after=AFTER_BOTH, told=1, write="~t",
        read="~t",
    ),
    renewed(
        "a right is lost that is not used",
        ask("A", f.declare(1, "~s")),
        ask("A", f.subscribe(2, "~t")),
        after=(
            ask("A", f.messages(1, 1, b"m"), wait=Wait(confirmed=1)),
            ask("A", f.unsubscribe(2)),
        ),
        told=0,
        write="~s",
        read="~t",
    ),
    renewed(
        "the right to write is lost by a publisher",
        ask("A", f.declare(1, "~s")),
        after=(ask("A", f.delete_publisher(1)),),
        told=1,
        write="~t",
    ),
    renewed(
        "the right to read is lost by a subscriber",
        ask("A", f.subscribe(1, "~s")),
        after=(ask("A", f.unsubscribe(1)),),
        told=1,
        read="~t",
    ),
    renewed(
        "rights are lost of who only stored an offset",
        ask("A", f.store_offset("r", "~s", 1), f.query_offset("r", "~s"), wait=Wait(frames=1)),
        after=(ask("A", f.query_offset("r", "~s")),),
        told=0,
        read="~t",
    ),
    renewed(
        "the right to configure is lost",
        *BOTH,
        after=(ask("A", f.delete("~s")), ask("A", f.unsubscribe(1))),
        told=0,
        configure="^$",
    ),
    renewed(
        "what was lost can be had again when it is given back",
        *BOTH,
        after=(
            allow("~u", **EVERYTHING),
            ask("A", f.declare(1, "~s", "ref")),
            ask("A", f.subscribe(1, "~s")),
        ),
        told=1,
        write="~t",
    ),
    renewed("nothing is lost", *BOTH, after=AFTER_BOTH[1:], told=0),
)  # fmt: skip

ENDS = (
    script(
        "renewal: another password meanwhile, and the old one is given",
        add_user("~u"),
        allow("~u", **EVERYTHING),
        opened("A", user="~u"),
        administer("change_password", name="~u", password_hash=hashed("other")),
        ask("A", f.metadata()),
        timed("A", RENEWAL, wait=TO_THE_END),
    ),
    script(
        "renewal: another password meanwhile, and the new one is given",
        add_user("~u"),
        allow("~u", **EVERYTHING),
        opened("A", user="~u"),
        administer("change_password", name="~u", password_hash=hashed("other")),
        ask("A", f.plain("~u", "other", corr=22)),
        ask("A", f.metadata()),
    ),
    script(
        "renewal: another user's right password",
        add_user("~u"),
        allow("~u", **EVERYTHING),
        opened("A", user="~u"),
        timed("A", f.plain(), wait=TO_THE_END),
    ),
    script(
        "renewal: all permissions are gone",
        add_user("~u"),
        allow("~u", **EVERYTHING),
        opened("A", user="~u"),
        administer("clear_permissions", user="~u", virtual_host="/"),
        timed("A", RENEWAL, wait=TO_THE_END),
    ),
    script(
        "a user is deleted while connected",
        add_user("~u"),
        allow("~u", **EVERYTHING),
        opened("A", user="~u"),
        administer("delete_user", name="~u"),
        until_end("A", 3.0, is_timed=False),
    ),
    script(
        "a user is deleted between logging in and opening",
        add_user("~u"),
        allow("~u", **EVERYTHING),
        reached("A", Reached.TUNED, user="~u"),
        administer("delete_user", name="~u"),
        timed("A", f.open_host(), wait=TO_THE_END),
    ),
    script(
        "a new user logs in, a deleted one does not",
        add_user("~u"),
        allow("~u", **EVERYTHING),
        opened("A", user="~u"),
        administer("delete_user", name="~u"),
        reached("B", Reached.MECHANISMS),
        timed("B", f.plain("~u", PASSWORD), wait=TO_THE_END),
    ),
    script(
        "a user without a password",
        add_user("~u", ""),
        allow("~u", **EVERYTHING),
        reached("A", Reached.MECHANISMS),
        timed("A", f.plain("~u", ""), wait=TO_THE_END),
        reached("B", Reached.MECHANISMS),
        timed("B", f.plain("~u", PASSWORD), wait=TO_THE_END),
    ),
    script(
        "a password of a single blank",
        add_user("~u", " "),
        allow("~u", **EVERYTHING),
        reached("A", Reached.MECHANISMS),
        ask("A", f.plain("~u", " "), wait=Wait(frames=2)),
    ),
    script(
        "a password of letters of several bytes",
        add_user("~u", "pässwörd\u20ac"),
        allow("~u", **EVERYTHING),
        reached("A", Reached.MECHANISMS),
        ask("A", f.plain("~u", "pässwörd\u20ac"), wait=Wait(frames=2)),
    ),
)

SCRIPTS: tuple[Script, ...] = (*LOSSES, *ENDS)
