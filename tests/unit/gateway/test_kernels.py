import importlib

import pytest

from gateway.kernels import HOT_OBJECTS, KERNELS, uncompiled


@pytest.mark.parametrize("name", KERNELS + HOT_OBJECTS)
def test_a_kernel_is_reported_as_what_an_import_gives(name: str) -> None:
    file = importlib.import_module(name).__file__

    assert file is not None
    assert file.endswith(".py") == (name in uncompiled())
