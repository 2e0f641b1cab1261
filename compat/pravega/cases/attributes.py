"""Attributes: set if they are as expected, and read."""

from __future__ import annotations

from typing import Final

from compat.pravega import requests as r
from compat.pravega.case import Closed, ask, case
from compat.pravega.cases.starts import CREATED, filled
from compat.pravega.requests import UNSET, append, core
from hutch.pravega import error_messages as e
from hutch.pravega import messages as m

CASES: Final = (
    case("attribute: not set", CREATED, ask(r.attribute(), gives=m.SegmentAttribute)),
    case(
        "attribute: set and read",
        CREATED,
        ask(r.set_attribute(5, UNSET), gives=m.SegmentAttributeUpdated),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "attribute: replaced if equal",
        CREATED,
        ask(r.set_attribute(5, UNSET), gives=m.SegmentAttributeUpdated),
        ask(r.set_attribute(6, 5), gives=m.SegmentAttributeUpdated),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "attribute: not equal",
        CREATED,
        ask(r.set_attribute(5, UNSET), gives=m.SegmentAttributeUpdated),
        ask(r.set_attribute(6, 4), gives=m.SegmentAttributeUpdated),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "attribute: set already",
        CREATED,
        ask(r.set_attribute(5, UNSET), gives=m.SegmentAttributeUpdated),
        ask(r.set_attribute(6, UNSET), gives=m.SegmentAttributeUpdated),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "attribute: not set yet",
        CREATED,
        ask(r.set_attribute(6, 5), gives=m.SegmentAttributeUpdated),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "attribute: removed",
        CREATED,
        ask(r.set_attribute(5, UNSET), gives=m.SegmentAttributeUpdated),
        ask(r.set_attribute(UNSET, 5), gives=m.SegmentAttributeUpdated),
        ask(r.attribute(), gives=m.SegmentAttribute),
        ask(r.set_attribute(7, UNSET), gives=m.SegmentAttributeUpdated),
    ),
    case(
        "attribute: absent to absent",
        CREATED,
        ask(r.set_attribute(UNSET, UNSET), gives=m.SegmentAttributeUpdated),
    ),
    case(
        "attribute: a writer's number", *filled(), ask(r.attribute(r.W), gives=m.SegmentAttribute)
    ),
    case(
        "attribute: a writer is set up by it",
        CREATED,
        ask(r.set_attribute(41, UNSET), gives=m.SegmentAttributeUpdated),
        ask(r.setup(writer=r.ATTRIBUTE), gives=m.AppendSetup),
    ),
    case(
        "attribute: fences a writer",
        *filled(),
        ask(r.set_attribute(9, 1, id_=r.W), gives=m.SegmentAttributeUpdated),
        ask(append(2, b"x"), gives=(e.InvalidEventNumber, Closed)),
    ),
    case(
        "attribute: on a sealed segment",
        CREATED,
        ask(r.seal(), gives=m.SegmentSealed),
        ask(r.set_attribute(5, UNSET), gives=e.SegmentIsSealed),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "attribute: the count of events",
        *filled(),
        ask(r.attribute(core(1)), gives=m.SegmentAttribute, label="count"),
    ),
    case(
        "attribute: of the core, not set",
        CREATED,
        ask(r.attribute(core(99)), gives=m.SegmentAttribute),
    ),
)
