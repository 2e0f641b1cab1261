from pathlib import Path

import pytest

from compat.roots.hosting import hand_in, variables


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    home = tmp_path / "home-here"
    (home / ".config/pip").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in variables():
        monkeypatch.delenv(name)
    return home


def test_what_pip_reads_is_handed_in(machine: Path, tmp_path: Path) -> None:
    (machine / ".config/pip/pip.conf").write_text("[global]\ntimeout = 7\n")
    root, home = tmp_path / "root", tmp_path / "root/home/tester"

    hand_in(root, home)

    assert (home / ".config/pip/pip.conf").read_text() == "[global]\ntimeout = 7\n"
    assert (root / "etc/resolv.conf").read_text() == Path("/etc/resolv.conf").read_text()
    assert not (home / ".pip").exists()


def test_a_named_authority_lies_where_it_lies_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = tmp_path / "authority.pem"
    authority.write_text("of this machine")
    monkeypatch.setenv("PIP_CERT", str(authority))
    root = tmp_path / "root"

    hand_in(root, root / "home/tester")

    assert (root / str(authority)[1:]).read_text() == "of this machine"


def test_a_named_configuration_of_pip_becomes_that_of_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    named = tmp_path / "named.conf"
    named.write_text("[install]\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(named))
    root = tmp_path / "root"

    hand_in(root, root / "home/tester")

    assert (root / "etc/pip.conf").read_text() == "[install]\n"
    assert "PIP_CONFIG_FILE" not in variables()


def test_variables_of_pip_and_proxies_go_in_and_others_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PIP_TIMEOUT", "https_proxy", "HTTP_PROXY", "SSL_CERT_FILE", "HUTCH_X", "PIPE"):
        monkeypatch.setenv(name, "x")

    assert sorted(variables()) == ["HTTP_PROXY", "PIP_TIMEOUT", "SSL_CERT_FILE", "https_proxy"]
