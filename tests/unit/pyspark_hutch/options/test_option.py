from pyspark_hutch.options.option import ALL, READ, WRITE, Use


def test_uses_are_told_in_words() -> None:
    assert str(Use.BATCH_READ) == "a batch read"
    assert str(READ) == "a batch read or a streaming read"


def test_every_use_is_a_read_or_a_write() -> None:
    assert set(ALL) == set(Use)
    assert not READ & WRITE
