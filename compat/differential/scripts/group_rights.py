"""Single active consumers whose user loses rights: the members that go, and those that follow."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    Wait,
    add_user,
    allow,
    ask,
    hear,
    opened,
    script,
    silence,
)
from compat.differential.scripts.groups import TOLD, answer, join, plain, told
from compat.differential.scripts.partition_groups import on_part, parts
from compat.differential.scripts.renewals import EVERYTHING, RENEWAL

USER = (add_user("~u"), allow("~u", **EVERYTHING))
A_MEMBER = (*USER, opened("A", user="~u"))


def lost(**rights: str) -> tuple[Step, ...]:
    """Let A lose rights, and be told so once it renews its secret."""
    return allow("~u", **(EVERYTHING | rights)), ask("A", RENEWAL, wait=TOLD, label="renewal")


SCRIPTS: tuple[Script, ...] = (
    script(
        "group rights: the active one may read no more",
        *plain("B", "C"),
        *A_MEMBER,
        join("A", is_told=True),
        answer("A", 0, records=3),
        join("B"),
        join("C"),
        *lost(read="^$"),
        *told("B"),
        answer("B", 0, records=3),
        silence("C"),
        ask("A", f.unsubscribe(1)),
        join("A"),
    ),
    script(
        "group rights: the active one may read no more and has not answered",
        *plain("B"),
        *A_MEMBER,
        join("A", is_told=True),
        join("B"),
        *lost(read="^$"),
        *told("B"),
        answer("A", 0),
        answer("B", 0, records=3),
    ),
    script(
        "group rights: a waiting one may read no more",
        *plain("B", "C"),
        *A_MEMBER,
        join("B", is_told=True),
        answer("B", 0, records=3),
        join("A"),
        join("C"),
        *lost(read="^$"),
        silence("B"),
        silence("C"),
        ask("B", f.unsubscribe(1)),
        *told("C"),
        answer("C", 0, records=3),
    ),
    script(
        "group rights: the active one may write no more and does",
        *plain("B"),
        *A_MEMBER,
        ask("A", f.declare(1, "~s")),
        join("A", is_told=True),
        answer("A", 0, records=3),
        join("B"),
        *lost(write="^$"),
        *told("B"),
        answer("B", 0, records=3),
    ),
    script(
        "group rights: the active one may write no more and does not",
        *plain("B"),
        *A_MEMBER,
        join("A", is_told=True),
        answer("A", 0, records=3),
        join("B"),
        allow("~u", **(EVERYTHING | {"write": "^$"})),
        ask("A", RENEWAL, wait=Wait(frames=1)),
        silence("A"),
        silence("B"),
    ),
    script(
        "group rights: the one that steps down may read no more",
        *parts("B"),
        *A_MEMBER,
        on_part("A", is_told=True),
        answer("A", 0, records=1),
        on_part("B"),
        hear("A", frames=1),
        *lost(read="^$"),
        *told("B"),
        answer("A", 1),
        answer("B", 0, records=1),
    ),
    script(
        "group rights: the one that is to follow may read no more",
        *parts("B"),
        *A_MEMBER,
        on_part("B", is_told=True),
        answer("B", 0, records=1),
        on_part("A"),
        hear("B", frames=1),
        *lost(read="^$"),
        silence("B"),
        answer("B", 1, frames=1),
        answer("B", 2, records=1),
    ),
)
