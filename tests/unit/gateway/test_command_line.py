"""What a wrong command line is told."""

import pytest

from gateway import cli
from gateway.command_line import Parser, complain, did_you_mean


@pytest.fixture
def parser() -> Parser:
    parser = Parser("tool")
    parser.add_argument("--data")
    commands = parser.add_subparsers(metavar="COMMAND")
    commands.add_parser("list_users").add_argument("--kind", choices=("large", "small"))
    commands.add_parser("to-lake")
    return parser


def told(parser: Parser, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (("list_usrs",), "there is no command 'list_usrs'; did you mean list_users? "),
        (("list-usrs",), "there is no command 'list-usrs'; did you mean list_users? "),
        (("To_lak",), "there is no command 'To_lak'; did you mean to-lake? "),
        (("xyz",), "there is no command 'xyz'; "),
    ],
)
def test_a_command_that_is_not_there_is_answered_with_those_like_it(
    parser: Parser, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], end: str
) -> None:
    line = f"tool: error: {end}`tool --help` lists them"
    assert told(parser, capsys, *words) == line


def test_a_pointer_goes_before_what_is_like_it(
    parser: Parser, capsys: pytest.CaptureFixture[str]
) -> None:
    parser.pointer = lambda word: "go there" if word == "list_user" else ""
    assert (
        told(parser, capsys, "list_user")
        == "tool: error: there is no command 'list_user': go there"
    )
    assert "did you mean list_users" in told(parser, capsys, "list_usrs")


def test_a_value_that_is_none_of_the_choices_is_answered_with_those_like_it(
    parser: Parser, capsys: pytest.CaptureFixture[str]
) -> None:
    line = told(parser, capsys, "list_users", "--kind", "smal")
    assert line.endswith("argument --kind: 'smal' is none of large, small; did you mean small?")


def test_a_word_is_like_others_whatever_joins_its_parts() -> None:
    assert did_you_mean("to_lakes", ["to-lake", "copy"]) == "; did you mean to-lake?"
    assert did_you_mean("zzz", ["to-lake", "copy"]) == ""


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("confg", "; did you mean config? `hutch --help`"),
        ("pipeline to-lak", "there is no job 'to-lak'; did you mean to-lake?"),
        ("store chek", "there is no action 'chek'; did you mean check?"),
        ("ctl list_strems", "did you mean list_streams"),
        ("ctl list_queues", "queues are streams here, see `hutch ctl list_streams`"),
        ("ctl list-queues", "queues are streams here, see `hutch ctl list_streams`"),
        ("list_queues", "queues are streams here, see `hutch ctl list_streams`"),
        ("list-users", "it is `hutch ctl list_users`"),
        (
            "serve --durabilty os",
            "unrecognized arguments: --durabilty os; did you mean --durability",
        ),
        ("config --referenc=1", "did you mean --reference?"),
        ("ctl add_user app --tag a", "did you mean --tags"),
        ("store check --repare", "did you mean --repair?"),
        ("pipeline to-lake s d --format parqet", "did you mean parquet?"),
        ("hash-password --algorithm sha-256", "did you mean sha256"),
        ("ctl set_alarm dsk", "did you mean disk?"),
    ],
)
def test_every_command_line_of_hutch_says_what_was_probably_meant(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words.split())
    assert ended.value.code == 2
    assert meant in capsys.readouterr().err.splitlines()[-1]


def test_what_is_wrong_is_written_line_by_line_and_gives_the_exit_status(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert complain("one\ntwo \x1b[2J", 2) == 2

    assert capsys.readouterr() == ("", "hutch: one\nhutch: two \\x1b[2J\n")
