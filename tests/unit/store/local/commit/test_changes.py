from store.errors import DiskFull, StoreError
from store.local.commit.changes import (
    AppendChange,
    AttributesChange,
    CreateChange,
    DeleteChange,
    Later,
    MergeChange,
    NoChange,
    SealChange,
    TruncateChange,
)
from store.local.state.catalogue import Catalogue
from store.local.state.segment import Segment


class Heard:
    """A `done` that keeps what it got."""

    def __init__(self) -> None:
        self.results: list[object] = []

    def __call__(self, result: object) -> None:
        self.results.append(result)


def committed(catalogue: Catalogue, name: str) -> Segment:
    segment = catalogue.add(name, None)
    catalogue.commit_creation(segment)
    return segment


def append_to(catalogue: Catalogue, segment: Segment, size: int) -> AppendChange:
    """Give an append at the end, in a file of its own, issued and not applied."""
    change = AppendChange(catalogue, segment, b"w" * 16, 7)
    change.position, change.size = segment.pending.length, size
    change.extent = (change.position, catalogue.new_file(segment))
    segment.pending.extents += (change.extent,)
    segment.pending.length += size
    return change


def test_an_append_becomes_visible_when_it_is_applied() -> None:
    catalogue = Catalogue(100)
    segment = committed(catalogue, "a")
    change = append_to(catalogue, segment, 10)
    assert segment.committed.length == 0
    change.apply(1_234)
    state = segment.committed
    assert (state.length, state.modified_at_ms) == (10, 1_234)
    assert (state.attributes.writers, state.extents) == ({b"w" * 16: 7}, (change.extent,))


def test_a_dropped_append_wakes_nobody() -> None:
    catalogue = Catalogue(100)
    segment = committed(catalogue, "a")
    change = append_to(catalogue, segment, 10)
    change.done = heard = Heard()
    error = DiskFull("full")
    change.report(error)
    assert heard.results == [error]


def test_a_change_names_what_it_builds_upon() -> None:
    catalogue = Catalogue(100)
    target, source = committed(catalogue, "t"), committed(catalogue, "s")
    done = Heard()
    assert append_to(catalogue, target, 1).touches() == (target.number,)
    assert CreateChange(catalogue, target, b"", done).touches() == (target.number, "t")
    assert DeleteChange(catalogue, target, b"", done).touches() == ("t",)
    merge = MergeChange(catalogue, target, b"", done, source, [])
    assert merge.touches() == (target.number, source.number, "s")
    assert NoChange(target, done).touches() == (target.number,)
    assert Later((3, "x"), lambda: None).touches() == (3, "x")


def test_a_creation_that_is_dropped_leaves_nothing() -> None:
    catalogue = Catalogue(100)
    segment = catalogue.add("a", None)
    heard = Heard()
    error = DiskFull("full")
    CreateChange(catalogue, segment, b"", heard).report(error)
    assert (heard.results, catalogue.segments, segment.dead) == ([error], {}, True)


def test_a_deletion_takes_the_files_of_both_views() -> None:
    catalogue = Catalogue(100)
    segment = committed(catalogue, "a")
    first = append_to(catalogue, segment, 10)
    first.apply(1)
    append_to(catalogue, segment, 10)
    catalogue.hide(segment)
    DeleteChange(catalogue, segment, b"", Heard()).apply(2)
    assert {file.number for file in catalogue.discarded} == {1, 2}


def test_a_seal_and_a_truncation_change_the_committed_view() -> None:
    catalogue = Catalogue(100)
    segment = committed(catalogue, "a")
    for _ in range(2):
        append_to(catalogue, segment, 10).apply(1)
    sealed, truncated = Heard(), Heard()
    seal = SealChange(catalogue, segment, b"", sealed)
    truncation = TruncateChange(catalogue, segment, b"", truncated, 12)
    for change in (seal, truncation):
        change.apply(5)
        change.report(None)
    assert (segment.committed.sealed, segment.committed.start) == (True, 12)
    assert (sealed.results, truncated.results) == ([20], [None])
    assert [file.number for file in catalogue.discarded] == [1]


def test_a_merge_moves_files_and_their_owner() -> None:
    catalogue = Catalogue(100)
    target, source = committed(catalogue, "t"), committed(catalogue, "s")
    change = append_to(catalogue, source, 10)
    change.apply(1)
    heard = Heard()
    target.pending.merge(source.pending)
    merge = MergeChange(catalogue, target, b"", heard, source, [(b"a" * 16, 3)])
    merge.apply(2)
    merge.report(None)
    assert heard.results == [10]
    assert (target.committed.length, target.committed.attributes.named) == (10, {b"a" * 16: 3})
    assert change.extent is not None
    assert change.extent[1].owner == target.number
    assert (source.dead, catalogue.discarded) == (True, [])


def test_attributes_change_together() -> None:
    catalogue = Catalogue(100)
    segment = committed(catalogue, "a")
    values = [(b"a" * 16, 1), (b"b" * 16, 2)]
    AttributesChange(catalogue, segment, b"", Heard(), values).apply(1)
    assert segment.committed.attributes.named == dict(values)


def test_what_changes_nothing_only_reports() -> None:
    segment = committed(Catalogue(100), "a")
    heard: list[StoreError | None] = []
    change = NoChange(segment, heard.append)
    change.apply(1)
    change.report(None)
    error = DiskFull("full")
    change.report(error)
    assert heard == [None, error]
    assert segment.committed.modified_at_ms == 0
