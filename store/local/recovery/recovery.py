"""Opening: the checkpoint, then the journal's frames upon it, then the data that they promise.

The fold (checkpoint + frames → segments) touches no data. Then the data of every append that is
still part of a segment is checked: what the journal holds inline is written again, of the rest the
hash must match. Where it does not, an append that was acknowledged after a sync means damage: the
segment becomes read-only. Another one was never on the disk: its segment ends before it, and the
fold is done again without it and what was built upon it. Then tables are loaded: their entries tell
by themselves what is damaged. Files without an owner are judged last, when all damage is known.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from xxhash import xxh3_64_intdigest

from store.errors import StoreError
from store.files import Files
from store.local.commit.journal_files import FILE_BYTES_MAX, is_in_use
from store.local.commit.journal_files import path_of as journal_path_of
from store.local.commit.journal_reader import JournalReader
from store.local.commit.records import (
    Append,
    Attributes,
    Create,
    Delete,
    Frame,
    Link,
    Merge,
    Record,
    Seal,
    Truncate,
)
from store.local.damage import Damage, Findings
from store.local.recovery.checkpoint import CHECKPOINT
from store.local.recovery.checkpoint_file import (
    CHECKED_FROM_BYTES,
    CheckpointHead,
    SegmentImage,
    check_size,
    head_of_checkpoint,
    segments_of_checkpoint,
)
from store.local.recovery.journal_damage import Evidence, judge
from store.local.recovery.leftovers import leftovers, set_ownerless_aside
from store.local.recovery.table_loading import load_tables
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import DATA_DIRECTORY, DataFile, path_of
from store.local.state.segment import Segment

log = logging.getLogger(__name__)

# Sequences jump at every opening, so that frames behind a lost one are never taken for new ones.
SEQUENCE_JUMP_BITS: Final = 32

Step = tuple[int, int]
"""A record of the journal: the frame's sequence and the record's index in it."""


SegmentRecord = Append | Attributes | Seal | Truncate | Merge


class Item(NamedTuple):
    """Data that an append promises."""

    step: Step
    segment: int
    file: int
    place: int
    append: Append


@dataclass(slots=True)
class Recovered:
    """The store as it was found.

    Attributes:
        catalogue: Its segments.
        sequence: For the next frame of a new journal.
        clean: It was closed in good order, or is new.
        findings: The damage that was found.
        reader: Has read the journal; None for a new store.
        has_lost: The segments are not what checkpoint and journal say, so that these cannot be
            gone on with.
        store_id: Seed of the heads of the journal's files; 0 if there is none yet.
        kept: Numbers of journal files that stay until there is a new checkpoint.
    """

    catalogue: Catalogue
    sequence: int
    clean: bool
    findings: Findings
    reader: JournalReader | None = None
    has_lost: bool = False
    store_id: int = 0
    kept: frozenset[int] = frozenset()


class Fold:
    """Applies records to segments."""

    def __init__(self, images: list[SegmentImage], dropped: set[Step]) -> None:
        self.segments: dict[int, Segment] = {}
        self.names: dict[str, int] = {}
        self.items: list[Item] = []
        self.last_durable: dict[int, Step] = {}
        self.next_segment = 1
        # The numbers of all data files that are spoken of, also of those that were given up.
        self.files: set[int] = set()
        # Sources of merges that were dropped.
        self.returned: set[int] = set()
        self._dropped = dropped
        # Segments that have lost a record; what was built upon it goes too.
        self._lost: set[int] = set()
        for image in images:
            self._add(_segment_of(image))

    def apply(self, frame: Frame) -> None:
        """Apply all records of a frame."""
        for index, record in enumerate(frame.records):
            self._apply(record, (frame.sequence, index), frame.at_ms)

    def _apply(self, record: Record, step: Step, at_ms: int) -> None:
        if isinstance(record, Link):
            return
        if isinstance(record, Append):
            self.files.add(record.file)
        if isinstance(record, Create):
            self._create(record, at_ms)
        elif isinstance(record, Delete):
            self.remove(record.segment)
        elif self._stands(record, step):
            segment = self._segment(record.segment)
            segment.committed.modified_at_ms = at_ms
            self._change(segment, record, step)

    def _stands(self, record: SegmentRecord, step: Step) -> bool:
        """Return whether a record builds upon nothing that was lost."""
        if record.durable:
            self.last_durable[record.segment] = step
        touched = {record.segment}
        if isinstance(record, Merge):
            touched.add(record.source)
        if step not in self._dropped and not touched & self._lost:
            return True
        self._lost |= touched
        if isinstance(record, Merge):
            self.returned.add(record.source)
        if isinstance(record, Truncate):
            # What it gave up may be gone from the disk already, so it holds for what is left.
            state = self._segment(record.segment).committed
            state.truncate(min(record.position, state.length))
        return False

    def _change(self, segment: Segment, record: SegmentRecord, step: Step) -> None:
        state = segment.committed
        match record:
            case Append():
                self._append(segment, record, step)
            case Attributes():
                state.attributes.update(record.values)
            case Seal():
                state.sealed = True
            case Truncate():
                state.truncate(record.position)
            case Merge():
                self._merge(segment, record)

    def _segment(self, number: int) -> Segment:
        segment = self.segments.get(number)
        if segment is None:
            raise StoreError(f"the journal speaks of segment {number}, which does not exist")
        return segment

    def _add(self, segment: Segment) -> None:
        self.segments[segment.number] = segment
        self.names[segment.name] = segment.number
        self.next_segment = max(self.next_segment, segment.number + 1)
        self.files.update(file.number for _, file in segment.committed.extents)

    def _create(self, record: Create, at_ms: int) -> None:
        holder = self.names.get(record.name)
        if holder is not None:
            # Its merge into another segment was lost; the name has gone on to this one.
            self.remove(holder)
        segment = Segment(record.segment, record.name, record.key_length)
        segment.committed.modified_at_ms = at_ms
        self._add(segment)

    def remove(self, number: int) -> None:
        """Take a segment out."""
        segment = self.segments.pop(number, None)
        if segment is not None and self.names.get(segment.name) == number:
            del self.names[segment.name]

    def _append(self, segment: Segment, record: Append, step: Step) -> None:
        state = segment.committed
        if record.position != state.length:
            raise StoreError(
                f"the journal appends to segment {segment.number} at {record.position}, "
                f"its length is {state.length}"
            )
        if record.writer is not None:
            state.attributes.append(record.writer, record.event_number)
        if not record.size:
            return
        if not state.extents or state.extents[-1][1].number != record.file:
            state.extents += ((record.position, DataFile(record.file, segment.number)),)
        place = record.position - state.extents[-1][0]
        self.items.append(Item(step, segment.number, record.file, place, record))
        state.length += record.size

    def _merge(self, segment: Segment, record: Merge) -> None:
        source = self._segment(record.source)
        segment.committed.merge(source.committed)
        segment.committed.attributes.update(record.values)
        self.remove(source.number)


@dataclass(slots=True)
class FileCheck:
    """Compares data files with the journal's promises of them."""

    files: Files
    names: set[str]
    findings: Findings
    dropped: set[Step] = field(default_factory=set)
    # What of them does not match, by their segments.
    damaged: dict[int, Item] = field(default_factory=dict)
    # Sources of lost merges whose files are gone.
    given_up: set[int] = field(default_factory=set)
    checked: set[Step] = field(default_factory=set)

    def run(self, fold: Fold) -> bool:
        """Check files that were not checked before; return whether more must be dropped."""
        count = len(self.dropped)
        lost: set[int] = set()
        for item, owner in _living(fold):
            if item.step in self.checked or item.append.inline is not None or owner in lost:
                continue
            if self._matches(item):
                self.checked.add(item.step)
            elif owner in fold.returned and str(item.file) not in self.names:
                self.given_up.add(owner)
                lost.add(owner)
            elif item.append.durable or fold.last_durable.get(item.segment, (-1, 0)) > item.step:
                self.damaged.setdefault(owner, item)
            else:
                self.dropped.add(item.step)
                lost.add(owner)
                self.findings.note(
                    f"segment was cut segment={fold.segments[owner].name}"
                    f" position={item.append.position} file={path_of(item.file)}"
                )
        return len(self.dropped) > count

    def _matches(self, item: Item) -> bool:
        if str(item.file) not in self.names:
            return False
        file = self.files.open(path_of(item.file))
        try:
            data = file.read_at(item.append.size, item.place)
        finally:
            file.close()
        return len(data) == item.append.size and xxh3_64_intdigest(data) == item.append.data_hash


