import pytest

from gateway.broker.access.model import NAME_BYTES_MAX, Permissions, Right, User, UserPermission
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.broker.errors import UnusableValue


@pytest.mark.parametrize("algorithm", [*Algorithm, None])
def test_a_user_is_read_as_it_was_written(algorithm: Algorithm | None) -> None:
    hashed = None if algorithm is None else PasswordHash.of("pä", algorithm)
    user = User("ünï", hashed, ("a", "b"), {"max-connections": 1}, loopback_only=True, mark="1f")

    read = User.unpack(user.pack())

    assert read == user
    assert read.mark == "1f"


def test_a_permission_is_read_as_it_was_written() -> None:
    permission = UserPermission(user="ünï", virtual_host="/é", configure="^a", write="", read="b|c")

    read = UserPermission.unpack(permission.pack())

    assert read == permission
    assert read.allows(Right.READ, "c")


def test_no_pattern_allows_nothing_that_has_a_name() -> None:
    nothing = UserPermission(user="u", virtual_host="/", configure="", write="", read="")

    for right in Right:
        assert not nothing.allows(right, "a")
        assert nothing.allows(right, "")


@pytest.mark.parametrize("field", ["configure", "write", "read"])
def test_a_pattern_that_cannot_be_used_is_named(field: str) -> None:
    patterns = {"configure": "", "write": "", "read": ""} | {field: "(?=a"}

    with pytest.raises(UnusableValue, match=f"pattern to {field} .*cannot be used"):
        UserPermission(user="u", virtual_host="/", **patterns)


@pytest.mark.parametrize("name", ["", "a" * (NAME_BYTES_MAX + 1), "é" * 128, "a\0b", "\udcff"])
def test_names_that_nobody_can_have(name: str) -> None:
    with pytest.raises(UnusableValue, match="name of a user"):
        User(name, None)


def test_a_hash_is_not_shown() -> None:
    hashed = PasswordHash.of("x")

    assert hashed.text not in repr(User("u", hashed))


def permission(user: str, virtual_host: str = "/", write: str = "") -> UserPermission:
    return UserPermission(user=user, virtual_host=virtual_host, configure="", write=write, read="")


def test_permissions_are_found_by_user_and_virtual_host_replaced_and_removed() -> None:
    permissions = Permissions()
    permissions.put([permission("a"), permission("a", "v"), permission("b", write="x")])
    permissions.put([permission("b", write="y")])

    assert permissions.of("a") == {"/": permission("a"), "v": permission("a", "v")}
    assert permissions.find("b", "/") == permission("b", write="y")
    assert permissions.find("b", "v") is permissions.find("c", "/") is None
    assert len(list(permissions)) == 3

    permissions.remove([("a", "/"), ("b", "/")])
    assert list(permissions) == [permission("a", "v")]
    assert permissions.of("b") == permissions.of("c") == {}
