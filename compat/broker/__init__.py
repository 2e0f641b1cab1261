"""One running RabbitMQ 4.3 with the stream plugin, however this machine can get one.

`obtain` tries three ways in order: an address from the environment, a container, a Debian tree in
which the packaged broker runs. Each way that cannot work says why, and the reasons are what a
skipped test prints.
"""

from compat.broker.ports import Ports
from compat.broker.running import RunningBroker
from compat.broker.ways import BrokerUnavailable, obtain

__all__ = ["BrokerUnavailable", "Ports", "RunningBroker", "obtain"]