def recover(files: Files, data_file_bytes: int, findings: Findings) -> Recovered:
    """Recover the content of the store, and make it durable. Writes no checkpoint.

    Raises:
        StoreError: The directory holds something that this version cannot open.
    """
    names = set(files.names(DATA_DIRECTORY))
    loaded = _load_checkpoint(files)
    if loaded is None:
        return Recovered(Catalogue(data_file_bytes), 1, clean=True, findings=findings)
    head, images = loaded
    reader = JournalReader(
        files, head.salt, head.place, store_id=head.store_id, size=head.journal_size
    )
    frames = list(reader.frames())
    is_clean = head.closed and not frames
    is_damaged = judge(reader, findings, is_in_use=not is_clean)
    if frames:
        log.info("journal replayed frames=%d", len(frames))
    check = FileCheck(files, names, findings)
    fold = _folded(images, frames, check)
    # Tables tell by themselves, entry by entry, what is lost.
    checked = [segment for segment in fold.segments.values() if not segment.is_table]
    _note_short(checked, images, check, findings)
    for segment in checked:
        _note_damage(fold, segment, check, findings)
    _make_durable(files, fold, names)
    catalogue = Catalogue(data_file_bytes)
    catalogue.next_segment = max(head.next_segment, fold.next_segment)
    catalogue.next_file = max(head.next_file, max(fold.files, default=0) + 1)
    for segment in fold.segments.values():
        catalogue.restore(segment)
    load_tables(files, catalogue, findings)
    if is_damaged:
        _set_aside(files, reader, catalogue)
    else:  # after all that may find damage
        set_ownerless_aside(files, catalogue, head, fold.files, findings, is_clean=is_clean)
    last = frames[-1].sequence if frames else head.place.sequence
    return Recovered(
        catalogue,
        sequence=((last >> SEQUENCE_JUMP_BITS) + 2) << SEQUENCE_JUMP_BITS,
        clean=is_clean,
        findings=findings,
        reader=reader,
        has_lost=bool(check.dropped) or is_damaged,
        store_id=head.store_id,
        kept=frozenset(reader.numbers) if is_damaged else reader.needed(),
    )


