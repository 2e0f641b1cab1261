"""The page of a report: one file of HTML with its plots in it, which needs nothing beside it."""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pyspark_hutch.jobs.errors import cut
from pyspark_hutch.jobs.runs.progress import duration, megabytes
from pyspark_hutch.jobs.statistics import Statistics, bin_end

TOP_KEYS: Final = 20
KEY_CHARACTERS_MAX: Final = 60
DAY_MS: Final = 86_400_000  # matplotlib counts days since 1970
WIDTH_IN: Final = 9.0
HEIGHT_IN: Final = 2.8
_COLOUR: Final = "#2a6f97"
_SETTINGS: Final[Any] = {"svg.hashsalt": "hutch", "svg.fonttype": "none", "font.size": 9}
"""Salt of the names within a plot: with a fixed one, equal rows give equal pages."""

_NAMES: Final = re.compile(r'(?<= id=")|(?<=href="#)|(?<=url\(#)')

_STYLE: Final = """\
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; color: #222; }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse } td, th { padding: .15rem .8rem .15rem 0; text-align: left }
td.n { text-align: right; font-variant-numeric: tabular-nums } svg { max-width: 100%; height: auto }
"""


def page(title: str, found: Statistics) -> str:
    """Return the page."""
    parts = [_summary(found)]
    if found.total.rows:
        parts += [_rates(found), _sizes(found), _streams(found), _keys(found), _gaps(found)]
    heading = escape(title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{heading}</title>\n'
        f"<style>{_STYLE}</style></head><body>\n<h1>{heading}</h1>\n"
        f"{''.join(parts)}</body></html>\n"
    )


def _summary(found: Statistics) -> str:
    total = found.total
    rows = [("rows", f"{total.rows:,}"), ("bytes of bodies", f"{total.size:,}")]
    if total.rows:
        speed = f"{total.rows / found.seconds:,.1f}" if found.seconds else "-"
        rows += [
            ("first row", _time(found.first_ms)),
            ("last row", _time(found.last_ms)),
            ("time between", duration(found.seconds)),
            ("rows/s on average", speed),
            ("smallest body", f"{found.smallest:,} B"),
            ("average body", f"{total.size / total.rows:,.1f} B"),
            ("largest body", f"{found.largest:,} B"),
        ]
        rows += [
            (f"{share:.0%} of bodies have at most", f"about {found.percentile(share):,} B")
            for share in (0.5, 0.95, 0.99)
        ]
    return _table(rows)


def _rates(found: Statistics) -> str:
    seconds = found.curve.width_ms / 1000
    points = list(found.curve.points())
    days = [at / DAY_MS for at, _ in points]

    def drawn(name: str, values: Sequence[float]) -> str:
        def draw(axes: Axes) -> None:
            axes.fill_between(days, values, step="post", color=_COLOUR, alpha=0.35)
            axes.step(days, values, where="post", color=_COLOUR, linewidth=1)
            axes.xaxis_date(UTC)

        return _plot(name, draw)

    rows = drawn("rows/s", [each.rows / seconds for _, each in points])
    sizes = drawn("MB/s", [each.size / seconds / 1e6 for _, each in points])
    said = f"<p>By the time at which the server stored them, in steps of {seconds:,.0f} s.</p>\n"
    return f"<h2>Rates</h2>\n{said}{rows}{sizes}"


def _sizes(found: Statistics) -> str:
    bins = range(min(found.sizes), max(found.sizes) + 1)

    def draw(axes: Axes) -> None:
        axes.bar(bins, [found.sizes[each] for each in bins], width=1.0, color=_COLOUR)
        ticks = bins[:: max(1, len(bins) // 12)]
        axes.set_xticks(ticks, [f"{bin_end(each):,}" for each in ticks])

    return f"<h2>Sizes</h2>\n{_plot('rows', draw, 'bytes of the body, at most')}"


def _streams(found: Statistics) -> str:
    rows = [
        (name, f"{each.rows:,}", megabytes(each.size), f"{each.rows / found.total.rows:.1%}")
        for name, each in sorted(found.streams.items())
    ]
    return f"<h2>Streams</h2>\n{_table(rows, 'stream', 'rows', 'size', 'share')}"


def _keys(found: Statistics) -> str:
    if not found.keys:
        return ""
    top = found.keys.most_common(TOP_KEYS)
    count = f"more than {len(found.keys):,}" if found.keys_dropped else f"{len(found.keys):,}"
    about = " Counts are lower bounds." if found.keys_dropped else ""
    said = f"<p>{count} keys; the {len(top)} most frequent.{about}</p>\n"

    def draw(axes: Axes) -> None:
        axes.bar(range(len(top)), [count for _, count in top], color=_COLOUR)
        axes.set_xticks([])

    plot = _plot("rows", draw, "keys, as in the table")
    rows = [
        (cut(key, KEY_CHARACTERS_MAX), f"{count:,}", f"{count / found.total.rows:.1%}")
        for key, count in top
    ]
    return f"<h2>Keys</h2>\n{said}{plot}{_table(rows, 'key', 'rows', 'share')}"


def _gaps(found: Statistics) -> str:
    if not found.gaps:
        return ""
    rows = [
        (each.stream, f"{each.length_ms / 1000:,.3f} s", _time(each.from_ms), _time(each.to_ms))
        for each in found.gaps
    ]
    said = "<p>The longest times in which a stream got no row, by the times of its chunks.</p>\n"
    return f"<h2>Gaps</h2>\n{said}{_table(rows, 'stream', 'length', 'from', 'to')}"


def _plot(name: str, draw: Callable[[Axes], None], below: str = "") -> str:
    """Return a plot as an element of the page.

    Args:
        name: Of its vertical axis.
        draw: Draws into it.
        below: Name of its horizontal axis.
    """
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.set(xlabel=below, ylabel=name)
        axes.set_ylim(bottom=0)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]  # without the head of a file of its own
    # Each plot begins to name its parts anew, and names are unique within a page.
    prefix = "".join(filter(str.isalnum, f"{name}{below}"))
    return f"{_NAMES.sub(f'{prefix}-', text)}\n"


def _table(rows: Iterable[Sequence[str]], *heads: str) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    lines = [f"<tr>{head}</tr>\n"] if heads else []
    for first, *others in rows:
        cells = "".join(f'<td class="n">{escape(each)}</td>' for each in others)
        lines.append(f"<tr><td>{escape(_printable(first))}</td>{cells}</tr>\n")
    return f"<table>{''.join(lines)}</table>\n"


def _time(ms: int | None) -> str:
    if ms is None:
        return "-"
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(" ", "milliseconds")
    return text.replace("+00:00", " UTC")


def _printable(text: str) -> str:
    """Return a text with escapes for control characters, which a page may not have."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
