import ast
import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from gateway.logs import AGAIN_S, JsonLines, NameInHost, RateLimitedLog, TextLines, configure
from gateway.settings.model import LogFormat, LogLevel, LogsSettings
from tests.tidy.sources import SOURCES, name_of


@pytest.fixture
def restored_root() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(capture=False)


def record_of(message: str, *arguments: object) -> logging.LogRecord:
    record = logging.LogRecord("gateway.part", logging.WARNING, "", 0, message, arguments, None)
    record.created = 1_000_000_000.1234
    return record


def test_a_text_line_has_time_level_logger_and_message() -> None:
    record = record_of("heartbeat missed peer=%s count=%d", "1.2.3.4:5", 2)

    assert TextLines().format(record) == (
        "2001-09-09T01:46:40.123Z WARNING gateway.part: heartbeat missed peer=1.2.3.4:5 count=2"
    )


def test_a_name_cannot_begin_a_line_of_its_own() -> None:
    line = TextLines().format(record_of("stream created stream=%s", "a\nERROR\x1b[2J\x9b"))

    assert line.endswith("stream=a\\x0aERROR\\x1b[2J\\x9b")


def test_a_name_cannot_turn_or_break_a_line_by_other_means() -> None:
    line = TextLines().format(record_of("stream created stream=%s", "a\u2028b\u202ec\u2067\ud800"))

    assert line.endswith("stream=a\\u2028b\\u202ec\\u2067\\ud800")


def test_a_stream_is_named_with_its_virtual_host_and_in_json_by_a_field_of_its_own() -> None:
    record = record_of("stream failed stream=%s bytes=%d", NameInHost("orders", "eu"), 7)

    line = json.loads(JsonLines().format(record))

    assert (
        TextLines().format(record).endswith(": stream failed stream=orders virtual_host=eu bytes=7")
    )
    assert (line["stream"], line["virtual_host"], line["bytes"]) == ("orders", "eu", 7)


def test_a_json_line_has_the_sentence_and_each_key_as_a_field() -> None:
    record = record_of("stream created stream=%s bytes=%d name=%r ok=%s", "a\nb", 7, "x", None)

    assert json.loads(JsonLines().format(record)) == {
        "time": "2001-09-09T01:46:40.123Z",
        "level": "warning",
        "logger": "gateway.part",
        "message": "stream created",
        "stream": "a\nb",
        "bytes": 7,
        "name": "'x'",
        "ok": None,
    }


def test_values_before_the_first_key_belong_to_the_sentence() -> None:
    record = record_of("%s created name=%s by=%r", "stream", "s/t", "app")

    line = json.loads(JsonLines().format(record))
    assert (line["message"], line["name"], line["by"]) == ("stream created", "s/t", "'app'")


def templates() -> Iterator[tuple[str, str]]:
    """Yield each line with keys that the server's sources have, and its place."""
    for path in SOURCES:
        if name_of(path).startswith(("gateway", "store")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match node:
                    case ast.Constant(value=str(line)) if re.search(r"\w=%[-+ #0-9.]*[a-z]", line):
                        yield f"{name_of(path)}:{node.lineno}", line


def test_every_key_of_every_line_is_a_field_in_json() -> None:
    value = re.compile(r"%[-+ #0-9.]*[a-zA-Z]")
    offenders = []
    for place, line in templates():
        names = re.findall(r"(\w+)=%", line)
        first = line.index(f"{names[0]}=%")
        behind = line[first:]
        if len(value.findall(behind)) != len(names):
            offenders.append(f"{place} {line}")

    assert offenders == []


def test_a_json_record_is_one_line() -> None:
    assert "\n" not in JsonLines().format(record_of("stream created stream=%s", "a\nb\u2028c"))


def test_a_key_cannot_stand_in_for_the_level() -> None:
    line = json.loads(JsonLines().format(record_of("odd level=%s", "error")))

    assert line["level"] == "warning"


@pytest.mark.parametrize(
    ("message", "arguments", "expected"),
    [
        ("plain", (), "plain"),
        ("at %s/%d port=%d of %d", ("here", 1, 2, 3), "at here/1 port=2 of 3"),
        ("100%", (), "100%"),
    ],
)
def test_a_record_of_another_shape_is_all_message(
    message: str, arguments: tuple[object, ...], expected: str
) -> None:
    assert json.loads(JsonLines().format(record_of(message, *arguments)))["message"] == expected


def test_a_traceback_follows_the_line_or_is_a_field() -> None:
    record = record_of("connection failed peer=%s", "x")
    try:
        int("told")
    except ValueError:
        record.exc_info = sys.exc_info()

    text = TextLines().format(record).splitlines()
    fields = json.loads(JsonLines().format(record))

    assert text[1] == "Traceback (most recent call last):"
    assert text[-1].startswith("ValueError: ")
    assert fields["traceback"].endswith(text[-1])


@pytest.mark.parametrize("log_format", LogFormat)
def test_logs_go_to_standard_error_from_their_level_on(
    log_format: LogFormat, restored_root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(LogsSettings(level=LogLevel.WARNING, format=log_format))

    restored_root.info("unheard")
    restored_root.warning("heard")

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert "heard" in output.err


def test_a_line_is_said_at_once_and_then_seldom_with_a_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [100.0]
    seldom = RateLimitedLog(logging.getLogger("gateway"), "refused name=%s", lambda: now[0])
    for number in range(1_000):
        seldom.error(number)
    now[0] += AGAIN_S
    seldom.error("last")
    assert caplog.messages == ["refused name=0 unsaid=0", "refused name=last unsaid=999"]
