"""Whom a statement speaks to: a name before it or after it that it tells nothing of. English."""

import re

_ADDRESSED = re.compile(
    r"^(?:(?:hey|hi|hello|wow|oh|aw+|thanks|yes|yeah|no|ok|okay|so|well|good|dear|ha\w*|wo+ah|love you|bye)\b[,! ]*)*(?-i:[A-Z][\w-]+)"
    r"(?:[!?.]*$|\s*[,!–-]\s+(?!(?:my|our|who|whose|the|his|her|an?|and)\b)(?!(?-i:[A-Z])(?!['’]|\s)\w+(?:,|\s+and\b)))",
    re.IGNORECASE,
)
_ADDRESSED_LAST = re.compile(r"(?<=[\w!’'.]),\s+(?:dear\s+|my\s+)?[A-Z][\w-]+(?:\s(?:bhai|ji|dear|love))?[!?.…\s]*$")
"""Whom a statement speaks to, before and after it."""


def unaddressed(text: str) -> str:
    """Return `text` without the name of whom it speaks to: "Thanks, Gina!" and "Gina, I got it!" tell nothing of Gina."""
    return _ADDRESSED_LAST.sub("", _ADDRESSED.sub("", text))
