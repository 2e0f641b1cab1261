import pytest

from pyspark_hutch.jobs.errors import JobFailed
from pyspark_hutch.jobs.preparation import extras


@pytest.mark.parametrize(
    ("package", "extra"),
    [
        ("pyspark", "spark"),
        ("pyarrow", "spark"),
        ("deltalake", "lakehouse"),
        ("pyiceberg", "lakehouse"),
        ("sqlalchemy", "lakehouse"),
        ("matplotlib", "lakehouse"),
    ],
)
def test_one_line_names_the_extra_of_a_missing_package(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)

    with pytest.raises(JobFailed) as caught:
        extras.require(package)

    assert str(caught.value) == (
        f'{package} is not installed; this job needs it: pip install ".[{extra}]" in the folder of'
        " the sources"
    )


def test_installed_packages_are_accepted() -> None:
    extras.require("numpy", "pyarrow")
