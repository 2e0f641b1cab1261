"""Hosts, and lists of names, which mean the same in each source."""

import json
from pathlib import Path

import pytest

from gateway.settings.errors import ConfigError
from gateway.settings.fields import NAMES_IN_WORDS
from gateway.settings.sources import FLAGS, load
from tests.unit.gateway.settings.config_file import config_file

SOURCES = ("flag", "environment", "file")


def channels_from(
    source: str, written: str, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> tuple[str, ...]:
    """Return the channels of one source; `written` stands as it is in flag and variable."""
    flags, config = {}, None
    if source == "flag":
        flags["--channels"] = written
    elif source == "environment":
        monkeypatch.setenv("HUTCH_MEWBASE__CHANNELS", written)
    else:
        config = config_file(folder, f"[mewbase]\nchannels = {json.dumps(written)}\n")
    keys = {**FLAGS, "--channels": ("mewbase", "channels")}
    return load(flags, config, keys).settings.mewbase.channels


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("written", "channels"),
    [
        ("a,b", ("a", "b")),
        (" a , b, ", ("a", "b")),
        ('["a","b"]', ("a", "b")),
        (' ["a", "b"] ', ("a", "b")),
        ('["a,b"]', ("a,b",)),
        ("a", ("a",)),
        ('["a"]', ("a",)),
        ("", ()),
        ("[]", ()),
        ("a[0]", ("a[0]",)),
    ],
)
def test_a_list_means_the_same_in_each_source(
    source: str,
    written: str,
    channels: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    assert channels_from(source, written, monkeypatch, tmp_path) == channels


def test_a_list_of_toml_is_taken(tmp_path: Path) -> None:
    config = config_file(tmp_path, '[mewbase]\nchannels = ["a", "b"]\nbinders = []\n')
    mewbase = load({}, config).settings.mewbase
    assert (mewbase.channels, mewbase.binders) == (("a", "b"), ())


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "written", ['["a"', "[a]", "['a']", "[1]", '["a", null]', '[["a"]]', '["a", ""]', "[" * 100_000]
)
def test_a_text_that_begins_as_a_list_and_is_none_is_refused(
    source: str, written: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        channels_from(source, written, monkeypatch, tmp_path)
    (problem,) = caught.value.problems
    assert problem.reason.endswith(f"is not {NAMES_IN_WORDS}")


@pytest.mark.parametrize("written", ["[1]", '["a", 1]', "5", "{a = 1}", "true", '[""]'])
def test_what_is_no_list_of_names_in_the_file_is_refused(tmp_path: Path, written: str) -> None:
    config = config_file(tmp_path, f"[mewbase]\nchannels = {written}\n")
    with pytest.raises(ConfigError) as caught:
        load({}, config)
    (problem,) = caught.value.problems
    assert problem.setting == f"{config}: mewbase.channels"
    assert problem.reason.endswith(f"is not {NAMES_IN_WORDS}")


@pytest.mark.parametrize(
    ("written", "host"),
    [("[::1]", "::1"), ("::1", "::1"), ("[fe80::1%eth0]", "fe80::1%eth0"), ("[a]", "[a]")],
)
def test_brackets_come_off_an_address_of_ipv6(written: str, host: str) -> None:
    settings = load({"--host": written, "--advertised-host": written}).settings
    assert (settings.stream.host, settings.stream.advertised_host) == (host, host)
