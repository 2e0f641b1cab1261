"""What a broker answers on a damaged directory, held against what was acknowledged.

An answer is right, or an older one (what replaced it was lost), or missing; all else is wrong. What
is older or missing needs a line in the log that names it, and a fault that could have taken it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from gateway.log import names
from gateway.log.reading.locations import StartKind
from store.local.recovery.checkpoint import CHECKPOINT
from tests.damage.faults import Fault
from tests.damage.ledger import Built, Key, Stored, Stream
from tests.damage.reading import REFUSED, LookUp, Reading

WRITTEN: Final = b"written after the damage"
"""A record that sound streams get."""
HARMLESS: Final = frozenset(
    {
        *("chunks", "index", "filters", "table of tracking", "table of openings"),
        *("spare journal", "reserve"),
    }
)
"""What refuses no start."""
OF_STREAMS: Final = frozenset({"sequence", "offset"})
OF_HOSTS: Final = frozenset({"policy", "operator-policy", "stream", "exchange", "binding"})
_JOINED_MS: Final = 1_000
"""Chunks that are delivered as one begin within this time."""


class Judge:
    """Judges one case.

    Args:
        built: What was acknowledged.
        faults: What was done to the copy.
        directory: The copy, as the faults have left it: make the judge before it is opened.
    """

    def __init__(self, built: Built, faults: Iterable[Fault], directory: Path) -> None:
        self._built = built
        self._ledger = built.ledger
        self._touched = {name for fault in faults for name in fault.files}
        self._first_broken, self.silent_from = self._broken_steps(directory)
        self._misshapen = {
            name
            for name in self._touched
            if _size(directory / name) != _size(built.directory / name)
        }
        self.lines: list[str] = []
        """What the log says at the level of warnings and above."""
        self.complaints: list[str] = []
        self.lost_of: set[Stream] = set()
        """Streams of which something is missing."""

    def _broken_steps(self, directory: Path) -> tuple[int, int]:
        """Return the first step whose journal is damaged, and from where no sound one follows.

        The end of a journal cannot be told from a torn write where nothing sound comes behind it.
        """
        none = self._ledger.step + 1
        now: dict[str, bytes] = {}
        then: dict[str, bytes] = {}
        broken: dict[int, bool] = {}
        for step, span in self._ledger.spans:
            if span.file not in now:
                path = directory / span.file
                now[span.file] = path.read_bytes() if path.exists() else b""
                path = self._built.directory / span.file
                then[span.file] = path.read_bytes() if path.exists() else b""
            part = slice(span.begin, span.end)
            is_broken = now[span.file][part] != then[span.file][part]
            broken[step] = broken.get(step, False) or is_broken
        needed = [step for step in sorted(broken) if step > self._ledger.checkpoint_step]
        silent_from = none
        for step in reversed(needed):
            if not broken[step]:
                break
            silent_from = step
        return next((step for step in needed if broken[step]), none), silent_from

    # What a fault could have taken

    def _complain(self, what: str) -> None:
        self.complaints.append(what)

    def is_exposed(self, segments: Collection[str]) -> bool:
        """Tell whether a fault could have taken something of these segments."""
        owned = {name for name, segment in self._ledger.files.items() if segment in segments}
        return bool(owned & self._touched) or self._journal_is_harmed

    @property
    def _journal_is_harmed(self) -> bool:
        """Whether the checkpoint, or a part of the journal behind it, is not as it was."""
        files = {CHECKPOINT, *self._built.kinds.get("journal", ())}
        return self._first_broken <= self._ledger.step or bool(files & self._touched)

    def _is_told(self, segments: Collection[str], stream: str = "") -> bool:
        """Tell whether a line names one of these segments, its files, the stream or the journal."""
        words = {name for name, segment in self._ledger.files.items() if segment in segments}
        words |= set(segments)
        if stream:
            words |= {f"stream={stream} ", f"stream={stream}\n", f"'{stream}'"}
        if self._journal_is_harmed:
            words |= {"file=journal/", "file=checkpoint"}
        return any(word in f"{line}\n" for line in self.lines for word in words)

    def _lost(self, what: str, segments: Collection[str], step: int, stream: str = "") -> None:
        """Judge that something is missing which was acknowledged in a step."""
        if not self.is_exposed(segments):
            self._complain(f"{what}: no fault touched it")
        elif step < self.silent_from and not self._is_told(segments, stream):
            self._complain(f"{what}: no line says so")

    # Answers

    def judge(self, reading: Reading, lines: Iterable[str]) -> None:
        """Judge a first reading, with what the log said up to then."""
        self.lines = list(lines)
        for key in {*self._ledger.values, *reading.values}:
            if key[0] in OF_STREAMS and key[1:3] not in reading.records:
                continue  # the stream is missing or refused, which is judged as that
            if key[0] in OF_HOSTS and ("host", key[1]) not in reading.values:
                continue  # the same of the virtual host
            self._judge_value(key, reading)
        for stream in {*self._ledger.records, *reading.records}:
            self._judge_records(stream, reading)
        for (stream, value), found in reading.filtered.items():
            self._judge_filtered(stream, value, found, reading)
        if reading.unclean_count < self._ledger.unclean_count:
            what = f"unclean openings have gone back to {reading.unclean_count}"
            # Counted with the first change behind the checkpoint.
            step = self._ledger.checkpoint_step + 1
            self._lost(what, {names.server_table("server")}, step)
        self._judge_journal_files()

    def judge_again(self, before: Reading, after: Reading, written: dict[Stream, int]) -> None:
        """Judge a second reading: what the first one gave, and what was written meanwhile."""
        for stream in before.records:
            expected = before.offsets(stream)
            if stream in written:
                expected[written[stream]] = WRITTEN
            found = after.offsets(stream)
            if found != expected:
                lost = sorted(set(expected) ^ set(found))[:5]
                self._complain(f"the second opening gives other records of {stream}: {lost}…")
        for key in {*before.values, *after.values}:
            first, second = before.values.get(key), after.values.get(key)
            # A publisher that was refused may be known again, but not by a guess.
            is_refused = key[0] == "sequence" and REFUSED in {
                *(reading.values.get(key[:3]) for reading in (before, after)),
            }
            if is_refused and (len(key) == 3 or second in {None, self._ledger.now(key)}):
                continue
            if first != second:
                self._complain(f"{key} was {first!r}, the second opening answers {second!r}")

    def _judge_journal_files(self) -> None:
        """Hold that a line names a file of the journal that is gone, or larger or smaller."""
        used = self._touched & set(self._built.kinds.get("journal", ()))
        if len(used) == 1 and used <= self._misshapen:
            (name,) = used
            # By another checkpoint the journal may end before that file.
            file = "journal/" if CHECKPOINT in self._touched else name
            if not any(f"file={file}" in line for line in self.lines):
                self._complain(f"{name} is missing or has another size: no line says so")

    def _segments_of(self, key: Key) -> set[str]:
        """Return the segments that hold an answer."""
        kind = key[0]
        if kind in {"user", "permission", "limits"}:
            return {names.server_table("access")}
        if kind == "host":
            return {names.server_table("virtual-hosts")}
        tables = {
            "policy": names.policy_table,
            "operator-policy": names.operator_policy_table,
            "offset": names.tracking_table,
            "sequence": names.tracking_table,
        }
        segments = {tables.get(kind, names.meta_table)(key[1])}
        if kind in OF_STREAMS:
            segments |= self.segments_of_stream((key[1], key[2]))
        return segments

    def segments_of_stream(self, stream: Stream) -> set[str]:
        """Return the segments of a stream's chunks: of each time that it was created."""
        begin = names.data_segment(*stream, 0).partition("-0/")[0]
        return {
            segment
            for segment in self._ledger.files.values()
            if segment.removeprefix(f"{begin}-").partition("/")[0].isdigit()
        }

    def _judge_value(self, key: Key, reading: Reading) -> None:
        found, now = reading.values.get(key), self._ledger.now(key)
        if key[0] == "sequence":
            if len(key) == 3:
                return  # a stream whose publishers are refused: judged with each of them
            if found is None:
                found = reading.values.get(key[:3])
        if found == now:
            return
        what = f"{key} is {found!r}, not {now!r}"
        if found == REFUSED:
            self._lost(what, self._segments_of(key), 0, key[2])
        elif found not in self._ledger.since(key, -1):
            self._complain(what)
        else:
            is_recent = found in self._ledger.since(key, self.silent_from - 1)
            step = self.silent_from if is_recent else 0
            segments = self._segments_of(key)
            self._lost(what, segments, step, key[2] if key[0] in OF_STREAMS else key[-1])
            cut = [f"segment was cut segment={each}" for each in segments]
            is_cut = any(line.startswith(tuple(cut)) for line in self.lines)
            if key[0] == "sequence" and not self._journal_is_harmed and not is_cut:
                self._complain(f"{what}: it has to be refused")

    # Records

    def _judge_records(self, stream: Stream, reading: Reading) -> None:
        written = self._ledger.records.get(stream, {})
        chunks = reading.records.get(stream)
        segments = self.segments_of_stream(stream)
        if chunks is None:
            if ("stream", *stream) in reading.values:
                self.lost_of.add(stream)
                why = reading.refused.get(stream, "")
                self._lost(f"{stream} is refused: {why}", segments, 0, stream[1])
            return  # without its row it is judged as a stream that is missing
        found = self._judge_chunks(stream, chunks, written)
        first = self._ledger.first_of(stream)
        missing = [each for each in written if each >= first and each not in found]
        if missing:
            self.lost_of.add(stream)
            step = min(written[each].step for each in missing)
            what = f"{len(missing)} records of {stream} are missing: {missing[:5]}…"
            self._lost(what, segments, step, stream[1])
        if min(found, default=first) < first:
            step = self._ledger.firsts[stream][-1][0]
            self._lost(f"{stream} is no longer truncated", segments, step, stream[1])
        for look_up in reading.look_ups.get(stream, []):
            self._judge_look_up(stream, look_up, written, found)

    def _judge_chunks(
        self,
        stream: Stream,
        chunks: list[tuple[int, int, list[bytes]]],
        written: dict[int, Stored],
    ) -> set[int]:
        found: set[int] = set()
        end = -1
        for first, timestamp_ms, bodies in chunks:
            if first < end:
                self._complain(f"{stream} delivers {first} behind {end - 1}")
            end = first + len(bodies)
            if first in written and written[first].timestamp_ms != timestamp_ms:
                self._complain(f"{stream} delivers {first} with the time {timestamp_ms}")
            for offset, body in enumerate(bodies, first):
                record = written.get(offset)
                if record is None or record.body != body:
                    self._complain(f"{stream} delivers {body[:50]!r} as {offset}")
                elif not 0 <= record.timestamp_ms - timestamp_ms <= _JOINED_MS:
                    self._complain(f"{stream} delivers {offset} with the time {timestamp_ms}")
            found.update(range(first, end))
        return found

    def _judge_look_up(
        self, stream: Stream, look_up: LookUp, written: dict[int, Stored], found: set[int]
    ) -> None:
        """Hold that nothing that was sought and can be read is passed over, nor too much read."""
        kind, value = look_up.kind, look_up.value
        if kind is StartKind.LAST:
            wanted = {max(found)} if found else set()
        elif kind is StartKind.OFFSET:
            wanted = {each for each in found if each >= value}
        else:
            wanted = {at for at in found if at in written and written[at].timestamp_ms >= value}
        if kind is StartKind.LAST and stream in self.lost_of:
            return  # the last chunk is damaged, and there is none behind it
        if wanted and (look_up.delivered is None or look_up.delivered > min(wanted)):
            self._complain(f"{stream} {look_up} passes over {min(wanted)}")
        if stream in self.lost_of or look_up.delivered is None:
            return
        if look_up.delivered != look_up.offset:
            self._complain(f"{stream} {look_up} delivers another one")
        earlier = [each for each in found if look_up.offset <= each < min(wanted, default=0)]
        if kind is StartKind.TIMESTAMP and any(
            written[at].timestamp_ms < value for at in earlier if at in written
        ):
            self._complain(f"{stream} {look_up} begins too early")

    def _judge_filtered(
        self, stream: Stream, value: bytes, found: dict[int, bytes], reading: Reading
    ) -> None:
        written = self._ledger.records[stream]
        for offset, body in found.items():
            if offset not in written or written[offset].body != body:
                self._complain(f"{stream} filtered by {value!r} delivers {body[:50]!r} as {offset}")
        read = set(reading.offsets(stream))
        wanted = {at for at, record in written.items() if at in read and record.value == value}
        if missed := wanted - set(found):
            self._complain(f"{stream} filtered by {value!r} misses {sorted(missed)[:5]}")

    # A start that is refused

    def judge_refusal(self, error: Exception) -> None:
        """Judge that the start was refused."""
        text = str(error)
        if "\n" in text or not text:
            self._complain(f"refused with other than one line: {text!r}")
        kinds = {
            kind
            for kind, files in self._built.kinds.items()
            if self._touched & set(files) and kind not in HARMLESS
        }
        if not kinds:
            self._complain(f"refused, which these faults do not ask for: {text}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1
