"""Routing: the streams of a routing key, for each type of exchange; no table, no store.

A direct or fanout look-up costs only the streams found. A topic exchange's patterns are a tree of
words. It is walked once, with the set of all places reached so far, so that no pattern makes a key
expensive.

Source: AMQP 0-9-1, 3.1.3 Exchange Types; RabbitMQ's rules for empty words and keys.
"""

from typing import Final, Protocol

_ANY_WORD: Final = "*"
_ANY_WORDS: Final = "#"

Counts = dict[str, int]
"""Streams, in the order in which they were bound, and the number of bindings to each."""


class Routes(Protocol):
    """The bindings of one exchange, arranged for look-ups."""

    def add(self, key: str, stream: str) -> None:
        """Bind a key, or pattern, to a stream."""
        ...

    def remove(self, key: str, stream: str) -> None:
        """Undo one `add`."""
        ...

    def match(self, key: str) -> list[str]:
        """Return the streams that a routing key leads to, each once."""
        ...


def _add(counts: Counts, stream: str) -> None:
    counts[stream] = counts.get(stream, 0) + 1


def _remove(counts: Counts, stream: str) -> None:
    counts[stream] -= 1
    if not counts[stream]:
        del counts[stream]


class DirectRoutes:
    """Direct exchange: a key leads to the streams that are bound with that key."""

    def __init__(self) -> None:
        self._streams: dict[str, Counts] = {}

    def add(self, key: str, stream: str) -> None:
        _add(self._streams.setdefault(key, {}), stream)

    def remove(self, key: str, stream: str) -> None:
        _remove(self._streams[key], stream)
        if not self._streams[key]:
            del self._streams[key]

    def match(self, key: str) -> list[str]:
        return list(self._streams.get(key, ()))


class FanoutRoutes:
    """Fanout exchange: every key leads to all bound streams."""

    def __init__(self) -> None:
        self._streams: Counts = {}

    def add(self, key: str, stream: str) -> None:
        del key
        _add(self._streams, stream)

    def remove(self, key: str, stream: str) -> None:
        del key
        _remove(self._streams, stream)

    def match(self, key: str) -> list[str]:
        del key
        return list(self._streams)


class NoRoutes:
    """Headers exchange: it matches headers, and a key has none, so nothing can be bound."""

    def add(self, key: str, stream: str) -> None:
        raise AssertionError(key, stream)

    def remove(self, key: str, stream: str) -> None:
        raise AssertionError(key, stream)

    def match(self, key: str) -> list[str]:
        del key
        return []


class _Place:
    """A place in the tree of patterns: the words that follow, and the streams that end here."""

    __slots__ = ("is_any_words", "next", "streams")

    def __init__(self, *, is_any_words: bool = False) -> None:
        self.is_any_words = is_any_words
        self.next: dict[str, _Place] = {}
        self.streams: Counts = {}


class TopicRoutes:
    """Topic exchange: patterns of words with dots between; `*` is one word, `#` any number."""

    def __init__(self) -> None:
        self._root = _Place()

    def add(self, key: str, stream: str) -> None:
        place = self._root
        for word in _words(key):
            if word not in place.next:
                place.next[word] = _Place(is_any_words=word == _ANY_WORDS)
            place = place.next[word]
        _add(place.streams, stream)

    def remove(self, key: str, stream: str) -> None:
        words = _words(key)
        way = [self._root]
        for word in words:
            way.append(way[-1].next[word])
        _remove(way[-1].streams, stream)
        for word in reversed(words):
            place = way.pop()
            if place.next or place.streams:
                return
            del way[-1].next[word]

    def match(self, key: str) -> list[str]:
        reached = _with_no_words([self._root])
        for word in _words(key):
            reached = _with_no_words(
                [each for place in reached for each in _after_word(place, word)]
            )
        return list(dict.fromkeys(stream for place in reached for stream in place.streams))


def _words(key: str) -> list[str]:
    return key.split(".") if key else []


def _after_word(place: _Place, word: str) -> list[_Place]:
    ways = [place.next[each] for each in (word, _ANY_WORD) if each in place.next]
    return [place, *ways] if place.is_any_words else ways


def _with_no_words(places: list[_Place]) -> list[_Place]:
    """Add the places that are reached by a `#` that stands for no word; each place once."""
    reached = dict.fromkeys(places)
    ahead = list(reached)
    while ahead:
        place = ahead.pop().next.get(_ANY_WORDS)
        if place is not None and place not in reached:
            reached[place] = None
            ahead.append(place)
    return list(reached)
