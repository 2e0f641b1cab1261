import base64
import hashlib

import pytest

from gateway.broker.access.passwords import Algorithm, PasswordHash, UnusableHash, decoy

# A hash in RabbitMQ's documentation: salt 908DC60A, password test12.
DOCUMENTED = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"


def vector(name: str, password: str) -> str:
    salt = bytes.fromhex("908dc60a")
    digest = hashlib.new(name, salt + password.encode()).digest()
    return base64.b64encode(salt + digest).decode()


def test_the_documented_hash_matches_its_password_only() -> None:
    documented = PasswordHash.parse(DOCUMENTED, Algorithm.SHA256)

    assert documented.matches(b"test12")
    assert not documented.matches(b"test13")
    assert not documented.matches(b"")


@pytest.mark.parametrize(
    ("text", "algorithm", "password"),
    [
        (DOCUMENTED, Algorithm.SHA256, "test12"),
        ("27cx5+wEi8R8uwTeTr3hk5azuV3yYxxAtwPPhCyrbdsxVhqq", Algorithm.SHA256, "foobarbaz"),
        # Made by hand: salt 908DC60A and the digest of the other two ways.
        (vector("sha512", "test12"), Algorithm.SHA512, "test12"),
        (vector("md5", "test12"), Algorithm.MD5, "test12"),
        (vector("sha256", "pä\u20acßwörd"), Algorithm.SHA256, "pä\u20acßwörd"),
    ],
)
@pytest.mark.parametrize("is_named", [True, False])
def test_hashes_of_rabbitmq_are_taken_as_they_are(
    text: str, algorithm: Algorithm, password: str, *, is_named: bool
) -> None:
    read = PasswordHash.parse(text, algorithm if is_named else None)

    assert read.algorithm is algorithm
    assert str(read) == text
    assert read.matches(password.encode())
    for wrong in (password.upper(), password + " ", password[:-1], ""):
        assert not read.matches(wrong.encode())


def test_argon2id_is_as_slow_as_it_says_and_no_slower_than_it_may_be() -> None:
    text = str(PasswordHash.of("secret", Algorithm.ARGON2ID))
    assert text.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert PasswordHash.parse(text).matches(b"secret")

    most = "m=65536,t=3,p=4"  # RFC 9106, where memory is scarce
    assert PasswordHash.parse(text.replace("m=19456,t=2,p=1", most)).text.count(most) == 1
    for asked in ("m=65536,t=3,p=5", "m=65537,t=3,p=4", "m=65536,t=4,p=4", "m=262144,t=16,p=1"):
        with pytest.raises(UnusableHash, match="asks for"):
            PasswordHash.parse(text.replace("m=19456,t=2,p=1", asked))
    for wrong in (text.replace("argon2id", "argon2i"), "$2b$12$abc", "$argon2id$", "$"):
        with pytest.raises(UnusableHash):
            PasswordHash.parse(wrong)
    with pytest.raises(UnusableHash, match="sha256"):
        PasswordHash.parse(text, Algorithm.SHA256)


def test_no_password_is_that_of_a_decoy() -> None:
    fake = decoy()

    assert PasswordHash.parse(fake.text).algorithm is Algorithm.ARGON2ID
    assert not fake.matches(b"")
    assert fake != decoy()


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
