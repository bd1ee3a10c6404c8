"""What is kept, found, decided, and never lost: the store and its records."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
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


def __getattr__(name: str) -> Any:
    # Resolved when first used: the errors, or the search for traces, need neither SQLAlchemy nor LangChain.
    if name not in __all__:
        raise AttributeError(f"module 'sharpwave.memory' has no attribute {name!r}")
    if name == "MemoryStore":
        from sharpwave.memory.store import MemoryStore

        return MemoryStore
    from sharpwave.memory import records

    return getattr(records, name)
