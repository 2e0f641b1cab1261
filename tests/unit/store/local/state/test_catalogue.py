from store.errors import DiskFull, SegmentFailed
from store.local.state.catalogue import Catalogue, failure_of
from store.local.state.segment import Segment


def committed(catalogue: Catalogue, name: str) -> Segment:
    segment = catalogue.add(name, None)
    catalogue.commit_creation(segment)
    return segment


def test_a_creation_is_issued_first_and_committed_later() -> None:
    catalogue = Catalogue(100)
    segment = catalogue.add("a", None)
    assert (catalogue.names, catalogue.committed_names) == ({"a": segment}, {})
    assert not segment.created
    catalogue.commit_creation(segment)
    assert catalogue.committed_names == {"a": segment}
    assert catalogue.changed == {segment}


def test_a_name_is_free_as_soon_as_the_deletion_is_issued() -> None:
    catalogue = Catalogue(100)
    old = committed(catalogue, "a")
    catalogue.hide(old)
    new = committed(catalogue, "a")
    catalogue.commit_removal(old, [])
    assert catalogue.committed_names == {"a": new}
    assert list(catalogue.segments.values()) == [new]
    assert (catalogue.removed, old.dead) == ([old.number], True)


def test_names_go_back_to_what_is_committed() -> None:
    catalogue = Catalogue(100)
    deleted = committed(catalogue, "deleted")
    catalogue.hide(deleted)
    created = catalogue.add("created", None)
    catalogue.reset_names(["deleted", "created"])
    catalogue.forget_creation(created)
    assert catalogue.names == {"deleted": deleted}
    assert list(catalogue.segments.values()) == [deleted]


def test_numbers_are_never_given_twice() -> None:
    catalogue = Catalogue(100)
    numbers = []
    for _ in range(3):
        segment = committed(catalogue, "a")
        numbers.append(segment.number)
        catalogue.hide(segment)
        catalogue.commit_removal(segment, [])
    assert len(set(numbers)) == 3
    owner = committed(catalogue, "b")
    assert catalogue.new_file(owner).number != catalogue.new_file(owner).number


def test_a_file_is_clean_when_a_sync_covers_its_last_write() -> None:
    catalogue = Catalogue(100)
    segment = committed(catalogue, "a")
    file = catalogue.new_file(segment)
    file.writes = 2
    catalogue.dirty.add(file)
    segment.note_bulk(file)
    catalogue.file_synced(file, 1)
    assert (catalogue.dirty, segment.bulk_files) == ({file}, {file})
    catalogue.file_synced(file, 2)
    assert (catalogue.dirty, segment.bulk_files) == (set(), set())
    catalogue.file_synced(file, 1)
    assert file.synced == 2


def test_a_failed_file_blocks_its_segment_with_the_first_reason() -> None:
    catalogue = Catalogue(100)
    segment = committed(catalogue, "a")
    file = catalogue.new_file(segment)
    first = SegmentFailed("first")
    catalogue.file_failed(file, first)
    catalogue.file_failed(file, SegmentFailed("second"))
    assert (segment.failure, segment.blocked) == (first, True)


def test_what_a_segment_keeps_reporting_is_its_own_failure() -> None:
    assert type(failure_of(DiskFull("full"))) is SegmentFailed


def test_discarded_files_wait_to_be_removed_and_are_dirty_no_more() -> None:
    catalogue = Catalogue(100)
    file = catalogue.new_file(committed(catalogue, "a"))
    catalogue.dirty.add(file)
    catalogue.discard([file])
    assert (catalogue.dirty, catalogue.discarded, file.dead) == (set(), [file], True)


def test_counts_follow_names_that_are_taken_back() -> None:
    catalogue = Catalogue(100)
    kept = committed(catalogue, "a/b/kept")
    catalogue.add("a/b/new", None)
    catalogue.hide(kept)
    assert catalogue.counts == {"a/b/": 1}
    catalogue.reset_names(["a/b/new", "a/b/kept", "a/b/never", "a/b/kept"])
    assert (list(catalogue.names), catalogue.counts) == (["a/b/kept"], {"a/b/": 1})
    catalogue.hide(kept)
    assert (catalogue.names, catalogue.counts) == ({}, {})
