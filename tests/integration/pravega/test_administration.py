"""PyPI's client of Pravega, as it is, with scopes and streams."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

Manager = Any  # the client has no types


def test_scopes_and_streams_are_made_listed_and_deleted(manager: Manager) -> None:
    assert not manager.create_scope("scope")
    assert manager.create_stream("scope", "stream", 3)
    assert not manager.create_stream("scope", "stream", 3)
    assert manager.list_scope() == ["scope"]

    with pytest.raises(Exception, match="Not Sealed"):
        manager.delete_stream("scope", "stream")
    assert manager.seal_stream("scope", "stream")
    assert manager.delete_stream("scope", "stream")
    assert manager.delete_scope("scope")
    assert manager.list_scope() == []


def test_more_streams_than_fit_a_page_are_listed(manager: Manager) -> None:
    names = [f"stream-{number:03}" for number in range(130)]
    for name in names:
        manager.create_stream("scope", name, 1)

    assert sorted(manager.list_stream("scope")) == [f"_MARK{name}" for name in names] + names


def test_policy_and_tags_are_kept_and_changed(manager: Manager, pravega: ModuleType) -> None:
    scaling = pravega.StreamScalingPolicy.auto_scaling_policy_by_event_rate(10, 2, 2)
    retention = pravega.StreamRetentionPolicy.by_size(1 << 20)
    assert manager.create_stream_with_policy("scope", "stream", scaling, retention, ["a", "b"])
    assert manager.get_stream_tags("scope", "stream") == ["a", "b"]

    assert manager.update_stream_with_policy("scope", "stream", scaling, retention, ["c"])
    assert manager.get_stream_tags("scope", "stream") == ["c"]
