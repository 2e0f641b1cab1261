"""The bridge's file: TOML with a list of routes, checked whole before anything is opened.

    [[routes]]
    name = "orders"
    source = { uri = "amqp://guest:${PASSWORD}@old-broker/", queue = "orders" }
    target = { uri = "rabbitmq-stream://localhost", stream = "orders", create = {} }

A key decides what an end is: see Source and Target. `${NAME}` in a text is a variable of the
environment, `${file:PATH}` the content of a file. Such a user or password in a URI stands as it is:
it may have signs like `@` and `/`.
"""

import os
import re
import ssl
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, get_args
from urllib.parse import SplitResult, quote, unquote, urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails

from gateway.bridge.templates import Template
from gateway.command_line import did_you_mean

WINDOW: Final = 1_000
WINDOW_MAX: Final = 65_535
"""The largest prefetch of AMQP, and receive maximum of MQTT."""
PARTITIONS_MAX: Final = 1_000

_NAME: Final = r"^[A-Za-z0-9._-]{1,100}$"
_SECRET: Final = re.compile(r"\$\{(file:)?([^}]*)\}")
_PORTS: Final = {"amqp": 5672, "amqps": 5671, "mqtt": 1883, "mqtts": 8883}
_AMQP, _MQTT = ("amqp", "amqps"), ("mqtt", "mqtts")
_STREAM: Final = ("rabbitmq-stream", "rabbitmq-stream+tls")

Filled = Annotated[StrictStr, Field(min_length=1)]
Written = Annotated[Template, PlainValidator(lambda text: Template(str(text)))]
Offset = Annotated[StrictInt, Field(ge=0)]
Time = Annotated[datetime, Field(strict=True)]
Arguments = dict[str, StrictInt | StrictStr]


class WrongFile(ValueError):
    """A file that cannot be used; its text has a line for each mistake."""


def _has_tls(uri: str) -> bool:
    return uri.partition(":")[0].endswith(("s", "+tls"))


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class End(_Table):
    """An end of a route.

    Attributes:
        uri: With user, password and virtual host.
        tls_ca: Certificates to trust in place of the machine's own.
        tls_cert, tls_key: The client's own certificate, and its key.
    """

    schemes: ClassVar[tuple[str, ...]] = ()
    key: ClassVar[str] = ""
    uri: Annotated[StrictStr, Field(repr=False)]
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @field_validator("uri")
    @classmethod
    def _has_scheme(cls, uri: str) -> str:
        try:
            parts = urlsplit(uri)
            is_right = parts.scheme in cls.schemes and bool(parts.hostname) and parts.port != 0
        except ValueError:  # its text would show the password
            is_right = False
        if not is_right:
            wanted = " or ".join(f"{scheme}://HOST" for scheme in cls.schemes)
            raise ValueError(f"an end with `{cls.key}` has {wanted}")
        return uri

    @field_validator("tls_ca", "tls_cert", "tls_key")
    @classmethod
    def _is_there(cls, path: Path, info: ValidationInfo) -> Path:
        if not _has_tls(info.data.get("uri", "+tls:")):
            raise ValueError("the scheme of `uri` has no TLS")
        if not path.is_file():
            raise ValueError(f"there is no file {str(path)!r}")
        return path

    @property
    def parts(self) -> SplitResult:
        """The URI, taken apart."""
        return urlsplit(self.uri)

    @property
    def place(self) -> tuple[str, int]:
        """Host and port of an AMQP or MQTT broker."""
        return self.parts.hostname or "", self.parts.port or _PORTS[self.parts.scheme]

    @property
    def login(self) -> tuple[str | None, str | None]:
        """User and password."""
        user, password = self.parts.username, self.parts.password
        return user and unquote(user), password and unquote(password)

    @property
    def name(self) -> str:
        """Its name for people: `queue 'orders' at host:5672`."""
        named = getattr(self, self.key)
        named = named.text if isinstance(named, Template) else named
        at = self.parts.netloc.rpartition("@")[2]
        return f"{self.key.replace('_', ' ')} {named!r} at {at}"

    def tls(self) -> ssl.SSLContext | None:
        """Return the context of TLS; None if the URI's scheme has none. Raises OSError."""
        if not _has_tls(self.uri):
            return None
        context = ssl.create_default_context(cafile=self.tls_ca)
        if self.tls_cert is not None:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        return context


