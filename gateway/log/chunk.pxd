cpdef pack_head(bytearray buffer, Py_ssize_t event_bytes, entries, records, timestamp_ms, epoch, chunk_id, crc, data_bytes, trailer_bytes)
