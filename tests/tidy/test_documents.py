"""What the documents promise is there."""

import configparser
import re
import subprocess
from pathlib import Path

import pytest

from gateway import cli
from tests.tidy.sources import SHIPPED, SOURCES, name_of
from tests.waiting import HANG_S

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
RECORDS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    targets = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]

    for target in targets:
        if target and "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_command_in_a_document_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    named = re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)

    assert set(named) <= TARGETS


def test_every_make_command_has_its_line_of_help() -> None:
    commands = set(re.findall(r"^([a-z-]+):(?!=)", MAKEFILE, re.MULTILINE))

    assert commands == set(re.findall(r"^([a-z-]+):.*## \S", MAKEFILE, re.MULTILINE))


def test_every_command_of_hutch_is_in_a_document() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)

    for command in cli._COMMANDS:
        assert f"hutch {command}" in text, command


@pytest.mark.parametrize("record", RECORDS, ids=name_of)
def test_a_decision_record_has_all_its_parts(record: Path) -> None:
    template = (ROOT / "docs" / "adr" / "0000-template.md").read_text(encoding="utf-8")
    parts = re.findall(r"^## .+$", template, re.MULTILINE)
    text = record.read_text(encoding="utf-8")

    assert re.findall(r"^## .+$", text, re.MULTILINE) == parts
    assert re.search(r"^- Status: ", text, re.MULTILINE)
    number = "NNNN" if record.name.startswith("0000") else record.name[:4]
    assert text.startswith(f"# {number}. ")


def test_decision_records_are_numbered_without_gap_or_double() -> None:
    assert [record.name[:4] for record in RECORDS] == [f"{n:04}" for n in range(len(RECORDS))]


def test_the_script_for_continuous_integration_is_bash_that_stops_at_the_first_failure() -> None:
    script = ROOT / ".ci" / "run"

    subprocess.run(["bash", "-n", str(script)], check=True, timeout=HANG_S)

    assert "set -euo pipefail\n" in script.read_text(encoding="utf-8")
    assert script.stat().st_mode & 0o111


def test_every_test_that_the_page_of_checks_names_exists() -> None:
    page = (ROOT / "docs" / "checks.md").read_text(encoding="utf-8")

    named = re.findall(r"`((?:tests|compat)/[^`]+)`", page)

    assert len(named) > 30
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_page_at_the_front_counts_the_scenarios_that_the_table_of_clients_has() -> None:
    said = re.search(r"\b([0-9]+)\s+scenarios\b", (ROOT / "README.md").read_text())
    assert said is not None

    page = (ROOT / "compat" / "README.md").read_text()
    table = page[page.index("<!-- clients") :].split("\n\n|  | rstream")[1].split("\n\n")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) == int(said[1])


def test_no_page_and_no_line_installs_a_release_while_there_is_none() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    programs = [path for path in SOURCES if not name_of(path).startswith("tests")]
    wrong = [
        f"{name_of(path)}: {line.strip()}"
        for path in (*pages, *programs)
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search("pip install.*hutch-streams", line)
    ]

    assert wrong == [], "say `pip install .` in the folder of the sources"


def rooms() -> list[tuple[str, ...]]:
    """Return the folders of our packages below the packages themselves."""
    return sorted(
        path.parent.relative_to(ROOT).parts
        for package in SHIPPED
        for path in (ROOT / package).rglob("*/__init__.py")
    )


def drawn() -> dict[str, str]:
    """Return by each top room in the picture of ARCHITECTURE.md what it says of that, in order."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = page.split("## The picture")[1].split("```")[1]
    found: dict[str, str] = {}
    name = ""
    for line in re.findall(r"^│ (.*)│$", picture, re.MULTILINE):
        if not line.startswith(" "):
            name = line.split()[0]
        found[name] = f"{found.get(name, '')} {line}"
    return found


def test_the_picture_has_every_room() -> None:
    picture = drawn()

    for package, top, *inner in rooms():
        of_top = picture.get(f"{package}/{top}")
        names = [top, *inner] if of_top is None else inner  # a package may be drawn as one
        room = picture[package] if of_top is None else of_top
        assert all(f" {each}/" in room for each in names), "/".join((package, top, *inner))


def test_the_picture_has_the_rooms_of_the_gateway_in_the_order_of_their_layers() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:gateway"]["layers"].strip().splitlines()
    depths = {
        name.strip().replace(".", "/"): depth
        for depth, layer in enumerate(layers)
        for name in layer.split("|")
    }

    found = [depths[name] for name in drawn() if name in depths]

    assert found == sorted(found)
    assert len(found) >= 12