class QueueSource(End):
    """Messages of a queue."""

    schemes, key = _AMQP, "queue"
    queue: Filled


class ExchangeSource(End):
    """Messages of an exchange, by a durable queue of the route's own."""

    schemes, key = _AMQP, "exchange"
    exchange: Filled
    keys: Annotated[list[StrictStr], Field(min_length=1)] = ["#"]


class TopicsSource(End):
    """Messages of topics.

    Attributes:
        topics: With wildcards; `$share/GROUP/…` is a shared subscription.
        version: Of MQTT.
        session_expiry_s: How long the broker keeps the session while the bridge is away.
    """

    schemes, key = _MQTT, "topics"
    topics: Annotated[
        list[Filled],
        BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
        Field(min_length=1),
    ]
    qos: Literal[0, 1, 2] = 1
    version: Literal["5", "3.1.1"] = "5"
    session_expiry_s: Annotated[StrictInt, Field(ge=1, lt=1 << 32)] = 7 * 24 * 3600


class _FromStream(End):
    """Records of a stream or of several.

    Attributes:
        start: Where it begins if no place is stored under the route's name.
    """

    schemes = _STREAM
    start: Literal["first", "last", "next"] | Offset | Time = "first"


class StreamSource(_FromStream):
    """Records of a stream."""

    key = "stream"
    stream: Filled


class SuperStreamSource(_FromStream):
    """Records of all partitions of a super stream."""

    key = "super_stream"
    super_stream: Filled


class StreamTarget(End):
    """A stream; made if it is missing and `create` has its arguments."""

    schemes, key = _STREAM, "stream"
    stream: Filled
    create: Arguments | None = None


class SuperStreamTarget(End):
    """A super stream, whose partitions are chosen by the hash of a text."""

    schemes, key = _STREAM, "super_stream"
    super_stream: Filled
    partition_by: Written = Template("{routing_key}")
    partitions: Annotated[StrictInt, Field(ge=1, le=PARTITIONS_MAX)] = 3
    create: Arguments | None = None


class ExchangeTarget(End):
    """An exchange; a message that no queue takes is refused."""

    schemes, key = _AMQP, "exchange"
    exchange: Filled
    routing_key: Written = Template("{routing_key}")


class QueueTarget(End):
    """A queue."""

    schemes, key = _AMQP, "queue"
    queue: Filled


class TopicTarget(End):
    """A topic."""

    schemes, key = _MQTT, "topic"
    topic: Written
    qos: Literal[0, 1, 2] = 1
    retain: StrictBool = False
    version: Literal["5", "3.1.1"] = "5"


Source = QueueSource | ExchangeSource | TopicsSource | StreamSource | SuperStreamSource
Target = StreamTarget | SuperStreamTarget | ExchangeTarget | QueueTarget | TopicTarget


class Route(_Table):
    """A way from a source to a target.

    Attributes:
        window: Messages under way.
        refused: What becomes of a message that the target refuses: `stop`, `skip`, or the stream
            that takes it.
    """

    name: Annotated[StrictStr, Field(pattern=_NAME)]
    source: Source
    target: Target
    window: Annotated[StrictInt, Field(ge=1, le=WINDOW_MAX)] = WINDOW
    refused: Literal["stop", "skip"] | StreamTarget = "stop"

    @property
    def owned(self) -> str:
        """Name of the route's traces at a broker: a queue, a session, a stored place."""
        return f"hutch-bridge-{self.name}"


