"""The pages in docs/ are true: what they show runs as it stands, and their links lead somewhere."""

import re
from pathlib import Path

import pytest
from project import ROOT, project_files
from snippets import Ran, ran

PAGES = [ROOT / file for file in project_files() if file.parts[0] == "docs" and file.suffix == ".md"]
SNIPPETS = {
    f"{page.stem}-{number}": snippet
    for page in PAGES
    for number, snippet in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL), 1)
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    return dict(zip(SNIPPETS, ran(list(SNIPPETS.values()), tmp_path_factory.mktemp("snippets")), strict=True))


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets_run_as_they_stand_and_print_what_they_say(name: str, outcomes: dict[str, Ran]) -> None:
    """A comment behind a `print(…)` is what it prints."""
    assert outcomes[name].error == ""
    said = re.findall(r"^\s*print\(.*\)  # (.*)$", SNIPPETS[name], re.MULTILINE)
    assert outcomes[name].printed.splitlines() == said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_kind_of_memory_is_mapped_to_the_files_that_hold_it() -> None:
    page = (ROOT / "docs" / "patterns.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ") and "](" in line]
    assert len(rows) >= 30 and all(len(row) == 2 for row in rows)
    for pattern, files in rows:
        named = re.findall(r"\[([\w/.]+)\]\(\.\./([\w/.]+)\)", files)
        assert named, pattern
        assert all(name == target and (ROOT / target).is_file() for name, target in named), pattern
    for kind in ("Working", "Episodic", "Semantic", "Procedural"):
        assert f"## {kind} memory" in page
