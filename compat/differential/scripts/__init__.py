"""What is sent, by theme."""

from __future__ import annotations

from compat.differential.script import Script
from compat.differential.scripts import (
    amqplain,
    deduplication,
    filtering,
    framing,
    group_rights,
    group_walks,
    groups,
    handshake,
    offsets,
    partition_groups,
    permissions,
    publishing,
    reading,
    renewals,
    retention,
    sasl,
    streams,
    super_stream_codes,
    super_streams,
    tuning,
    updates,
    virtual_hosts,
)

SCRIPTS: tuple[Script, ...] = (
    *handshake.SCRIPTS,
    *sasl.SCRIPTS,
    *framing.SCRIPTS,
    *tuning.SCRIPTS,
    *streams.SCRIPTS,
    *super_streams.SCRIPTS,
    *super_stream_codes.SCRIPTS,
    *publishing.SCRIPTS,
    *deduplication.SCRIPTS,
    *reading.SCRIPTS,
    *filtering.SCRIPTS,
    *retention.SCRIPTS,
    *offsets.SCRIPTS,
    *updates.SCRIPTS,
    *groups.SCRIPTS,
    *group_walks.SCRIPTS,
    *group_rights.SCRIPTS,
    *partition_groups.SCRIPTS,
    *amqplain.SCRIPTS,
    *permissions.SCRIPTS,
    *renewals.SCRIPTS,
    *virtual_hosts.SCRIPTS,
)
