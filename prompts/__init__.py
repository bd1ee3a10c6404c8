"""The prompts: one Markdown file each, with `$name` slots that must all be filled."""

import json
from datetime import datetime
from functools import cache
from importlib.resources import files
from string import Template


class PromptError(ValueError):
    """A prompt does not exist, or its slots and the given values do not agree."""


@cache
def _template(name: str) -> Template:
    path = files(__name__) / f"{name}.md"
    if not path.is_file():
        raise PromptError(f"There is no prompt called {name!r}.")
    template = Template(path.read_text(encoding="utf-8").strip())
    if not template.is_valid():
        raise PromptError(f"The prompt {name!r} has a '$' that starts no slot. Write it as '$$'.")
    return template


def slots(name: str) -> frozenset[str]:
    """Return the names of the slots of the prompt `name`; raises `PromptError` if there is no such prompt."""
    return frozenset(_template(name).get_identifiers())


def render(name: str, /, **values: str) -> str:
    """Return the prompt `name` with its slots filled; a value goes in as it is, whatever `$` it holds.

    Raises:
        PromptError: no such prompt, a slot without a value, or a value without a slot; every one is named.
    """
    wanted, given = slots(name), frozenset(values)
    if wanted != given:
        missing, unknown = sorted(wanted - given), sorted(given - wanted)
        parts = [f"missing: {', '.join(missing)}"] * bool(missing) + [f"unknown: {', '.join(unknown)}"] * bool(unknown)
        raise PromptError(f"The prompt {name!r} was not given what it needs ({'; '.join(parts)}).")
    return _template(name).substitute(values)


def quoted(text: str, limit: int) -> str:
    """Return `text` as data for a prompt: one line in double quotes, at most `limit` characters of it."""
    line = " ".join(text.split())
    return json.dumps(line if len(line) <= limit else f"{line[: limit - 1]}…", ensure_ascii=False)


def day(when: datetime) -> str:
    """Return the weekday and date of `when`, in its own zone, as prompts are told it: `Monday 2026-03-02`."""
    return f"{when:%A %Y-%m-%d}"
