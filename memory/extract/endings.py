"""How people say that something is over, and what it is that is over: "binned the gym", "the Peru trip fell through". English.

These forms come after those of the grammar (`slotting`): what they name is a thing in the speaker's own words, and only a
known memory that is about it can be taken back.
"""

import re

from sharpwave.memory.phrases import expanded, without_adverbs


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_MINE = r"(?:(?:my|our|the|that|this|his|her|their|all|any|an?)\ )*(?!(?:one|some|half|two|part|most|a\ few|it|that|this|them|up|off|out)\b)"
_WHEN = r"(?:\ (?:last|this|in|on|at|after|since|because|so|for|when|yesterday|today|ages|at\ last|at\ long\ last|finally|for\ good|two|three|a)\b.*|,\ .*)?"

_DONE_WITH = _re(
    rf"""(?:(?:have|has|had|am|is|are|was|were|decided|to|end(?:ed)?\ up)\ )*(?:
    (?:packed\ in|shut\ down|took\ down|closed\ down|binned|ditched|dumped|junked|chucked(?:\ out|\ in)?|axed|canned|nixed|flogged|deleted|uninstalled|deactivated
      |deregistered\ from|unfollowed|got\ (?:rid|shot)\ of|getting\ rid\ of|opted\ out\ of|bowed\ out\ of|dropped\ out\ of|withdrew\ from|relinquished|surrendered|vacated|renounced|forsworn|resigned\ from|(?:did\ not|not)\ renew(?:ed|ing)?(?:\ (?:at|with))?|decided\ against(?:\ renewing)?|over(?=\ my\b)
      |(?:stepp(?:ed|ing)|stood|standing)\ (?:down|back|away|aside)\ (?:from|as)|dispensed\ with|dispensing\ with|done\ away\ with|did\ away\ with|walk(?:ed|ing)\ (?:away\ from|out\ on)|jacked\ in|jacking\ in|pulled\ the\ plug\ on|pulled\ out\ of
      |called\ (?:time\ on|off|it\ a\ day\ with)|calling\ off|(?:said|saying|bid)\ (?:goodbye|farewell|adieu)\ to|traded\ in|buried
      |grew\ out\ of|grown\ out\ of|outgrown|moved\ on\ from|got\ over|gotten\ over|turned\ my\ back\ on|had\ enough\ of|had\ it\ with
      |fell\ out\ with|fallen\ out\ with|part(?:ed|ing)\ (?:ways|company)\ with|broke\ (?:it\ off|up)\ with|broken\ up\ with|split\ from
      |fell\ out\ of\ love\ with|given\ up(?:\ on)?|gave\ up(?:\ on)?|came\ off|weaned\ (?:myself\ )?off|paid\ off)
      \ {_MINE}(?P<a>.+?)
    |(?:had|have|need)\ to\ (?:leave|stop|drop|quit|give\ up|bin|ditch|cancel|scrap|sell|rehome|return|step\ down\ (?:from|as)|say\ goodbye\ to|pull\ out\ of)
      \ {_MINE}(?P<b>.+?)
    |let(?:ting)?\ {_MINE}(?P<c>.+?)\ (?:slide|go|lapse|drop)
    |(?:put|left|packed|kicked|knocked|called|cut|given|gave|wound|shut|closed|phased)\ {_MINE}(?P<d>.+?)\ (?:behind\ (?:me|us)|in\ altogether|to\ bed|on\ the\ head
      |to\ the\ kerb|into\ touch|up\ altogether|up\ for\ good|for\ good)
    |(?:gave|given|donated|handed|passed|sold|returned)\ {_MINE}(?P<e>.+?)\ (?:to|back|over|off|on)\ .*
    |(?:closed|shut|cancelled|canceled)\ (?:my|our|the)\ (?P<f>.+?\ (?:account|card|membership|subscription|business|shop|company|club))
    |lost\ (?P<g>(?-i:[A-Z])[\w-]+)
    |(?:(?:have|has)\ not|never)\ (?:touched|smoked|drunk|drank)\ {_MINE}(?P<h>.+?)\ (?:since|in|for)\b.*
    |(?:have|has)\ not\ (?:had|eaten|been\ to|played|used|worn|set\ foot\ in|done|taken|watched|read)\ {_MINE}(?P<i>.+?)\ (?:in|for)\ (?:ages|months|years|forever)
    |put\ {_MINE}(?P<j>.+?)\ (?:down|to\ sleep|behind\ (?:me|us)|up\ for\ adoption)
    |(?:quit|stopped|ceased|finished|dropped|scrapped|cancelled|canceled|sold)\ {_MINE}(?P<k>.+?)
    ){_WHEN}\W*$"""
)
"""Predicates of somebody who has done with something."""

