"""Every module says where it is tested: in a file of its own, or in one that a list names."""

from pathlib import Path

from tests.tidy.sources import ROOT, SHIPPED, SOURCES, name_of

LIST = ROOT / "tests" / "tidy" / "tested_elsewhere.txt"
"""A module that has no test file of its own, and the file under `tests` that holds it, per line."""
TESTED_ELSEWHERE = [
    line.split() for line in LIST.read_text(encoding="utf-8").splitlines() if line[:1] != "#"
]


def modules() -> list[Path]:
    """Return the modules that are shipped, but for generated ones and packages' own."""
    return [
        path
        for folder in SHIPPED
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "__init__.py" and path in SOURCES
    ]


def has_own_tests(module: Path) -> bool:
    folder = ROOT / "tests" / "unit" / module.relative_to(ROOT).parent
    return (folder / f"test_{module.name}").exists()


def test_every_module_has_its_own_tests_or_a_line_in_the_list() -> None:
    wanted = [name_of(module) for module in modules() if not has_own_tests(module)]
    listed = [module for module, _ in TESTED_ELSEWHERE]

    assert [name for name in wanted if name not in listed] == []
    assert [name for name in listed if name not in wanted] == [], "its own tests, or gone"


def test_the_list_is_in_order_and_names_tests_that_exist() -> None:
    listed = [module for module, _ in TESTED_ELSEWHERE]

    assert listed == sorted(set(listed))
    assert [test for _, test in TESTED_ELSEWHERE if not (ROOT / "tests" / test).exists()] == []
