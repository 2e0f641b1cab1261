"""`hutch pipeline`: files to streams, streams to streams, reports; from the command to the rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway import cli
from pyspark_hutch.jobs.errors import JobFailed
from tests.spark.commands import ROOT, Run, json_bodies, run
from tests.spark.conftest import Place, Read
from tests.spark.publishing import append, create_super_stream, publish

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

    assert run("from-files", tmp_path / "a.json", stream, "--to-option", "createStream=true") == 0

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


def test_what_a_lake_holds_goes_back_to_a_super_stream_by_key(
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


@pytest.mark.parametrize(
    ("content", "arguments", "code", "said"),
    [
        ('{"n":1}\nnope\n', (), 1, r"hutch: .*a\.json cannot be read: \[MALFORMED_RECORD"),
        ('{"n":1}\n', ("--key", "user"), 2, "hutch: the files have no column 'user': n"),
        ('{"n":1}\n', ("--body", "m"), 2, "hutch: the files have no column 'm': n"),
    ],
)
def test_files_that_cannot_be_published_are_one_line(
    content: str,
    arguments: tuple[str, ...],
    code: int,
    said: str,
    run: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a.json").write_text(content)

    assert run("from-files", tmp_path / "a.json", "orders", *arguments) == code

    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(said, line)


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


# --------------------------------------------------------------------------------------- report


def test_a_report_has_what_the_stream_holds(
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


def test_without_java_one_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pyspark_hutch.jobs.session import session

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JobFailed, match="Spark needs Java 17 or later"), session("x"):
        pass


def test_the_archive_of_what_is_installed_is_that_of_the_sources(tmp_path: Path) -> None:
    from pyspark_hutch.jobs.archive import write_archive

    write_archive(tmp_path / "sources.zip", ROOT / "pyspark_hutch")

    assert cli.main(["pipeline", "zip", str(tmp_path / "installed.zip")]) == 0

    installed = (tmp_path / "installed.zip").read_bytes()
    assert installed == (tmp_path / "sources.zip").read_bytes()
