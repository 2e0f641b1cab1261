# Compiled as it is: its classes stay classes of Python.
from store.local.kernel.journal_bytes cimport behind_checksum, checked_part

cpdef bytes frame_of(unsigned long long sequence, long long at_ms, unsigned long long synced, changes, unsigned long long salt)
