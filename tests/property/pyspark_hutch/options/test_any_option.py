"""Any options give settings, or one line of text that holds no password."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.options.table import OPTIONS
from pyspark_hutch.options.write_rules import write_settings

SECRET = "hunter2"

NAMES = st.sampled_from([option.name for option in OPTIONS.values()]) | st.text(max_size=20)
NUMBERS = st.integers(-3, 2**64).map(str)
WORDS = st.sampled_from(
    ["true", "false", "earliest", "latest", "dedup", "raw", "gzip", "-1", "-10 minutes", "a", "a,b"]
)
JSON = st.builds(
    "{{{}: {}}}".format,
    st.sampled_from(['"a"', '"b"', "1", ""]),
    st.sampled_from(["1", "-1", "1.5", "true", '"latest"', '{"o": 1}', "[0]", "[0, 0]", ""]),
)
OPTION_SETS = st.dictionaries(NAMES, st.text(max_size=30) | NUMBERS | WORDS | JSON, max_size=8)


@given(OPTION_SETS, st.booleans(), st.booleans())
def test_any_options_give_settings_or_one_line(
    options: dict[str, str],
    is_read: bool,  # noqa: FBT001  # drawn
    is_streaming: bool,  # noqa: FBT001  # drawn
) -> None:
    settings_of = read_settings if is_read else write_settings
    given_options = {"endpoints": "localhost", "stream": "a"} | options
    try:
        settings = settings_of(given_options, is_streaming=is_streaming)
    except WrongOption as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017  # either way is right
    else:
        assert pickle.loads(pickle.dumps(settings)) == settings


@given(OPTION_SETS, st.booleans())
def test_a_password_is_in_no_error(options: dict[str, str], is_read: bool) -> None:  # noqa: FBT001
    settings_of = read_settings if is_read else write_settings
    secrets = {"password": SECRET, "uri": f"rabbitmq-stream://u:{SECRET}@h/v"}
    try:
        settings = settings_of(options | secrets, is_streaming=False)
    except WrongOption as error:
        assert SECRET not in str(error)  # noqa: PT017  # either way is right
    else:
        assert SECRET not in repr(settings)
