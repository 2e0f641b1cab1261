"""Refused logins cost the same whatever is wrong; `make password-times` measures their times."""

import json
from pathlib import Path
from typing import Literal

import argon2
import pytest

from gateway.broker.access import passwords
from gateway.broker.access.password_check import compare
from tests.property.gateway.password_times import HASHES, main


class Noting(argon2.PasswordHasher):
    """The real hasher; it notes the parameters of each check."""

    def __init__(self) -> None:
        super().__init__()
        self.checked: list[argon2.Parameters] = []

    def verify(self, text: str | bytes, password: str | bytes) -> Literal[True]:
        self.checked.append(argon2.extract_parameters(str(text)))
        return super().verify(text, password)


@pytest.mark.parametrize("kind", HASHES)
def test_each_refused_login_costs_one_argon2id_of_the_same_size(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = passwords.PasswordHash.of("x", passwords.Algorithm.ARGON2ID)
    hasher = Noting()
    monkeypatch.setattr(passwords, "_ARGON2", hasher)

    assert not compare(HASHES[kind], b"wrong")

    assert hasher.checked == [argon2.extract_parameters(new.text)]


def test_a_run_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    state = tmp_path / "times.json"
    for tries in (1, 2):
        main(["--tries", str(tries), "--state", str(state)])
        assert {len(taken) for taken in json.loads(state.read_text()).values()} == {tries}
