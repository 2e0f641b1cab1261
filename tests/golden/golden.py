"""The golden frames: bytes that RabbitMQ and Hutch both understand, and what they say.

`frames/<key>_<command>.json` holds a list; each frame has its bytes in hex (without the size
prefix, gaps between fields), who sends it, and every field of its message. `pipeline/` has the same
for commands of our own, which RabbitMQ does not understand. `origin` is

    derived    by hand from the protocol's text
    observed   seen on a running RabbitMQ 4.3, by hand
    captured   recorded from a running RabbitMQ 4.3.6 by `capture.py`, into `captured/`

`encodes_as` stands where a lenient reading is not written back as it came.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import Buffer

from hutch.stream import pipeline
from hutch.stream.codec import (
    Decoded,
    decode_reply,
    decode_request,
    encode_command,
    encode_reply,
    encode_request,
)
from hutch.stream.commands import STANDARD, Command, CommandTable
from hutch.stream.messages import Message

FOLDER = Path(__file__).parent / "frames"
CAPTURED_FOLDER = Path(__file__).parent / "captured"
PIPELINE_FOLDER = Path(__file__).parent / "pipeline"


@dataclasses.dataclass(frozen=True)
class Golden:
    """One frame and its meaning."""

    command: str
    name: str
    sender: str
    origin: str
    version: int
    is_response: bool
    correlation_id: int | None
    hex: str
    fields: Mapping[str, Any]
    encodes_as: str = ""

    def __str__(self) -> str:
        return f"{self.command}-{self.name}".replace(" ", "_")

    @property
    def table(self) -> CommandTable:
        """The smallest table that has the command."""
        return STANDARD if self.command in STANDARD.by_name else pipeline.TABLE

    @property
    def row(self) -> Command:
        """The command's row."""
        return self.table.by_name[self.command]

    @property
    def frame(self) -> bytes:
        """The bytes without their size."""
        return bytes.fromhex(self.hex)

    @property
    def canonical(self) -> bytes:
        """The bytes that the message is encoded to."""
        return bytes.fromhex(self.encodes_as or self.hex)

    def decode(self, frame: Buffer | None = None) -> Decoded:
        """Decode these bytes (or others) as the side that did not send them would."""
        decode = decode_request if self.sender == "client" else decode_reply
        return decode(self.frame if frame is None else frame, self.table)

    def encode(self, message: Message) -> bytes:
        """Encode a message with this frame's key, version and correlation id."""
        if self.is_response:
            return encode_reply(self.row, self.correlation_id, message)
        encode = encode_request if self.sender == "client" else encode_command
        return encode(self.row, message, correlation_id=self.correlation_id, version=self.version)


def load() -> list[Golden]:
    """Read all golden frames, by key."""
    return [
        Golden(command=path.stem.partition("_")[2], **entry)
        for folder in (FOLDER, CAPTURED_FOLDER, PIPELINE_FOLDER)
        for path in sorted(folder.glob("*.json"))
        for entry in json.loads(path.read_text(encoding="utf-8"))
    ]


def in_words(message: Any) -> Any:  # noqa: ANN401  a dataclass; whatever JSON has
    """Return a message's fields as JSON has them: bytes as hex, codes as numbers."""
    return json.loads(json.dumps(_fields_of(message), default=_in_hex))


def _fields_of(value: Any) -> Any:  # noqa: ANN401
    """Take dataclasses apart, as `asdict` does, which cannot copy a view."""
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: _fields_of(getattr(value, name)) for name in names}
    if isinstance(value, tuple):
        return [_fields_of(item) for item in value]
    return value


def _in_hex(value: bytes | memoryview) -> str:
    return value.hex()
