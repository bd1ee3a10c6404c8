"""The README is true: its picture is the code's, its snippets run, and it names the files and settings that exist."""

import re
from pathlib import Path

import pytest
from fakes import HashEmbeddings
from project import ROOT
from snippets import ran

from sharpwave.graphs import build_agent
from sharpwave.memory import MemoryStore

README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_picture_is_generated_from_the_code(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path, embeddings=HashEmbeddings()) as store:
        drawn = build_agent(memory=store).compile().get_graph().draw_mermaid()
    assert re.findall(r"```mermaid\n(.*?)```", README, re.DOTALL) == [drawn]


def test_snippets_run_as_they_stand(tmp_path: Path) -> None:
    for snippet, outcome in zip(SNIPPETS, ran(SNIPPETS, tmp_path), strict=True):
        assert outcome.error == ""
        if "print(" in snippet:
            assert "shellfish" in outcome.printed


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippets_are_short(snippet: str) -> None:
    assert len([line for line in snippet.splitlines() if line.strip()]) <= 12


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
