"""The one way to open a file of a store's directory: it is a regular file there, and nothing else.

A link would lead to a file that is not the store's, and a FIFO would wait for its other end.
"""

import errno
import os
import stat

_MODE = 0o640


def open_regular(place: str, flags: int = os.O_RDONLY) -> int:
    """Open a file of a store's directory, and return its descriptor.

    Args:
        place: The file. The folders above it may be links.
        flags: As `os.open` takes them.

    Raises:
        OSError: It cannot be opened, is a link, or is no regular file.
    """
    name = os.path.basename(place)  # noqa: PTH119  # paths are texts here
    try:
        # Without O_NONBLOCK this waits for the other end of a FIFO; to a file it means nothing.
        descriptor = os.open(place, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, _MODE)
    except OSError as error:
        if error.errno != errno.ELOOP or not os.path.islink(place):  # noqa: PTH114
            raise
        reason = f"{name} is a link, and a store follows none: put the file itself there"
        raise OSError(errno.ELOOP, reason, place) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{name} is no regular file", place)
    return descriptor
