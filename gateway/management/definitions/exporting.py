"""Definitions in RabbitMQ's form, so that RabbitMQ would import them.

Source: exports of RabbitMQ 4.3 (`GET /api/definitions`).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from gateway.management.kinds import table
from gateway.management.kinds.kind import PARAMETERS, Definitions, Key, ObjectKind
from gateway.management.kinds.virtual_hosts import HOSTS

RABBITMQ_VERSION: Final = "4.3.6"
_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def export_definitions(
    definitions: Definitions, *, virtual_host: str | None = None
) -> tuple[dict[str, object], list[str]]:
    """Write definitions as the tree of RabbitMQ's JSON.

    Args:
        definitions: Everything.
        virtual_host: Only this one, in the form of a single virtual host's export.

    Returns:
        The tree, and a warning for everything that RabbitMQ would not get back: also for what JSON
        cannot say, as names that are no UTF-8, which is not in the tree.
    """
    return _Export(definitions, virtual_host).tree()


class _Export:
    def __init__(self, definitions: Definitions, only: str | None) -> None:
        self._definitions = definitions
        self._only = only
        self._warnings: list[str] = []
        self._left_out: set[tuple[str, Key]] = set()

    def tree(self) -> tuple[dict[str, object], list[str]]:
        """Write all of it."""
        tree: dict[str, object] = {
            "rabbit_version": RABBITMQ_VERSION,
            "rabbitmq_version": RABBITMQ_VERSION,
            "product_name": "RabbitMQ",
            "product_version": RABBITMQ_VERSION,
        }
        if self._only is None:
            tree |= {
                "rabbitmq_definition_format": "cluster",
                "explanation": "Definitions of a Hutch server",
                **self._sections(is_of_cluster=True),
                "topic_permissions": [],
                "global_parameters": [],
            }
        else:
            described = HOSTS.written(self._definitions.of(HOSTS)["", self._only])
            del described["name"]
            tree |= {
                "rabbitmq_definition_format": "single_virtual_host",
                "original_vhost_name": self._only,
                "explanation": f"Definitions of virtual host '{self._only}'",
                **described,
            }
        return tree | self._sections(is_of_cluster=False), self._warnings

    def _sections(self, *, is_of_cluster: bool) -> dict[str, list[dict[str, object]]]:
        kinds = [kind for kind in table.KINDS if kind.is_of_cluster is is_of_cluster]
        kinds.sort(key=lambda kind: kind.section != PARAMETERS)  # which come first
        sections: dict[str, list[dict[str, object]]] = {}
        if not is_of_cluster:
            sections[PARAMETERS] = [
                self._placed(entry, host.name)
                for host in self._definitions.of(HOSTS).values()
                if self._only in (None, host.name)
                for entry in HOSTS.parameters(host.limits)
            ]
        for kind in kinds:
            sections.setdefault(kind.section, []).extend(self._entries(kind))
        return sections

    def _placed(self, entry: dict[str, object], host: str) -> dict[str, object]:
        entry.pop("vhost", None)
        return {**entry, "vhost": host} if host and self._only is None else entry

    def _entries(self, kind: ObjectKind[Any]) -> list[dict[str, object]]:
        entries: list[dict[str, object]] = []
        for key, thing in self._definitions.of(kind).items():
            if self._only not in (None, key[0]):
                continue
            if loss := kind.loss(thing):
                self._warnings.append(loss)
            entry = self._placed(kind.written(thing), key[0])
            if fault := self._fault_of(kind, key, entry):
                self._warnings.append(f"{kind.named(key)} is left out: {fault}")
                self._left_out.add((kind.name, key))
            else:
                entries.append(entry)
        return entries

    def _fault_of(self, kind: ObjectKind[Any], key: Key, entry: Mapping[str, object]) -> str:
        if any((needed.name, place) in self._left_out for needed, place in kind.needs(key)):
            return "so is what it binds"
        try:
            _encode(entry).encode()
        except UnicodeEncodeError:
            return "it has bytes that are not UTF-8"
        except ValueError:
            return "it has a number that JSON has not"
        return ""
