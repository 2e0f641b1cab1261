from typing import Final

NUMBER_BYTES: Final = 4

def sync_on_request(requests: int, answers: int) -> None: ...