_PREDICATES = r"""(?:is|are|was|were|has|have|got|has\ been|have\ been|had\ to\ be)\ (?:all\ |pretty\ much\ |well\ and\ truly\ |as\ good\ as\ |been\ |now\ |long\ )*
    (?:dead|dead\ in\ the\ water|done(?:\ and\ dusted|\ with|\ for)?|history|no\ more|toast|kaput|finished|not\ happening(?:\ any\ more|\ after\ all)?
    |not\ going\ ahead|not\ on(?:\ any\ more)?|gathering\ dust|written\ off|totalled|binned|ditched|scrapped|axed|cancell?ed|called\ off|shelved|a\ no-go
    |in\ the\ past|behind\ (?:me|us)|a\ distant\ memory|paid\ off|healed|cured|sorted|gone\ for\ good|past\ tense|ancient\ history|over(?!\ (?:the\ moon|there|here|it|at|by|in|for\ dinner|\w+ing)\b)(?:\ and\ done\ with)?
    |a\ write-off|up\ in\ smoke|off(?:\ the\ (?:cards|menu|table))?|disbanded|demolished|thrown\ out|dismissed|ripped\ out|torn\ (?:out|down)|taken\ out|stopped|ceased|cleared\ up|gone\ to\ (?:a|an|their|its|his|her)\ (?:[\w-]+\ )*homes?|a\ closed\ chapter|run\ its\ course|had\ (?:its|their|his|her)\ day|pulled\ down)
    |(?:paid\ off|sold|cancell?ed|scrapped|binned|called\ off|ditched|disconnected|switched\ off)(?=$|\ (?:at\ (?:long\ )?last|finally|now|today|last|yesterday))
    |had\ to\ go|fell\ through|fell\ apart|folded|went\ under|went\ bust|shut\ (?:down|up\ shop)|closed\ (?:down|its\ doors)|conked\ out|bit\ the\ dust|gave\ up\ the\ ghost
    |(?:did|does)\ not\ (?:survive|make\ it|last|work\ out|pan\ out|come\ off|materiali[sz]e|happen)|fizzled\ out|petered\ out|came\ (?:off|out)|lasted\ .+
    |(?:has|have)\ (?:left|moved\ (?:out|away)|gone\ home)|went\ (?:on|up\ on)\ (?:ebay|gumtree|marketplace|vinted)|went\ to\ the\ (?:tip|scrapyard|charity\ shop|dump)|crossed\ the\ rainbow\ bridge|is\ no\ longer\ with\ us|ran\ its\ course"""
_GONE = _re(
    rf"""(?:
    {_MINE}(?P<a>(?!(?:I|we|it|this|that|they|he|she|you|everything|work|lunch|dinner)\b)[^,]+?)\ (?:{_PREDICATES})\b(?:,|\ (?:on|in|last|this|for|because|so|and|after|since|with|today|yesterday|tonight|now|at|finally)\b|(?<=left)\ the\b|$).*
    |{_MINE}(?P<b>.+?)\ and\ (?:I|me|we)\ (?:(?:are|is|have|am|now)\ )*(?:done|through|finished|history|over|parted\ ways|fell\ out|fallen\ out)\b.*
    |(?:the\ |my\ )?(?P<h>[^,]+?)\ (?:has\ |have\ )?(?:discharged|signed\ off|struck\ off|let\ go\ of)\ (?:me|us)
    |(?:so\ )?no\ more\ (?P<c>[^,]+?)(?:\ for\ (?:me|us)|\ then|\ thank\ (?:you|god))?(?:,\ .*)?
    |.*\b(?:days|weeks|months|years)\b(?:\ \w+)?\ (?P<d>\w+)[ -]free|.*\b(?P<e>\w+)[ -]free\ (?:since|for)\b.*
    |(?:the\ |my\ )?(?P<f>[^,]+?)(?:\ (?:thing|stuff))?,\ (?:I\ |we\ )(?:have\ |had\ to\ )?(?:let\ (?:it|that)\ (?:slide|go|drop)|dropped\ (?:it|that)|given\ (?:it|that)\ up
      |gave\ (?:it|that)\ up|packed\ (?:it|that)\ in|stopped\ (?:it|that)|quit|knocked\ (?:it|that)\ on\ the\ head)\b.*
    |(?:\w+\ ){{1,4}}?(?:called\ off|cancell?ed|scrapped|axed|discontinued|pulled|withdrew|withdrawn|shut|stopped|abolished|phased\ out)\ (?:the\ offer\ of\ )?(?:the|my|our|an?)\ (?P<g>[^,]+?)(?:\ on\ (?:me|us))?
    )\W*$"""
)
"""Clauses of what has come to an end."""


def given_up(predicate: str) -> str | None:
    """Return what somebody has done with, going by what is said of them; None where nothing is."""
    return _thing(_DONE_WITH.fullmatch(predicate))


def gone(clause: str) -> str | None:
    """Return what has come to an end, going by a whole clause; None where nothing has."""
    return _thing(_GONE.fullmatch(clause))


def _thing(found: re.Match[str] | None) -> str | None:
    return next(thing for thing in found.groupdict().values() if thing).strip(" ,.!") if found else None


def ends(clause: str) -> bool:
    """Whether a clause, perhaps without its "I", says that something is over."""
    said = without_adverbs(expanded(clause)).strip(" .!,;")
    return given_up(said) is not None or gone(said) is not None
