cpdef bytes append_record(unsigned int size, unsigned int flags, unsigned long long segment, unsigned long long file, unsigned long long position, unsigned long long data_bytes, unsigned long long data_hash, bytes writer, long long event_number)
cpdef bytes checked_part(unsigned long long sequence, unsigned long long at_ms, unsigned long long synced, bytes body, unsigned int count)
cpdef bytes behind_checksum(unsigned long long checksum, bytes part)
