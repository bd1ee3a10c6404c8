"""Command lines, run as a process would run them, with an embedder that needs no files."""

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from fakes import HashEmbeddings

from sharpwave import cli


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]


def runner(
    home: Path,
    modules: Iterable[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *before: str,
) -> Run:
    """Return what runs commands of these modules on a home; `before` stands in front of all words."""
    app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})
    app.callback()(cli.options)
    for module in modules:
        module.register(app)
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(cli, "_register", lambda: None)
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: HashEmbeddings())

    def once(*words: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["sharpwave", "--home", str(home), *before, *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), captured.out, captured.err)

    return once