def _folded(images: list[SegmentImage], frames: list[Frame], check: FileCheck) -> Fold:
    """Fold until nothing more has to be dropped."""
    while True:
        fold = Fold(images, check.dropped)
        for frame in frames:
            fold.apply(frame)
        if not check.run(fold):
            return fold


def _set_aside(files: Files, reader: JournalReader, catalogue: Catalogue) -> None:
    """Keep the files of a damaged journal, before the checkpoint that would release them."""
    evidence = Evidence(files, reader.salt)
    evidence.copy(CHECKPOINT)
    for number in reader.numbers:
        evidence.copy(journal_path_of(number), FILE_BYTES_MAX)
    evidence.move(f"{DATA_DIRECTORY}/{name}" for name in leftovers(files, catalogue))
    for segment in catalogue.segments.values():
        # What was given up may be behind the segment's end: the next append begins another file.
        for _, file in segment.committed.extents[-1:]:
            file.size_max = 0


def _load_checkpoint(files: Files) -> tuple[CheckpointHead, list[SegmentImage]] | None:
    if CHECKPOINT not in files.names(""):
        if files.names(DATA_DIRECTORY):
            raise StoreError("the data directory has data files but no checkpoint")
        if is_in_use(files):
            raise StoreError("the data directory has a journal but no checkpoint")
        return None
    file = files.open(CHECKPOINT)
    try:
        size = file.size()
        if size > CHECKED_FROM_BYTES:
            check_size(size, file.read_at)
        data = file.read_at(size, 0)
    finally:
        file.close()
    return head_of_checkpoint(data), list(segments_of_checkpoint(data))


