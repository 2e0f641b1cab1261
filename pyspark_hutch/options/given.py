"""The options of one read or write: each checked by its row of the table, and looked up by name."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyspark_hutch.options.connection_settings import CLIENT_PROPERTIES_MAX, OWN_PROPERTIES
from pyspark_hutch.options.errors import SHOWN_CHARACTERS_MAX, Unfit, WrongOption, shown
from pyspark_hutch.options.kinds import NAME_BYTES_MAX, checked_text
from pyspark_hutch.options.option import READ, WRITE, Option, Use, filled
from pyspark_hutch.options.table import CLIENT_PREFIX, OPTIONS, is_sparks_own, nearest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_SECRET_WORDS: Final = ("pass", "pwd", "secret", "token", "credential", "key")
_NOT_SHOWN: Final = "(not shown)"

Value = TypeVar("Value")


class Given:
    """Options that were given, with the defaults of those that were not.

    Attributes:
        use: Their purpose.
        client_properties: Properties of the connection, which go to the server.
        problems: Faults that were found since; `settle` raises them.
    """

    def __init__(self, options: Mapping[str, str], use: Use) -> None:
        """Check names and values.

        Raises:
            WrongOption: Names or values are wrong; all of them.
        """
        self.use = use
        self.problems: list[str] = []
        self.client_properties: tuple[tuple[str, str], ...] = ()
        self._texts = {name.lower(): str(text) for name, text in options.items()}
        self._values: dict[str, object] = {
            name: _parsed(option, option.default)
            for name, option in OPTIONS.items()
            if option.default is not None
        }
        for name in self._texts:
            self._judge_name(name)
        for name, option in OPTIONS.items():  # in the order of the table, not of the caller
            if name in self._texts:
                self._judge(option)
        self._take_client_properties()
        self.settle()

    def _judge_name(self, name: str) -> None:
        if name in OPTIONS or name.startswith(CLIENT_PREFIX) or is_sparks_own(name):
            return
        near = nearest(name)
        advice = "the page of options lists all" if near is None else f"the nearest is {near}"
        self.problems.append(
            f"option {_name_and_value(name, self._texts[name], near)} is unknown: {advice}"
        )

    def _judge(self, option: Option) -> None:
        name = option.name.lower()
        if option.kind is None:
            self.problems.append(f"option {self.shown(option.name)} is refused: {option.meaning}")
        elif option.uses & _direction(self.use) and self.use not in option.uses:
            self.refuse(option.name, f"is for {option.uses}, and this is {self.use}")
        else:
            try:
                self._values[name] = _parsed(option, self._texts[name])
            except Unfit as error:
                self.refuse(option.name, str(error) or f"takes {option.kind.takes}")

    def _take_client_properties(self) -> None:
        found: dict[str, str] = {}
        for name, text in self._texts.items():
            if name.startswith(CLIENT_PREFIX):
                key = name.removeprefix(CLIENT_PREFIX)
                reason = _unfit_property(key, text)
                if reason is None:
                    found[key] = text
                else:
                    self.problems.append(f"option {_name_and_value(name, text)}: {reason}")
        if len(found) > CLIENT_PROPERTIES_MAX:
            self.problems.append(f"options client.*: takes at most {CLIENT_PROPERTIES_MAX} of them")
        self.client_properties = tuple(sorted(found.items()))

    def has(self, name: str) -> bool:
        """Return whether an option was given, rather than left to its default."""
        return _row(name).name.lower() in self._texts

    def given(self, *names: str) -> list[str]:
        """Return those of some options that were given."""
        return [name for name in names if self.has(name)]

    def value(self, name: str, wanted: type[Value]) -> Value | None:
        """Return the value of an option, or of its default; None if it has neither."""
        value = self._values.get(_row(name).name.lower())
        assert value is None or isinstance(value, wanted), (name, wanted)
        return value

    def certain(self, name: str, wanted: type[Value]) -> Value:
        """Return the value of an option that has a default."""
        value = self.value(name, wanted)
        assert value is not None, name
        return value

    def fields(self, settings: "type[DataclassInstance]") -> dict[str, Any]:
        """Return the fields of settings that hold the value of an option, without missing ones."""
        found = ((field, self._values.get(row.name.lower())) for field, row in filled(settings))
        return {field: value for field, value in found if value is not None}

    def is_on(self, name: str) -> bool:
        """Return whether an option is true."""
        return bool(self.value(name, bool))

    def shown(self, name: str) -> str:
        """Return an option and its value as an error shows them."""
        text = self._texts.get(name.lower(), _row(name).default)
        return name if text is None else _name_and_value(name, text, name)

    def refuse(self, name: str, reason: str) -> None:
        """Note that an option has a wrong value."""
        self.problems.append(f"option {self.shown(name)}: {reason}")

    def clash(self, names: Iterable[str], reason: str) -> None:
        """Note that options contradict each other."""
        listed = " and ".join(self.shown(name) for name in names)
        self.problems.append(f"options {listed} contradict each other: {reason}")

    def need(self, name: str, other: str) -> None:
        """Note that an option does nothing without another, which stands as a user writes it."""
        self.problems.append(f"option {self.shown(name)} needs {other}")

    def settle(self) -> None:
        """Raise all problems that were found.

        Raises:
            WrongOption: There was something.
        """
        if self.problems:
            raise WrongOption(*self.problems)


def unused(options: Mapping[str, str], use: Use) -> tuple[str, ...]:
    """Return the options that do nothing here, being for writes in a read or for reads in a write.

    They are no error, since a view has one set of options for both.
    """
    return tuple(
        option.name
        for name, option in OPTIONS.items()
        if not option.uses & _direction(use) and name in {given.lower() for given in options}
    )


def _direction(use: Use) -> Use:
    return READ if use in READ else WRITE


def _row(name: str) -> Option:
    option = OPTIONS[name.lower()]
    assert option.name == name, (option.name, name)
    return option


def _parsed(option: Option, text: str) -> object:
    assert option.kind is not None, option.name
    return option.kind.parse(text if option.name == "password" else text.strip())


def _name_and_value(name: str, text: str, nearest_name: str | None = None) -> str:
    """Return `name='value'`, without the value if it may hold a password.

    Args:
        name: The option.
        text: Its value.
        nearest_name: The option that was most likely meant.
    """
    option = None if nearest_name is None else OPTIONS[nearest_name.lower()]
    hidden = option is not None and option.hidden
    if option is None or option.name != name:
        hidden = hidden or any(word in name.lower() for word in _SECRET_WORDS)
    if not name.isprintable() or len(name) > SHOWN_CHARACTERS_MAX:
        name = shown(name)
    return f"{name} {_NOT_SHOWN}" if hidden or "@" in text else f"{name}={shown(text)}"


def _unfit_property(key: str, text: str) -> str | None:
    if key in OWN_PROPERTIES:
        return "every connection sets this itself"
    try:
        checked_text(key, NAME_BYTES_MAX)
        checked_text(text, NAME_BYTES_MAX)
    except Unfit:
        return f"takes a name and a value of 1 to {NAME_BYTES_MAX} bytes"
    return None
