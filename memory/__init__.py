"""What is kept, found, decided, and never lost: the store and its records."""

from sharpwave.memory.errors import (
    BudgetExceeded,
    ConfigError,
    InputError,
    ModelError,
    NotFoundError,
    OwnershipError,
    SharpwaveError,
    StoreError,
)
from sharpwave.memory.records import Candidate, Decision, Memory, Message, Recall, Turn, Utterance
from sharpwave.memory.store import MemoryStore

__all__ = [
    "BudgetExceeded",
    "Candidate",
    "ConfigError",
    "Decision",
    "InputError",
    "Memory",
    "MemoryStore",
    "Message",
    "ModelError",
    "NotFoundError",
    "OwnershipError",
    "Recall",
    "SharpwaveError",
    "StoreError",
    "Turn",
    "Utterance",
]
