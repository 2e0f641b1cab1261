"""The embedded segment store: one process, one data directory.

    store → tables → operations → reads, writes   the interface, and checks before a change
    commit                                        changes, gathered and committed together
    state                                         the state in memory, committed and issued
    files                                         bytes to the disk: it alone touches `os`
    recovery                                      the state after a crash, from the disk
    disposal, listing, reserve, threads           what goes on beside the commits
    store_check, overlay, damage                  damage: found, reported, set aside

docs/internals-store.md tells what each step does on the disk.
"""
