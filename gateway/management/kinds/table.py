"""All kinds, in the order in which their objects have to be made."""

from typing import Any, Final

from gateway.management.kinds.kind import ObjectKind
from gateway.management.kinds.people import PERMISSIONS, USERS
from gateway.management.kinds.policies import OPERATOR_POLICIES, POLICIES
from gateway.management.kinds.streams import STREAMS
from gateway.management.kinds.topology import BINDINGS, EXCHANGES
from gateway.management.kinds.virtual_hosts import HOSTS

KINDS: Final[tuple[ObjectKind[Any], ...]] = (
    *(HOSTS, USERS, PERMISSIONS),
    *(POLICIES, OPERATOR_POLICIES),
    *(STREAMS, EXCHANGES, BINDINGS),
)
