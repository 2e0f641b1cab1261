"""Nothing is promised in store/api.py that no test holds."""

import importlib
from pathlib import Path

from tests.conformance import promise


def test_every_method_and_every_error_of_the_seam_has_a_test_that_names_it() -> None:
    for module in Path(__file__).parent.glob("test_*.py"):
        importlib.import_module(f"{__package__}.{module.stem}")
    assert sorted(promise.ALL - promise.KEPT.keys()) == []
