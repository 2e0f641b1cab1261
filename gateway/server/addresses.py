"""Which setting is to blame where an address cannot be listened on."""

import errno
from typing import Final

from gateway.settings.model import ConfigError, Problem

_OF_THE_PORT: Final = frozenset((errno.EADDRINUSE, errno.EACCES, errno.EPERM))


def cannot_listen(
    host_setting: str, port_setting: str, host: str, port: int, error: OSError
) -> ConfigError:
    """Blame the port that is taken or not for us, else the host that is not this machine's.

    Args:
        host_setting: The host's setting, as "stream.host".
        port_setting: The port's.
        host: Its value.
        port: Its value.
        error: What `gateway.server.listener.bind` or listen raised.
    """
    setting = port_setting if error.errno in _OF_THE_PORT else host_setting
    reason = f"cannot listen on {host}:{port}: {error.strerror or error}"
    return ConfigError(Problem(setting, reason))
