"""Writes the options of `docs/spark.md`: `python -m pyspark_hutch.options.page PAGE`.

The page's own text stays as it is; the part between the markers is written anew from the table.
"""

import sys
from pathlib import Path
from typing import Final

from pyspark_hutch.options.option import READ, WRITE, Option, Use
from pyspark_hutch.options.table import TABLE

BEGIN: Final = "<!-- begin options -->"
END: Final = "<!-- end options -->"

_USES: Final = (
    (READ | WRITE, "all"),
    (READ, "reads"),
    (WRITE, "writes"),
    (Use.BATCH_READ, "batch reads"),
    (Use.STREAMING_READ, "streaming reads"),
    (Use.BATCH_WRITE, "batch writes"),
    (Use.STREAMING_WRITE, "streaming writes"),
)


def document() -> str:
    """Return a heading and a table for each group of options."""
    parts: list[str] = []
    for title, options in TABLE.items():
        parts += [f"### {title}", ""]
        parts += ["| option | for | takes | without it | meaning |", "|---|---|---|---|---|"]
        parts += [_row(option) for option in options]
        parts.append("")
    return "\n".join(parts)


def rewritten(page: str) -> str:
    """Return a page with the part between its markers written anew."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"the page lacks {BEGIN}"
    assert end, f"the page lacks {END}"
    return f"{before}{begin}\n\n{document()}\n{end}{after}"


def _row(option: Option) -> str:
    if option.kind is None:
        cells = ("", "", f"Refused: {option.meaning}.")
    else:
        default = option.without if option.default is None else f"`{option.default}`"
        cells = (option.kind.takes, default, option.meaning)
    words = dict(_USES)
    row = (f"`{option.name}`", words[option.uses], *(cell.replace("|", "\\|") for cell in cells))
    return f"| {' | '.join(row)} |"


def main(arguments: list[str]) -> int:
    """Write the options of the page that the argument names; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m pyspark_hutch.options.page docs/spark.md\n")
        return 2
    path = Path(arguments[0])
    path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