def load(path: Path, environment: Mapping[str, str] = os.environ) -> tuple[Route, ...]:
    """Return the routes of a file. Raises WrongFile with all mistakes."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongFile(f"{path}: {reason}") from None
    mistakes: list[str] = []
    tables = document.pop("routes", None)
    mistakes += [f"{key}: there is no such key{did_you_mean(key, ['routes'])}" for key in document]
    if not isinstance(tables, list) or not tables:
        mistakes.append("there is no route: each begins with a line [[routes]]")
        tables = []
    routes: list[Route | None] = []
    names: list[object] = []
    for number, table in enumerate(tables, 1):
        found: dict[str, str] = {}
        filled = _filled(table, environment, "", found)
        routes.append(_route(filled, found))
        written, name = (
            each.get("name", number) if isinstance(each, dict) else number
            for each in (table, filled)
        )
        if name in names:
            found["name"] = "there is another route of this name"
        names.append(name)
        mistakes += [f"route {written!r}: {key}: {words}" for key, words in found.items()]
    if mistakes:
        raise WrongFile("\n".join(f"{path}: {mistake}" for mistake in mistakes))
    return tuple(filter(None, routes))


def _filled(
    value: object, environment: Mapping[str, str], at: str, found: dict[str, str]
) -> object:
    """Return a value with the secrets that its texts name."""
    if isinstance(value, dict):
        places = {key: f"{at}.{key}".lstrip(".") for key in value}
        return {key: _filled(value[key], environment, places[key], found) for key in value}
    if isinstance(value, list):
        return [_filled(each, environment, at, found) for each in value]
    if not isinstance(value, str):
        return value

    def secret(named: re.Match[str]) -> str:
        try:
            text = Path(named[2]).read_text("utf-8") if named[1] else environment[named[2]]
        except KeyError:
            found[at] = f"the environment has no {named[2]!r}"
        except (OSError, ValueError):
            found[at] = f"the file {named[2]!r} cannot be read"
        else:
            is_login = at.endswith("uri") and "@" in value[named.end() :]
            return quote(text.rstrip("\n"), safe="") if is_login else text.rstrip("\n")
        return named[0]

    return _SECRET.sub(secret, value)


def _route(table: object, found: dict[str, str]) -> Route | None:
    if not isinstance(table, dict):
        found["routes"] = "this is no table"
        return None
    given = dict(table)
    for key, kinds in (("source", get_args(Source)), ("target", get_args(Target))):
        given[key] = _end(given.get(key), kinds, key, found)
    if given.get("refused", "stop") not in ("stop", "skip"):
        given["refused"] = _end(given["refused"], (StreamTarget,), "refused", found)
    try:
        return Route.model_validate(given)
    except ValidationError as error:
        wrong = [one for one in error.errors() if given.get(str(one["loc"][0]), "") is not None]
        _note(wrong, Route, "", found)
        return None


def _end(table: object, kinds: Sequence[type[End]], at: str, found: dict[str, str]) -> End | None:
    keys = [kind.key for kind in kinds]
    if not isinstance(table, dict):
        words = f"this is a table with `uri` and one of {', '.join(keys)}"
        if at == "refused":
            words = 'this is "stop", "skip", or a table with `uri` and `stream`'
            words += did_you_mean(str(table), ("stop", "skip"))
        found[at] = words
        return None
    given = [kind for kind in kinds if kind.key in table]
    if len(given) != 1:
        meant = "" if given else "".join(did_you_mean(key, keys) for key in table)
        found[at] = f"it needs one of {', '.join(keys)}, and has {len(given)}{meant}"
        return None
    try:
        return given[0].model_validate(table)
    except ValidationError as error:
        _note(error.errors(), given[0], f"{at}.", found)
        return None


def _note(
    errors: Sequence[ErrorDetails], model: type[BaseModel], at: str, found: dict[str, str]
) -> None:
    """Note the errors of a table, one for each key; none shows the value, which may be a secret."""
    known = set(found)
    for error in errors:
        key = at + ".".join(map(str, error["loc"][: 2 if error["loc"][0] == "create" else 1]))
        words = error["msg"].removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            words = (
                f"there is no such key{did_you_mean(key.rpartition('.')[2], model.model_fields)}"
            )
        words = f"{words[0].lower()}{words[1:]}"
        if key not in found:
            found[key] = words
        elif key not in known and words not in found[key]:  # of a value that has several kinds
            found[key] += f", or {words.removeprefix('input should be ')}"
