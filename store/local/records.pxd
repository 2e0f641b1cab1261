cpdef bytes frame_of(unsigned long long sequence, long long at_ms, unsigned long long synced, changes, unsigned long long salt)