def _segment_of(image: SegmentImage) -> Segment:
    segment = Segment(image.number, image.name, image.key_length)
    segment.corrupt = image.corrupt
    state = segment.committed
    state.sealed = image.sealed
    state.start = image.start
    state.length = image.length
    state.modified_at_ms = image.modified_at_ms
    state.attributes.named = dict(image.attributes)
    state.attributes.writers = dict(image.writers)
    state.extents = tuple(
        (base, DataFile(number, image.number, is_found=True)) for base, number in image.extents
    )
    return segment


def _living(fold: Fold) -> Iterator[tuple[Item, int]]:
    """Yield the items whose bytes are part of a segment now, and that segment."""
    homes = {
        file.number: (segment, base)
        for segment in fold.segments.values()
        for base, file in segment.committed.extents
    }
    for item in fold.items:
        home = homes.get(item.file)
        if home is None:
            continue
        segment, base = home
        if base + item.place + item.append.size > segment.committed.start:
            yield item, segment.number


def _make_durable(files: Files, fold: Fold, names: set[str]) -> None:
    """Write inline data and sync every file that the journal speaks of; adds to `names`."""
    items_of: dict[int, list[Item]] = {}
    for item, _ in _living(fold):
        items_of.setdefault(item.file, []).append(item)
    for number, items in items_of.items():
        inline = [item for item in items if item.append.inline is not None]
        if not inline and str(number) not in names:
            continue
        file = files.open(path_of(number), create=True)
        names.add(str(number))
        try:
            for item in inline:
                file.write_at(item.append.inline or b"", item.place)
            file.sync()
        finally:
            file.close()
    if items_of:
        files.sync_directory(DATA_DIRECTORY)
    for segment in fold.segments.values():
        for _, data_file in segment.committed.extents:
            data_file.owner = segment.number
            data_file.made = data_file.in_directory = str(data_file.number) in names


def _note_short(
    segments: list[Segment], images: list[SegmentImage], check: FileCheck, findings: Findings
) -> None:
    """Mark segments of which files are shorter than the length synced before the checkpoint."""
    sizes: dict[int, int] = {}
    for image in images:
        ends = [*(base for base, _ in image.extents[1:]), image.length]
        for (base, number), end in zip(image.extents, ends, strict=bool(image.extents)):
            sizes[number] = end - base
    for segment in segments:
        for base, data_file in segment.committed.extents:
            size = sizes.get(data_file.number, 0)
            if base + size <= segment.committed.start or str(data_file.number) not in check.names:
                continue
            path = path_of(data_file.number)
            file = check.files.open(path)
            try:
                found = file.size()
            finally:
                file.close()
            if found < size:
                what = f"data file ends before {size} bytes that were synced"
                findings.add(Damage(what, path, segment.name, found))
                segment.corrupt = True


def _note_damage(fold: Fold, segment: Segment, check: FileCheck, findings: Findings) -> None:
    """Mark a segment whose bytes are not all there."""
    missing = []
    state = segment.committed
    ends = [*(base for base, _ in state.extents[1:]), state.length]
    for (_, file), end in zip(state.extents, ends, strict=bool(state.extents)):
        # Of a file that only the journal speaks of, the items were checked one by one. One that
        # holds no living byte may be missing: it is made when it is written next.
        if file.made and end > state.start and str(file.number) not in check.names:
            missing.append(path_of(file.number))
    if segment.number in fold.returned and (missing or segment.number in check.given_up):
        # Its bytes were given up where the lost merge had put them.
        findings.note(f"segment was lost with a merge segment={segment.name}")
        fold.remove(segment.number)
        return
    for path in missing:
        findings.add(Damage("data file is missing", path, segment.name))
    item = check.damaged.get(segment.number)
    if item is not None:
        what = "data is not what was written"
        findings.add(Damage(what, path_of(item.file), segment.name, item.place))
    if missing or item is not None:
        segment.corrupt = True
    if segment.corrupt:
        findings.add(Damage("segment is damaged and can only be read", segment=segment.name))
