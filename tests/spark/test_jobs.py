"""`hutch pipeline`: files to streams, streams to streams, reports; from the command to the rows."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gateway import cli
from pyspark_hutch.jobs.errors import JobFailed
from tests.sink_rig import FakeSink
from tests.spark.commands import ROOT, Run, json_bodies, run
from tests.spark.conftest import Place, Read
from tests.spark.publishing import append, create_super_stream, publish
from tests.spark.queries import uncommit

__all__ = ["run"]

FUNCTIONS = """
import pyarrow as pa

def price(row):
    if row["offset"] % 100 == 7:
        raise ValueError("unlucky")
    row["body"]["price"] = row["body"]["n"] * 2
    row["application_properties"]["from"] = row["stream"]
    return row

def upper(batch):
    bodies = [body.upper() for body in batch.column("body").to_pylist()]
    return pa.RecordBatch.from_pydict({"body": bodies})
"""


# ----------------------------------------------------------------------------------- from-files


def bodies(read: Read, place: Place, stream: str) -> list[bytes]:
    return [bytes(row.body) for row in read(place, stream=stream).collect()]


def test_json_lines_become_messages_of_json(
    run: Run, read: Read, place: Place, stream: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_bytes(b"\n".join(json_bodies(10)))

    file = f"{tmp_path}/./a.json"  # a path that is not the one that Spark makes of it
    assert run("from-files", file, stream, "--to-option", "createStream=true") == 0

    assert sorted(bodies(read, place, stream)) == sorted(json_bodies(10))


def test_files_of_csv_are_published_once_with_a_checkpoint(
    run: Run, read: Read, place: Place, stream: str, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.csv").write_text("city,n\nKöln,1\n")
    job = ("from-files", folder, stream, "--format", "csv", "--checkpoint", tmp_path / "notes")

    assert run(*job, "--to-option", "createStream=true") == 0
    (folder / "b.csv").write_text("city,n\nBonn,2\n")
    assert run(*job) == 0

    assert bodies(read, place, stream) == [
        '{"city":"Köln","n":1}'.encode(),
        b'{"city":"Bonn","n":2}',
    ]


def test_rows_of_a_lake_go_back_to_a_super_stream_by_key(
    run: Run, read: Read, place: Place, stream: str, tmp_path: Path
) -> None:
    with place.client() as client:
        publish(client, stream, json_bodies(100))
        create_super_stream(client, f"{stream}-all", 2)
    assert run("to-lake", stream, tmp_path / "lake") == 0

    code = run(
        "from-files", tmp_path / "lake", f"{stream}-all", "--format", "parquet", "--key", "offset",
        "--to-super-stream",
    )  # fmt: skip

    assert code == 0
    rows = read(place, superStream=f"{stream}-all").collect()
    assert sorted(bytes(row.body) for row in rows) == sorted(json_bodies(100))
    assert {row.partition for row in rows} == {0, 1}


def test_files_of_a_job_that_was_killed_behind_its_commit_are_published_once(
    run: Run, read: Read, place: Place, stream: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_bytes(b"\n".join(json_bodies(10)))
    job = ("from-files", tmp_path / "a.json", stream, "--checkpoint", tmp_path / "notes")

    assert run(*job, "--to-option", "createStream=true") == 0
    uncommit(tmp_path / "notes")
    assert run(*job) == 0

    assert sorted(bodies(read, place, stream)) == sorted(json_bodies(10))


@pytest.mark.parametrize(
    ("file", "arguments", "code", "said"),
    [
        (("a.json", '{"n":1}\nnope\n'), (), 1, r".*a\.json cannot be read: \[MALFORMED_RECORD"),
        (("a.json", '{"n":1}\n'), ("--key", "user"), 2, "the files have no column 'user': n"),
        (("a.json", '{"n":1}\n'), ("--body", "m"), 2, "the files have no column 'm': n"),
        (("a.json", ""), (), 2, r".*a\.json has no file with anything in it"),
        (("a.csv", "m,n\n1,2,3\n"), (), 1, r"\[FAILED_READ_FILE.* reading file .*/a\.csv"),
    ],
)
def test_files_that_cannot_be_published_are_one_line(
    file: tuple[str, str],
    arguments: tuple[str, ...],
    code: int,
    said: str,
    run: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, content = file
    (tmp_path / name).write_text(content)

    assert run("from-files", tmp_path / name, "orders", *arguments) == code

    line = capsys.readouterr().err.splitlines()[-1]
    assert re.match(f"hutch: {said}", line)


# ----------------------------------------------------------------------------------------- copy


def test_rows_go_through_a_function_and_bad_ones_to_a_stream_with_the_reason(
    run: Run, read: Read, place: Place, stream: str, tmp_path: Path
) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    given = json_bodies(300)
    given[5] = b"nope"
    with place.client() as client:
        publish(client, stream, given)

    code = run(
        "copy", stream, f"{stream}-to", "--with", f"{tmp_path}/functions.py:price", "--json",
        "--bad-rows", f"{stream}-bad", "--checkpoint", tmp_path / "notes", "--to-option",
        "createStream=true",
    )  # fmt: skip

    assert code == 0
    good = read(place, stream=f"{stream}-to", includeProperties="true").collect()
    bad = read(place, stream=f"{stream}-bad", includeProperties="true").collect()
    assert len(good) == 296
    assert bytes(good[1].body) == b'{"n":1,"user":"u1","price":2}'
    assert good[1].application_properties == {"from": stream}
    reasons = {int(row.application_properties["dead-letter-offset"]): row for row in bad}
    assert sorted(reasons) == [5, 7, 107, 207]
    assert bytes(reasons[5].body) == b"nope"
    assert reasons[7].application_properties == {
        "dead-letter-reason": "ValueError: unlucky",
        "dead-letter-stream": stream,
        "dead-letter-offset": "7",
    }


def test_rows_of_a_job_that_was_killed_behind_its_commit_are_copied_once(
    run: Run, read: Read, place: Place, stream: str, tmp_path: Path
) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    with place.client() as client:
        publish(client, stream, json_bodies(200))
    job = (
        "copy", stream, f"{stream}-to", "--with", f"{tmp_path}/functions.py:price", "--json",
        "--bad-rows", f"{stream}-bad", "--checkpoint", tmp_path / "notes", "--to-option",
        "createStream=true",
    )  # fmt: skip

    assert run(*job) == 0
    uncommit(tmp_path / "notes")
    assert run(*job) == 0

    assert len(bodies(read, place, f"{stream}-to")) == 198
    assert len(bodies(read, place, f"{stream}-bad")) == 2


def test_a_function_of_batches_leaves_bad_rows_out_and_goes_on_where_it_was(
    run: Run,
    read: Read,
    place: Place,
    stream: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    job = (
        "copy", stream, f"{stream}-to", "--with", f"{tmp_path}/functions.py:upper", "--batches",
        "--json", "--bad-rows", "drop", "--checkpoint", tmp_path / "notes",
    )  # fmt: skip
    with place.client() as client:
        client.create(f"{stream}-to")
        publish(client, stream, [b'{"a":1}', b"nope", b'{"b":1}'])
        assert run(*job) == 0
        assert "hutch: 1 bad rows were left out\n" in capsys.readouterr().err
        append(client, stream, [b'{"c":1}'])
        assert run(*job) == 0

    assert bodies(read, place, f"{stream}-to") == [b'{"A":1}', b'{"B":1}', b'{"C":1}']


def test_a_bad_row_ends_a_copy_that_is_told_nothing_else(
    run: Run,
    place: Place,
    stream: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with place.client() as client:
        client.create(f"{stream}-to")
        publish(client, stream, [b"1", b"nope"])

    code = run("copy", stream, f"{stream}-to", "--json", "--checkpoint", tmp_path / "notes")

    assert code == 1
    said = f"hutch: row at offset 1 of stream '{stream}': the body is not JSON"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("bad_rows", ["fail", "orders"])
def test_a_stream_is_not_copied_to_itself(
    bad_rows: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = "orders" if bad_rows == "fail" else "others"

    code = run("copy", "orders", target, "--bad-rows", bad_rows, "--checkpoint", tmp_path)

    assert code == 2
    assert capsys.readouterr().err == "hutch: orders cannot be copied to itself\n"


# --------------------------------------------------------------------------------------- report


def test_a_report_has_the_rows_sizes_and_keys_of_the_stream(
    run: Run, place: Place, stream: str, tmp_path: Path
) -> None:
    with place.client() as client:
        publish(client, stream, json_bodies(300))

    key = "get_json_object(string(body), '$.user')"
    assert run("report", stream, tmp_path / "page.html", "--key", key) == 0

    page = (tmp_path / "page.html").read_text()
    size = sum(map(len, json_bodies(300)))
    for text in (stream, '<td>rows</td><td class="n">300</td>', f"{size / 300:,.1f} B", "3 keys"):
        assert text in page
    assert page.count("<svg") == 4
    for user in ("u0", "u1", "u2"):
        assert f'<td>{user}</td><td class="n">100</td><td class="n">33.3%</td>' in page
    for outside in ("<script", "<link", "src=", "url(http"):
        assert outside not in page
    check_page(page)


class Elements(HTMLParser):
    """Checks that elements which begin also end, and gathers their ids."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [str(value) for name, value in attrs if name == "id"]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(page: str) -> None:
    """Check that a page has well-formed elements, unique ids and no control characters."""
    elements = Elements()
    elements.feed(page)
    assert elements.open == []
    assert len(elements.ids) == len(set(elements.ids))
    assert all(character.isprintable() or character == "\n" for character in page)
    for name in re.findall(r'(?:href="|url\()#([^")]+)', page):
        assert name in elements.ids


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_page_about_odd_rows_is_whole(count: int) -> None:
    from pyspark_hutch.jobs.report_page import page
    from pyspark_hutch.jobs.statistics import RowGroup, Statistics

    found = Statistics()
    sizes = [0, 1, 2**31 - 1][:count]
    found.add(
        RowGroup("a<b", at, -1 if not size else 0, 1, size, size, size)
        for at, size in enumerate(sizes)
    )
    found.add_keys([("\x00\x1b\n", 1), ("<script>", 1), ("ü" * 1_000, 1), (None, 1)][:count])

    text = page("a<b", found)

    check_page(text)
    assert ("\\x00\\x1b\\n" in text) == (count > 0)
    assert "<script" not in text


