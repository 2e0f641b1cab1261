import base64
import hashlib

import pytest

from gateway.broker.access.passwords import Algorithm, PasswordHash, UnusableHash

# A hash in RabbitMQ's documentation: salt 908DC60A, password test12.
DOCUMENTED = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"


def test_the_documented_hash_matches_its_password_only() -> None:
    documented = PasswordHash.parse(DOCUMENTED, Algorithm.SHA256)

    assert documented.matches(b"test12")
    assert not documented.matches(b"test13")
    assert not documented.matches(b"")


@pytest.mark.parametrize("algorithm", Algorithm)
def test_a_new_hash_is_read_back_and_matches(algorithm: Algorithm) -> None:
    text = str(PasswordHash.of("pässword", algorithm))

    read = PasswordHash.parse(text)

    assert read.algorithm is algorithm
    assert read.matches("pässword".encode())
    assert not read.matches(b"password")


@pytest.mark.parametrize(
    ("algorithm", "name"),
    [(Algorithm.SHA256, "sha256"), (Algorithm.SHA512, "sha512"), (Algorithm.MD5, "md5")],
)
def test_a_hash_is_the_salt_and_the_digest_of_salt_and_password(
    algorithm: Algorithm, name: str
) -> None:
    content = base64.b64decode(str(PasswordHash.of("secret", algorithm)))

    assert content[4:] == hashlib.new(name, content[:4] + b"secret").digest()


def test_the_same_password_is_salted_anew_each_time() -> None:
    assert PasswordHash.of("secret").text != PasswordHash.of("secret").text


@pytest.mark.parametrize("text", ["no base64!", "kI3GCg=", "kI3GCqW5JLMJa4iX\n====", "ü"])
def test_what_is_not_base64_is_no_hash(text: str) -> None:
    with pytest.raises(UnusableHash, match="base64"):
        PasswordHash.parse(text)


def test_a_hash_of_no_algorithms_size_is_no_hash() -> None:
    with pytest.raises(UnusableHash, match="has 30 bytes"):
        PasswordHash.parse(base64.b64encode(bytes(30)).decode())


def test_a_hash_of_another_size_than_its_algorithms_is_no_hash() -> None:
    with pytest.raises(UnusableHash, match="rabbit_password_hashing_md5"):
        PasswordHash.parse(DOCUMENTED, Algorithm.MD5)
