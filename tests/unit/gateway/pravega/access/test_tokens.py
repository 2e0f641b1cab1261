"""Tokens of the wire protocol."""

import base64
import hashlib
import hmac
import json

import pytest

from gateway.broker.access.model import Right
from gateway.pravega.access.tokens import (
    READ,
    READ_UPDATE,
    TokenExpired,
    TokenRefused,
    Tokens,
    resource_of,
    words_of,
)

KEY = b"k" * 64
NOW_MS = 1_700_000_000_000
TOKENS = Tokens(KEY)


def signed(header: dict[str, object], claims: dict[str, object], key: bytes = KEY) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=")
        for each in (header, claims)
    ]
    body = b".".join(parts)
    signature = hmac.digest(key, body, hashlib.sha512)
    return (body + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


def test_a_token_gives_the_rights_that_it_was_made_with() -> None:
    rights = {resource_of("s", "t"): READ, resource_of("u"): READ_UPDATE}
    claims = TOKENS.check(TOKENS.mint(rights, now_ms=NOW_MS), NOW_MS)
    assert claims.rights_to(("s", "t")) == {Right.READ}
    assert claims.rights_to(("s", "other")) == set()
    assert claims.rights_to(("u", "any")) == set(Right)
    assert claims.rights_to(()) == set()


def test_a_token_of_a_user_gives_the_rights_that_it_names_and_no_others() -> None:
    for rights in ((), (Right.WRITE,), (Right.CONFIGURE, Right.READ), Right):
        token = TOKENS.mint({resource_of("s", "t"): words_of(rights)}, now_ms=NOW_MS)
        assert TOKENS.check(token, NOW_MS).rights_to(("s", "t")) == set(rights)


@pytest.mark.parametrize("value", ["", "ALL", "WRITE", "writer", 2, ["write"], None])
def test_a_claim_in_other_words_gives_nothing(value: object) -> None:
    token = signed({"alg": "HS512"}, {"*": value})
    assert TOKENS.check(token, NOW_MS).rights_to(("s", "t")) == set()


def test_a_token_expires() -> None:
    token = TOKENS.mint({"*": READ}, now_ms=NOW_MS, lifetime_ms=2_000)
    assert TOKENS.check(token, NOW_MS + 1_999).rights_to(("s", "t")) == {Right.READ}
    with pytest.raises(TokenExpired):
        TOKENS.check(token, NOW_MS + 2_000)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b.c",
        "é",
        Tokens(b"another").mint({"*": READ}, now_ms=NOW_MS),
        signed({"alg": "none"}, {"*": "READ"}),
        signed({"alg": "HS256"}, {"*": "READ"}),
        signed({"alg": "HS512", "crit": ["x"]}, {"*": "READ"}),
        signed({"alg": "HS512"}, {"*": "READ", "aud": "others"}),
        signed({"alg": "HS512"}, {"*": "READ", "nbf": NOW_MS // 1000 + 1}),
        signed({"alg": "HS512"}, {"*": "READ", "exp": "soon"}),
    ],
)
def test_what_is_no_token_of_this_key_is_refused(token: str) -> None:
    with pytest.raises(TokenRefused):
        TOKENS.check(token, NOW_MS)


def test_a_token_of_a_user_is_valid_while_the_user_is_what_it_was() -> None:
    standings: dict[str, bytes] = {"app": b"one", "other": b"one"}
    tokens = Tokens(KEY, standings.get)
    token = tokens.mint({"*": READ}, now_ms=NOW_MS, user="app")
    assert tokens.check(token, NOW_MS).user == "app"
    standings["other"] = b"two"
    assert tokens.check(token, NOW_MS).rights_to(("s", "t")) == {Right.READ}

    standings["app"] = b"two"
    with pytest.raises(TokenExpired, match="another password or other rights"):
        tokens.check(token, NOW_MS)
    del standings["app"]
    with pytest.raises(TokenRefused, match="does not exist"):
        tokens.check(token, NOW_MS)
    assert Tokens(KEY).check(Tokens(KEY).mint({}, now_ms=0), NOW_MS).user is None


def test_no_standing_can_be_learned_from_a_token() -> None:
    token = Tokens(KEY, lambda _user: b"standing").mint({}, now_ms=NOW_MS, user="app")
    other = Tokens(b"o" * 64, lambda _user: b"standing").mint({}, now_ms=NOW_MS, user="app")
    assert token.split(".")[1] != other.split(".")[1]


@pytest.mark.parametrize("own", [None, 1, "app", [], {}, {"user": "app"}, {"seal": ""}])
def test_a_claim_of_a_user_that_is_not_whole_is_refused(own: object) -> None:
    with pytest.raises(TokenRefused, match="no JWT"):
        TOKENS.check(signed({"alg": "HS512"}, {"*": "READ", "hutch": own}), NOW_MS)


def test_a_token_cut_anywhere_is_refused() -> None:
    token = TOKENS.mint({"*": READ_UPDATE}, now_ms=NOW_MS)
    for size in range(len(token)):
        with pytest.raises(TokenRefused):
            TOKENS.check(token[:size], NOW_MS)
