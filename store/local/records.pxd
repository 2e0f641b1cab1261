cpdef bytes frame_of(unsigned long long sequence, long long at_ms, changes, unsigned long long salt)