def test_a_page_that_cannot_be_written_is_told_before_anything_is_read(
    run: Run, place: Place, stream: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with place.client() as client:
        publish(client, stream, [b"x"])

    for file, reason in (
        (tmp_path / "no" / "x.html", "No such file"),
        (tmp_path, "it is a folder"),
    ):
        assert run("report", stream, file) == 1
        said = capsys.readouterr().err
        assert said.startswith(f"hutch: cannot write {file}: {reason}")
        assert "rows" not in said


def test_a_key_that_is_no_expression_is_one_line(
    run: Run,
    place: Place,
    stream: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with place.client() as client:
        client.create(stream)

    assert run("report", stream, tmp_path / "page.html", "--key", "nope(") == 2
    assert "hutch: key 'nope(': " in capsys.readouterr().err


# ------------------------------------------------------------------------------ what all share


def test_batches_are_saved_once_where_the_server_and_the_columns_let_them(place: Place) -> None:
    from pyspark_hutch.jobs.runs.saves import saves_once

    ours = place.options | {"stream": "a"}
    with FakeSink("a") as other:
        others = {"endpoints": f"{other.host}:{other.port}", "stream": "a"}

        assert saves_once(ours, ["body"])
        assert not saves_once(ours, ["body", "filter_value"])
        assert not saves_once(ours | {"delivery": "none"}, ["body"])
        assert not saves_once(others, ["body"])
        with pytest.raises(JobFailed, match="has no staged writing, which needs Hutch"):
            saves_once(others | {"delivery": "staged"}, ["body"])


def test_without_java_one_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pyspark_hutch.jobs.session import session

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JobFailed, match="Spark needs Java 17 or later"), session("x"):
        pass


def test_rows_done_are_shown_with_the_lag_of_the_same_moment() -> None:
    from pyspark_hutch.jobs.runs.batches import JobResult, _Handler

    handler = _Handler(lambda _batch, name: JobResult(rows=10 * name.number))
    handler.query.set_result("query")
    unused: Any = None
    handler(unused, 1)
    handler(unused, 2)

    assert handler.done_by(None).rows == 30
    assert handler.done_by({"batchId": 1}).rows == 10, "its lag has the rows of the second batch"
    assert handler.done_by({"batchId": 2}).rows == 30


def test_a_spark_that_does_not_start_is_told_by_what_it_logged_first(tmp_path: Path) -> None:
    from pyspark_hutch.jobs.session import _cause

    stopped = RuntimeError("Cannot call methods on a stopped SparkContext.")
    log = tmp_path / "stderr.log"

    exited = RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited.")
    log.write_text("WARNING: modules\nInvalid maximum heap size: -Xmx-1g\nError: A fatal one.\n")
    assert _cause(exited, log) == "Invalid maximum heap size: -Xmx-1g"
    assert _cause(stopped, log) == str(stopped)
    log.write_text("12:00:00 ERROR A$B: all masters are gone\n12:00:01 ERROR C: no context\n\tat d")
    assert _cause(stopped, log) == "all masters are gone"


def test_the_archive_of_the_installed_package_is_that_of_the_sources(tmp_path: Path) -> None:
    from pyspark_hutch.jobs.output import write_archive

    write_archive(tmp_path / "sources.zip", ROOT)

    assert cli.main(["pipeline", "zip", str(tmp_path / "installed.zip")]) == 0

    installed = (tmp_path / "installed.zip").read_bytes()
    assert installed == (tmp_path / "sources.zip").read_bytes()
