from compat.debian import mirror_of

ONE_LINE_SOURCES = """
# deb http://old.example.org/debian forky main
deb [signed-by=/x.gpg] http://packages.example.org/apt cloud main
deb [arch=amd64] https://mirror.example.org/debian/ bookworm main
deb http://security.debian.org/debian-security bookworm-security main
"""
STANZA_SOURCES = """
Types: deb
# http://snapshot.example.org/archive/debian/2025
URIs: http://deb.example.org/debian
Suites: bookworm
Components: main
"""


def test_a_mirror_is_read_from_one_line_sources() -> None:
    assert mirror_of(ONE_LINE_SOURCES) == "https://mirror.example.org/debian"


def test_a_mirror_is_read_from_stanza_sources() -> None:
    assert mirror_of(STANZA_SOURCES) == "http://deb.example.org/debian"


def test_other_peoples_repositories_are_no_mirror() -> None:
    assert mirror_of("deb http://packages.example.org/apt cloud main\n") is None
