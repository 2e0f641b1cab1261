"""The embedded segment store: one process, one data directory.

    store → table_operations → operations         the interface, and checks before a change
    writing, table_writing → changes → rounds     changes, gathered and committed together
    round_writing → journal, data_file → files    bytes to the disk; `files` alone touches `os`
    segment, table, catalogue                     the state in memory, committed and issued
    reading, table_reading                        reads, on the loop or on threads
    checkpoint, disposal, holes, compaction       upkeep beside the commits
    opening → recovery, journal_reader            the state after a crash, from the disk
    checking, overlay, damage, leftovers          damage: found, reported, set aside

docs/internals-store.md tells what each step does on the disk.
"""
