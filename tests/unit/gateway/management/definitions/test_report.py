from gateway.management.definitions.report import (
    ImportOutcome,
    ReportRow,
    report_table,
    sums,
    table,
)

ROWS = [
    ReportRow("user", "", "app", ImportOutcome.IMPORTED),
    ReportRow("stream", "/", "log", ImportOutcome.ADAPTED, "argument x-a left out"),
    ReportRow("queue", "/", "work", ImportOutcome.SKIPPED, "is a classic queue, not a stream"),
]


def test_the_report_has_a_line_for_each_object_and_the_sums() -> None:
    lines = report_table(ROWS).splitlines()

    assert [line.split()[0] for line in lines if line] == [
        "outcome",
        "imported",
        "adapted",
        "skipped",
        "1",
    ]
    assert lines[3].endswith("is a classic queue, not a stream")
    assert lines[-1] == "1 imported, 1 adapted, 1 skipped"


def test_a_report_of_nothing_has_the_sums_alone() -> None:
    assert report_table([]) == "0 imported, 0 adapted, 0 skipped\n"


def test_names_cannot_move_the_cursor_nor_begin_a_line() -> None:
    text = table(("name", "why"), [("a\nb\x1b[2J\x9b", "c\u202ed\ud800\u2028")])

    assert text.splitlines()[1] == "a\\x0ab\\x1b[2J\\x9b  c\\u202ed\\ud800\\u2028"
    text.encode()


def test_a_long_name_is_cut_and_a_long_reason_is_not() -> None:
    line = table(("name", "why"), [("n" * 500, "w" * 500)]).splitlines()[1]

    assert "w" * 500 in line
    assert "n" * 100 not in line


def test_the_sums_of_nothing_are_zeros() -> None:
    assert sums([]) == "0 imported, 0 adapted, 0 skipped"
