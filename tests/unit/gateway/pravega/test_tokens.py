"""Tokens of the wire protocol."""

import base64
import hashlib
import hmac
import json

import pytest

from gateway.pravega.tokens import Right, TokenExpired, TokenRefused, Tokens, resource_of

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
    rights = {resource_of("s", "t"): Right.READ, resource_of("u"): Right.READ_UPDATE}
    claims = TOKENS.check(TOKENS.mint(rights, now_ms=NOW_MS), NOW_MS)
    assert claims.right_to(("s", "t")) is Right.READ
    assert claims.right_to(("s", "other")) is Right.NONE
    assert claims.right_to(("u", "any")) is Right.READ_UPDATE
    assert claims.right_to(()) is Right.NONE


def test_a_token_expires() -> None:
    token = TOKENS.mint({"*": Right.READ}, now_ms=NOW_MS, lifetime_ms=2_000)
    assert TOKENS.check(token, NOW_MS + 1_999).right_to(("s", "t")) is Right.READ
    with pytest.raises(TokenExpired):
        TOKENS.check(token, NOW_MS + 2_000)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b.c",
        "é",
        Tokens(b"another").mint({"*": Right.READ}, now_ms=NOW_MS),
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


def test_a_token_cut_anywhere_is_refused() -> None:
    token = TOKENS.mint({"*": Right.READ_UPDATE}, now_ms=NOW_MS)
    for size in range(len(token)):
        with pytest.raises(TokenRefused):
            TOKENS.check(token[:size], NOW_MS)
