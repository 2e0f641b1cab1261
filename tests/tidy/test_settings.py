"""A setting that nobody reads would be a promise that nobody keeps."""

import re
from pathlib import Path

import pytest

from gateway.settings.model import sections

GATEWAY = Path(__file__).parents[2] / "gateway"
CODE = "\n".join(
    path.read_text(encoding="utf-8")
    for path in GATEWAY.rglob("*.py")
    if path.parent != GATEWAY / "settings"
)


@pytest.mark.parametrize(
    "name", sorted({name for model in sections().values() for name in model.model_fields})
)
def test_every_setting_is_read_by_the_server(name: str) -> None:
    assert re.search(rf"\.{name}\b", CODE)
