from pyspark_hutch.jobs.errors import LINE_CHARACTERS_MAX, in_one_line

WRAPPED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Python source:
Traceback (most recent call last):
  File "streaming.py", line 57, in initialOffset
    return document_of(self._planner.begin())
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hutch.client.errors.Refused: stream 'nope' does not exist

SQLSTATE: XXKST
\tat org.apache.spark.SparkError.x(SparkError.scala:1): java.lang.Error: deep
"""


def test_of_a_wrapped_error_of_python_its_own_line_is_left() -> None:
    assert in_one_line(ValueError(WRAPPED)) == "stream 'nope' does not exist"


def test_of_another_error_the_first_line_is_left() -> None:
    assert in_one_line(ValueError("Java heap space\n\tat a.b(c.scala:1)")) == "Java heap space"


def test_of_an_error_of_the_jvm_its_message_is_left() -> None:
    text = "An error occurred while calling o1.load.\n: org.apache.spark.E: [BAD] rows.\nMode: X"

    assert in_one_line(ValueError(text)) == "[BAD] rows."


def test_of_an_error_that_ended_a_query_its_message_is_left() -> None:
    text = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: it is full"

    assert in_one_line(ValueError(text)) == "it is full"


def test_an_error_of_the_jvm_has_the_cause_of_its_causes() -> None:
    text = """An error occurred while calling o92.parquet.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed.
\tat org.apache.spark.X.y(X.scala:1)
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\tat org.apache.hadoop.fs.Y.z(Y.java:1)
Caused by: java.io.IOException: No space left on device
"""

    assert in_one_line(ValueError(text)) == (
        "[TASK_WRITE_FAILED] Task failed. (No space left on device)"
    )


def test_an_error_without_a_text_is_named() -> None:
    assert in_one_line(KeyError()) == "KeyError"


def test_a_long_line_is_cut() -> None:
    assert len(in_one_line(ValueError("x" * 10_000))) == LINE_CHARACTERS_MAX


# A line of source that looks like the last line of a traceback, and an error with a cause.
CHAINED = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "connection.py", line 75, in __init__
    self.product: Final = shake_hands(self, endpoint, settings, name)
                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
KeyError: 'token'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "login.py", line 124, in _log_in
    Final = raise_it()
hutch.client.errors.Refused: localhost:5552 refused user 'guest'
 SQLSTATE: 38000
=== Streaming Query ===
Identifier: [id = 1]
"""


def test_of_a_chain_of_errors_the_last_is_left_and_no_line_of_source() -> None:
    assert in_one_line(ValueError(CHAINED)) == "localhost:5552 refused user 'guest'"


def test_a_builtin_error_keeps_its_name() -> None:
    text = CHAINED.split("\n\nDuring", maxsplit=1)[0]

    assert in_one_line(ValueError(text)) == "KeyError: 'token'"
