"""Any bytes are definitions or are refused in words; what was read means the same when written."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.management.definitions.exporting import export_definitions
from gateway.management.definitions.planning import plan_import
from gateway.management.definitions.reading import ReadDefinitions, read_definitions
from gateway.management.definitions.report import report_table
from gateway.management.errors import DefinitionsError
from gateway.management.kinds.kind import Definitions
from gateway.management.kinds.table import KINDS
from gateway.management.kinds.virtual_hosts import HOSTS, Host

EXPORT: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "unit/gateway/management/definitions/rabbitmq-4.3.json").read_text(
        encoding="utf-8"
    )
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["/", "", "amq.topic", "stream", "7D", "\ud800", ".*", "(", "a,b", 10**50]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spoiled_exports(draw: st.DrawFn) -> bytes:
    """A real export in which some fields hold something else."""
    content = json.loads(json.dumps(EXPORT))
    for _ in range(draw(st.integers(1, 4))):
        section = draw(st.sampled_from(sorted(content)))
        owner: Any = content
        key: Any = section
        while owner[key] and isinstance(owner[key], dict | list) and draw(st.booleans()):
            owner = owner[key]
            keys = sorted(owner) if isinstance(owner, dict) else range(len(owner))
            key = draw(st.sampled_from(keys))
        if isinstance(owner, dict) and draw(st.booleans()):
            del owner[key]
        else:
            owner[key] = draw(VALUES)
    return json.dumps(content).encode()


def read_or_refused(content: bytes) -> ReadDefinitions | None:
    try:
        return read_definitions(content)
    except DefinitionsError as error:
        lines = str(error).splitlines()
        assert lines
        assert all(len(line) < 2_000 for line in lines)
        str(error).encode()
        return None


@given(st.binary())
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    read_or_refused(content)


@given(st.dictionaries(st.sampled_from(sorted(EXPORT)), st.lists(VALUES, max_size=3) | VALUES))
def test_any_json_is_read_or_refused(content: dict[str, Any]) -> None:
    read_or_refused(json.dumps(content).encode())


@given(spoiled_exports())
def test_a_spoiled_export_is_refused_or_imported_once_for_all(content: bytes) -> None:
    read = read_or_refused(content)
    if read is None:
        return
    current = Definitions({HOSTS: {("", "/"): Host("/")}})
    try:
        plan = plan_import(read, current)
    except DefinitionsError:
        return
    report_table(plan.rows).encode()
    for kind in KINDS:
        current.of(kind).update(plan.changes.of(kind))

    again = plan_import(read_definitions(content), current)
    exported = json.dumps(export_definitions(current)[0]).encode()
    back = plan_import(read_definitions(exported), current)

    assert again.change_count == 0
    assert back.change_count == 0
