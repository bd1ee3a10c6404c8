"""What can go wrong, as one tree.

    SharpwaveError
    ├── ConfigError      a setting is missing or does not fit
    ├── InputError       what the caller passed in cannot be used
    │   └── NotFoundError    no such memory (or another owner's: the two look alike)
    ├── ModelError       the provider failed, timed out, or its answer stayed unusable after repair
    ├── StoreError       locked, corrupt, unwritable, or built with another embedder
    ├── OwnershipError   a record of one owner reached another owner's call
    └── BudgetExceeded   a call or token budget is used up

Every message says what happened, to what, and what to do about it.
"""


class SharpwaveError(Exception):
    """Anything Sharpwave raises on purpose."""


class ConfigError(SharpwaveError):
    """A setting is missing or does not fit."""


class InputError(SharpwaveError):
    """What the caller passed in cannot be used."""


class NotFoundError(InputError):
    """No memory with this id for this owner; another owner's id answers exactly the same."""


class ModelError(SharpwaveError):
    """The chat model failed, timed out, or gave an answer that stayed unusable after repair."""


class StoreError(SharpwaveError):
    """The store is locked, corrupt, unwritable, or was built with another embedder."""


class OwnershipError(SharpwaveError):
    """A record of one owner reached a call of another; raised instead of answering."""


class BudgetExceeded(SharpwaveError):
    """A call or token budget is used up."""
