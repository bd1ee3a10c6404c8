"""How many tokens a text takes, estimated without a tokenizer and rather too high than too low."""

import math


def estimate(text: str) -> int:
    """Return an estimate for common byte-pair tokenizers: 3.5 ASCII characters a token, one token for any other
    character, three for those outside the basic plane (emoji, rare Han)."""
    plain = sum(1 for c in text if c < "\x80")
    astral = sum(1 for c in text if c > "\uffff")
    return math.ceil(plain / 3.5) + (len(text) - plain - astral) + 3 * astral


def shorten(text: str, tokens: int) -> str:
    """Return `text`, or its beginning within `tokens` with an ellipsis."""
    if estimate(text) <= tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate(text[:middle]) < tokens else (low, middle - 1)
    return text[:low].rstrip() + "…"
