"""Rows to bytes: from Arrow batches to AMQP messages and Publish frames for each stream.

    columns.py      which columns a DataFrame may have, checked before the first row
    messages.py     rows -> messages
    routes.py       rows -> the streams that they go to
    frames.py       messages -> Publish frames
    sub_batches.py  messages -> Publish frames with many rows in an entry, compressed

Nothing here loops over rows: each step is done for all rows of a batch at once, by numpy and Arrow.
"""
