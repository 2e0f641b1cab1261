from pyspark_hutch.jobs.errors import LINE_CHARACTERS_MAX, in_one_line

WRAPPED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Python source:
Traceback (most recent call last):
  File "streaming.py", line 57, in initialOffset
    return document_of(self._planner.begin())
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
pyspark_hutch.client.errors.Refused: stream 'nope' does not exist

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


def test_an_error_without_a_text_is_named() -> None:
    assert in_one_line(KeyError()) == "KeyError"


def test_a_long_line_is_cut() -> None:
    assert len(in_one_line(ValueError("x" * 10_000))) == LINE_CHARACTERS_MAX
