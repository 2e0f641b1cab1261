"""No Python operation hides in a hot loop of a kernel: Cython's own annotation says so.

A constant that is not declared, a local without a type, an index that may be negative: each runs,
and each makes the loop several times slower. The loops are those between the comments `# hot` and
`# end of hot`; what they call is looked at too.
"""

import ast
import html
import re
from pathlib import Path

import pytest
from Cython.Compiler import Main

from gateway.kernels import KERNELS
from tests.property.gateway.kernel_builds import source_of

# Filter values are gathered in a set: the one thing of Python that a hot loop may do.
EXCUSED = {"_put_filter"}
LINE = re.compile(
    r"<pre class=\"cython line score-\d+\"[^>]*>(.*?)</pre>"
    r"(?:\s*<pre class='cython code score-\d+ *'>(.*?)</pre>)?",
    re.DOTALL,
)
# The C API of Python, reference counts, and the check for an exception after such a call. Cython's
# own macros (a memoryview's length) are C.
OPERATION = re.compile(r"<span class='(py_c_api|py_macro_api|refnanny|error_goto)'>")
SNIPPET = """# cython: language_level=3, boundscheck=False, wraparound=False
import cython

{constant}


@cython.cfunc
@cython.exceptval(check=False)
def _add(number: cython.longlong) -> cython.longlong:
    return number + 1


def count(limit: cython.longlong) -> cython.longlong:
    {declaration}
    # hot: nothing of Python
    while number < limit:
        number = _add(number) + STEP
    # end of hot
    return number
"""


def annotated(source: Path) -> dict[int, tuple[str, bool]]:
    """Each line of a source file, and whether it does something of Python."""
    options = Main.CompilationOptions(annotate=True, language_level=3)  # type: ignore[attr-defined,no-untyped-call]  # it has no types
    Main.compile_single(str(source), options, None)  # type: ignore[no-untyped-call]  # the same
    page = source.with_suffix(".html").read_text()
    lines: dict[int, tuple[str, bool]] = {}
    for text, code in LINE.findall(page):
        plain = html.unescape(re.sub(r"<[^>]+>", "", text))
        number, _, rest = plain.lstrip("+").partition(":")
        lines[int(number)] = (rest.rstrip("\n"), bool(OPERATION.search(code)))
    return lines


def hot_lines(source: str) -> set[int]:
    """The lines between the comments, and those of the functions called there, and so on."""
    tree = ast.parse(source)
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    hot: set[int] = set()
    is_hot = False
    for number, line in enumerate(source.splitlines(), 1):
        comment = line.strip()
        is_hot = (is_hot or comment.startswith("# hot")) and comment != "# end of hot"
        if is_hot:
            hot.add(number)
    seen = set(EXCUSED)
    while called := _called(tree, hot) & functions.keys() - seen:
        seen |= called
        for name in called:
            function = functions[name]
            assert function.end_lineno is not None
            hot |= set(range(function.body[0].lineno, function.end_lineno + 1))
    return hot


def _called(tree: ast.Module, lines: set[int]) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.lineno in lines
    }


def python_in_hot_lines(source: Path) -> list[str]:
    hot = hot_lines(source.read_text())
    assert len(hot) > 3, "no hot loop is marked"
    return [
        f"{number}: {text}"
        for number, (text, is_python) in annotated(source).items()
        if number in hot and is_python and not any(f"{each}(" in text for each in EXCUSED)
    ]


@pytest.mark.parametrize("name", KERNELS)
def test_a_hot_loop_does_nothing_of_python(name: str, tmp_path: Path) -> None:
    copy = tmp_path / source_of(name).name
    copy.write_text(source_of(name).read_text())
    types = source_of(name).with_suffix(".pxd")
    if types.exists():
        copy.with_suffix(".pxd").write_text(types.read_text())

    assert python_in_hot_lines(copy) == []


@pytest.mark.parametrize(
    ("constant", "declaration", "found"),
    [
        ("STEP = cython.declare(cython.longlong, 2)", "number: cython.longlong = 0", 0),
        ("STEP = 2", "number: cython.longlong = 0", 1),
        ("STEP = cython.declare(cython.longlong, 2)", "number: object = 0", 2),
    ],
    ids=["typed", "an undeclared constant", "an untyped local"],
)
def test_the_annotation_tells_python_from_c(
    tmp_path: Path, constant: str, declaration: str, found: int
) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET.format(constant=constant, declaration=declaration))

    assert len(python_in_hot_lines(snippet)) == found


def test_functions_that_a_hot_loop_calls_are_hot_and_their_callees() -> None:
    source = "def b():\n    return 2\ndef a():\n    return b()\n# hot\na()\n# end of hot\nc()\n"

    assert hot_lines(source) == {2, 4, 5, 6}
