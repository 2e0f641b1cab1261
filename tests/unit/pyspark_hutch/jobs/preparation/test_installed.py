from pathlib import Path

import pytest

from pyspark_hutch.jobs.errors import JobFailed
from pyspark_hutch.jobs.preparation import installed
from pyspark_hutch.jobs.preparation.installed import java_trouble


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
    monkeypatch.setattr(installed, "find_spec", lambda _: None)

    with pytest.raises(JobFailed) as caught:
        installed.require(package)

    assert str(caught.value) == (
        f'{package} is not installed; this job needs it: pip install ".[{extra}]" in the folder of'
        " the sources"
    )


def test_installed_packages_are_accepted() -> None:
    installed.require("numpy", "pyarrow")


def java(folder: Path, said: str) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    "said", ['openjdk version "17.0.9" 2023-10-17', 'openjdk version "21" 2023-09-19\nmore']
)
def test_java_17_and_later_will_do(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert java_trouble() is None


@pytest.mark.parametrize(
    "said", ['openjdk version "16.0.2" 2021-07-20', 'java version "1.8.0_292"', "who knows"]
)
def test_an_older_java_is_named_with_its_version(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    trouble = java_trouble()

    assert trouble == f"Spark needs Java 17 or later, and {tmp_path}/bin/java says: {said}"


def test_a_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    trouble = java_trouble()

    assert trouble is not None
    assert f"no java in JAVA_HOME, {tmp_path}" in trouble
    assert "\n" not in trouble


def test_without_java_on_the_path_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "no java in the PATH" in (java_trouble() or "")


def test_a_java_that_cannot_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_bytes(b"\x7fELF nothing")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert f"{program} does not run" in (java_trouble() or "")
