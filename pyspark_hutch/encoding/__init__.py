"""Rows to bytes: from Arrow batches to AMQP messages and Publish frames for each stream.

    columns.py      which columns a DataFrame may have, checked before the first row
    messages.py     rows -> messages
    routing.py      rows -> the streams that they go to
    frames.py       messages -> Publish frames
    sub_batches.py  the same, with many rows in an entry, compressed

Nothing here loops over rows: what a row needs is done for all rows of a batch at once, by numpy and
Arrow.
"""
