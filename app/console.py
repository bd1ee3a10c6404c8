"""What commands share: where they find settings and store, and how they print."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sharpwave.memory.errors import ConfigError, InputError
from sharpwave.settings import Settings

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

UserOption = Annotated[
    str | None, typer.Option("--user", "-u", help="Whose memory. Default: SHARPWAVE_USER.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]


@dataclass(frozen=True)
class Given:
    """What the options before the command say."""

    home: Path | None = None

    def settings(self, **more: Any) -> Settings:
        """Return the settings, with those options and `more` over them."""
        return Settings.load(home=self.home, **more)


def settings_of(context: typer.Context, **more: Any) -> Settings:
    """Return the settings of this run; `more` are fields that options of the command set, None where one is not given."""
    given = context.find_object(Given) or Given()
    return given.settings(**more)


def user_of(settings: Settings, user: str | None) -> str:
    """Return the user that a command is about; raises `ConfigError` when nobody is named."""
    named = user if user is not None else settings.user
    if named is None:
        raise ConfigError("Whose memory? Pass --user NAME, or set SHARPWAVE_USER.")
    return named


@contextmanager
def opened(settings: Settings) -> Iterator[Any]:
    """Open the store that the settings describe, for the length of a block."""
    from sharpwave.memory.store import MemoryStore
    from sharpwave.models import embeddings, provider_errors

    with (
        provider_errors(settings),
        MemoryStore.open(
            settings.home,
            embeddings=embeddings(settings),
            collections=settings.collections,
            learn_recall=settings.learn_recall,
        ) as store,
    ):
        yield store


def confirm(question: str, yes: bool) -> None:
    """Ask a person whether to go on, unless `yes` says so; raises `InputError` where nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError("This destroys for good, and nobody is there to be asked. Pass --yes to go on.")
    typer.confirm(question, abort=True, err=True)


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output, readable in any script."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")
    sys.stdout.flush()


def is_terminal() -> bool:
    """Return whether a person is likely to read standard output as it comes."""
    return out.is_terminal
