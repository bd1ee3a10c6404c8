"""The LoCoMo benchmark's file: samples with `session_<n>` lists of `{speaker, dia_id, text}`."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sharpwave.json_files import checked_name
from sharpwave.memory.errors import InputError
from sharpwave.memory.records import Message, Turn
from sharpwave.memory.times import utc

SESSION = re.compile(r"session_\d+")


def is_locomo(one: Any) -> bool:
    """Tell whether `one` is a sample."""
    talk = one.get("conversation") if isinstance(one, dict) else None
    return isinstance(talk, dict) and any(isinstance(talk[key], list) for key in talk if SESSION.fullmatch(key))


def turns(path: Path, document: Any, zone: str) -> Iterator[Turn]:
    """Give each line of dialogue as a turn of its own, said by its speaker; sessions are threads."""
    for number, sample in enumerate(document if isinstance(document, list) else [document], 1):
        if not is_locomo(sample):
            raise InputError(f'{path}: sample {number} has no "conversation" with "session_<n>" lists.')
        owner = checked_name(sample.get("sample_id"), f"sample_id of sample {number} in {path}")
        sessions = sample["conversation"]
        for n in sorted(int(key[8:]) for key, lines in sessions.items() if SESSION.fullmatch(key) and lines):
            yield from _session(path, owner, f"session_{n}", sessions, zone)


def _session(path: Path, owner: str, thread: str, sessions: dict[str, Any], zone: str) -> Iterator[Turn]:
    where = f"{path}: {owner}, {thread}"
    try:
        start = utc(datetime.strptime(sessions[f"{thread}_date_time"], "%I:%M %p on %d %B, %Y"), zone)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f'{where} needs a "{thread}_date_time" such as "1:56 pm on 8 May, 2023".') from error
    lines = sessions[thread] if isinstance(sessions[thread], list) else [None]
    for position, line in enumerate(lines):
        try:
            text = line["text"] + (f" [shares a photo of {line['blip_caption']}]" if line.get("blip_caption") else "")
            message = Message(id=line["dia_id"], role="user", text=text, speaker=line["speaker"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f'{where}, line {position + 1} needs the texts "speaker", "dia_id" and "text".') from error
        said_at = start + timedelta(seconds=position)
        yield Turn(owner=owner, thread=thread, messages=(message,), said_at=said_at, timezone=zone)
