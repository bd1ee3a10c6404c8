"""The tense in which a time is told: past, or to come."""

import re
from datetime import datetime
from functools import cached_property

_CLAUSE_END = re.compile(r"[.;!?,\n。，、；]|\b(?:and|but|und|aber|y|pero|et|mais|e|mas|ma)\b")
_DID = re.compile(r"\bdid(?:n['’]t)?\b", re.IGNORECASE)
_PERFECT = re.compile(
    r"\b(?:have|has|(?<=['’])ve|(?<=['’])s(?=\sbeen))(?:n['’]t)?\s(?:\w{1,12}\s){0,3}?(?:\w{1,12}(?:ed|een|wn)|had|kept|held|taught|run|done|gone|felt|led)\b[^.;!?]*$",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:was|were|did|had|went|got|took|came|saw|met|bought|made|found|left|lost|said|told|gave|began|broke|brought|built|caught|chose|drank|drove|ate|fell|felt|flew|forgot|grew|heard|held"
    r"|kept|knew|led|lent|paid|quit|ran|rode|rang|sang|sat|sent|shot|slept|sold|spent|spoke|stole|stood|swam|taught|thought|threw|understood|won|wore|wrote|woke|became|been|born|gone|done|\w{2,}(?<!e)ed"
    r"|war(?:en|st)?|hatten?|wurden?|ging(?:en)?|kam(?:en)?|(?:\w{2,5})?ge\w{2,}(?:t|en)|\w+(?:iert)|fu[ei]|fue(?:ron)?|era[mn]?|estaba|estava|estive|tuve|tive|hic[ei]|hizo|fiz|fez|nac[íi]|vi"
    r"|\w{2,}(?:é|ó|aron|ieron|aram|eram|iram|[aei]ste)|\w{3,}(?:ei|ou)|(?:he|ha|hemos|han)\s\w+(?:ado|ido)|(?:ho|hai|abbiamo|hanno|sono|siamo|è)\s(?:\w+\s)?\w+(?:at|it|ut|tt|s)[oaie]|(?:a|ai|avons|avez|ont|suis|est|sommes|sont)\s(?:\w+\s)?\w{2,}(?:é|ées?|és)|(?:ai|avons|avez|ont|suis|sommes)\s\w+(?:i|is|it|u|us|ue)"
    r"|étai(?:s|t|ent)|avai(?:s|t|ent)|ero|erano|stavo|andai)\b|了|(?:し|っ|い|ん|き|べ|え|ま|り)[ただ]",
    re.IGNORECASE,
)
_FUTURE = re.compile(
    r"\b(?:will|won['’]t|shall|(?<!was )(?<!were )going to|gonna|next|tomorrow|plan(?:s|ning)?|upcoming|starts?|starting|begins?|beginning|coming|looking forward|can['’]t wait|due|hop(?:e|ing) to|want to|need to|must"
    r"|scheduled|supposed to|planned for|booked for|excited (?:for|about)|(?:am|are|is|(?<=['’])m|(?<=['’])re|(?<=['’])s)\s(?:not\s)?(?:\w{1,12}ly\s)?\w{2,12}ing|werden?|wird|werde|morgen|voy a|vamos a|va a|vou|vai|vais|allons|va|vont|mañana|demain|domani|amanhã"
    r"|\w{2,}(?:[aei]ré|[aei]rá|[aei]rai|era[iì]?|[aei]remos|erò|irò|erons|irons))\b|['’]ll\b|将|會|会|要|打算|つもり|予定|ます",
    re.IGNORECASE,
)


class Saying:
    """A text, the local moment at which it was said, and the tense of its clauses."""

    def __init__(self, text: str, moment: datetime) -> None:
        self.text = text
        self.moment = moment
        self._found: dict[tuple[int, int], list[tuple[int, int, bool]]] = {}

    def past(self, at: int, to: int) -> bool | None:
        """Whether the clause around text[at:to], or else the whole text, is in a past tense; None: no word tells."""
        start = max((end for end in self._clause_ends if end < at), default=0)
        stop = min((end for end in self._clause_ends if end >= to), default=len(self.text))
        for low, high in ((start, stop), (0, len(self.text))):
            if _DID.search(self.text, low, high):
                return True
            near = [(max(at - end, begin - to, 0), past) for begin, end, past in self._cues(low, high)]
            if near:
                return min(near)[1]
        return None

    def perfect(self, at: int) -> bool:
        """Whether a present perfect ("I have lived here") stands shortly before text[at:]."""
        return _PERFECT.search(self.text[max(0, at - 80) : at]) is not None

    @cached_property
    def _clause_ends(self) -> list[int]:
        return [end.start() for end in _CLAUSE_END.finditer(self.text)]

    def _cues(self, low: int, high: int) -> list[tuple[int, int, bool]]:
        """Where text[low:high] has words of a tense, and whether it is a past one; kept, as many times may ask."""
        if (low, high) not in self._found:
            self._found[low, high] = [
                (*cue.span(), past)
                for past, cues in ((False, _FUTURE), (True, _PAST))
                for cue in cues.finditer(self.text, low, high)
            ]
        return self._found[low, high]
