from typing_extensions import Buffer

def are_sound(
    source: Buffer, limit: int, sealed_from: int, seed: int
) -> tuple[bool, int, int, int]: ...
