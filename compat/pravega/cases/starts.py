"""Steps that many cases begin with."""

from __future__ import annotations

from typing import Final

from compat.pravega import requests as r
from compat.pravega.case import Step, ask
from compat.pravega.requests import S, info
from hutch.pravega import messages as m

HERE: Final = ask(m.KeepAlive(), gives=m.KeepAlive)
CREATED: Final = ask(r.create(), gives=m.SegmentCreated)
INFO: Final = ask(info(), gives=m.StreamSegmentInfo)


def filled(data: bytes = b"0123456789", segment: str = S) -> tuple[Step, ...]:
    """Create a segment with these bytes."""
    return (
        ask(r.create(segment), gives=m.SegmentCreated),
        ask(r.setup(segment), gives=m.AppendSetup),
        ask(r.end(1, data), gives=m.DataAppended),
    )
