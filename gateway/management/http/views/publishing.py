"""Messages that are published over HTTP."""

import base64
import binascii
from dataclasses import fields
from http import HTTPStatus
from typing import Any, Final

from gateway.management.errors import WrongRequest
from gateway.management.fields import demand_values
from gateway.management.http.answers import ApiRefusal, value_answer
from gateway.management.http.bodies import QUICK_BYTES_MAX
from gateway.management.http.call import Answer, ApiCall
from gateway.management.http.paths import DEFAULT_EXCHANGE_NAME
from gateway.management.requests import publishing as requests
from gateway.management.requests.publishing import KEYS_MAX
from hutch.formats.amqp.writing import (
    BLIND_COPIES,
    COPIES,
    BasicProperties,
    Unpackable,
    pack_message,
)

HEADERS_MAX: Final = 10_000
"""Headers of one message; a body of 2 MiB has room for 200,000, which take 0.1 s to sort."""
_FILTER_HEADER: Final = "x-stream-filter-value"
_EXPIRATION_DIGITS_MAX: Final = 11
_HINTS: Final = {each.name: each.type for each in fields(BasicProperties)}
_NUMBER_AS_TEXT: Final = "expiration"
_TEXTS: Final = [name for name, hint in _HINTS.items() if hint == str | None]
_NUMBERS: Final = [
    name for name, hint in _HINTS.items() if hint == int | None and name != _NUMBER_AS_TEXT
]


async def publish(call: ApiCall) -> Answer:
    """Publish one message to an exchange."""
    host, exchange = call.host(), call.path["exchange"]
    call.demand("routing_key", "properties", "payload", "payload_encoding")
    if exchange == DEFAULT_EXCHANGE_NAME:
        exchange = ""
    if exchange not in host.exchanges:
        raise ApiRefusal(HTTPStatus.NOT_FOUND, "not_found", "exchange_not_found")
    routing_key, properties = call.text("routing_key"), call.mapping("properties")
    headers = _headers(properties)
    copies = _copies(headers)
    payload, taken = _payload(call), _properties(call, properties)

    def pack() -> bytes:
        demand_values(headers)
        return pack_message(payload, taken, exchange=exchange, routing_key=routing_key)

    try:
        message = pack() if len(call.raw_body) <= QUICK_BYTES_MAX else await call.in_thread(pack)
    except Unpackable as error:
        raise WrongRequest(str(error)) from None
    given = {
        "virtual_host": host.name,
        "exchange": exchange,
        "routing_keys": [routing_key, *copies],
    }
    value = headers.get(_FILTER_HEADER)
    if value is not None:
        given["filter_value"] = value
    return value_answer(await call.ask(requests.publish, message, **given))


def _copies(headers: dict[str, Any]) -> list[str]:
    """Return the routing keys that two headers name beside the message's own."""
    keys: list[str] = []
    for name in (COPIES, BLIND_COPIES):
        named = headers.get(name, [])
        if not isinstance(named, list):
            raise WrongRequest(f"invalid message: header {name} is no list of routing keys")
        keys += [key for key in named if isinstance(key, str)]
    if len(keys) >= KEYS_MAX:  # beside the message's own
        raise WrongRequest(f"a message has {KEYS_MAX} routing keys at most")
    return keys


def _payload(call: ApiCall) -> bytes:
    text, encoding = call.text("payload"), call.text("payload_encoding")
    if encoding == "string":
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise WrongRequest("the payload is not Unicode text") from None
    if encoding != "base64":
        raise WrongRequest(f"unsupported_encoding {encoding!r}"[:200])
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise WrongRequest("not_base64") from None


def _properties(call: ApiCall, given: dict[str, Any]) -> BasicProperties:
    taken: dict[str, Any] = {"headers": _headers(given)}
    for names, kind, wrong in ((_TEXTS, str, "not_string"), (_NUMBERS, int, "not_int")):
        for name in names:
            if name in given and type(given[name]) is not kind:
                raise WrongRequest(f"{wrong} {name}")
            taken[name] = given.get(name)
    if given.get("user_id", call.actor.name) != call.actor.name:
        raise WrongRequest("user_id is not the user who publishes")
    if _NUMBER_AS_TEXT in given:
        taken[_NUMBER_AS_TEXT] = _expiration(given[_NUMBER_AS_TEXT])
    return BasicProperties(**taken)


def _headers(given: dict[str, Any]) -> dict[str, Any]:
    headers = given.get("headers", {})
    if headers == []:
        return {}
    if not isinstance(headers, dict):
        raise WrongRequest("headers are not an object")
    if len(headers) > HEADERS_MAX:
        raise WrongRequest(f"a message has {HEADERS_MAX} headers at most")
    if not isinstance(headers.get(_FILTER_HEADER, ""), str):
        raise WrongRequest(f"{_FILTER_HEADER} is not text")
    return headers


def _expiration(given: object) -> int:
    if not isinstance(given, str):
        raise WrongRequest("not_string expiration")
    if not (given.isascii() and given.isdecimal() and len(given) <= _EXPIRATION_DIGITS_MAX):
        raise WrongRequest("invalid expiration: it is no number of milliseconds")
    return int(given)
