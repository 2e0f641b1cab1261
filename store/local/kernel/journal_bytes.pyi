def append_record(
    size: int,
    flags: int,
    segment: int,
    file: int,
    position: int,
    data_bytes: int,
    data_hash: int,
    writer: bytes,
    event_number: int,
) -> bytes: ...
def checked_part(sequence: int, at_ms: int, synced: int, body: bytes, count: int) -> bytes: ...
def behind_checksum(checksum: int, part: bytes) -> bytes: ...
