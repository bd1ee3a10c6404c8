"""From a message to the clauses in which its writer states something about themselves or their own people and things.

What is left out, by class: questions, requests, hypotheticals, quotations, reported speech, fiction and role-play, the
second person, politeness and the state of the moment. English; `languages` has the little that is done for others.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sharpwave.memory.evidence import asks, own_words, sentences
from sharpwave.memory.extract import quoting
from sharpwave.memory.phrases import expanded, straight, without_adverbs

READ_AT_MOST = 50_000
"""Characters of one message that are read; what is longer is a pasted file rather than something said."""
LONGEST_SENTENCE = 3_000
"""Characters; what goes on longer without a full stop is not read."""
LONGEST_CLAUSE = 500
"""Characters; a clause beyond that is not taken for a statement."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a message."""

    text: str
    """Verbatim, without an opening such as "by the way" or "remember that"."""
    quote: str
    """Verbatim, with the opening."""
    explicit: bool = False
    """The writer asked for it to be remembered."""
    follows: bool = False
    """The clause comes right after another one that states something."""
    loose: bool = False
    """It states nothing by its form, and may do so all the same (see `likely`)."""


def _verbose(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_VERB = (
    r"(?:is|are|was|were|has|have|had|isn't|aren't|doesn't|can|can't|will|lives?|works?|loves?|likes?|hates?"
    r"|plays?|moved|just"
    r"|got|goes|needs?|wants?|turned|turns|started|speaks?|stud(?:y|ies|ied)|died|passed|broke|plays?|runs?"
    r"|prefers?|owns?|teaches|'s)"
)
_NEW_SUBJECT = (
    rf"(?:I\b|(?-i:[A-Z])\w+\s+(?:is|are)\s+(?:my|our)\b|(?-i:[A-Z])\w+\s+and\s+I\s|I'm\b|im\b|ive\b|we\b|we're\b|(?:my"
    rf"|our)\s+(?:[\w'-]+\s+){{1,3}}?{_VERB}\b|(?:my|our)\s+[\w-]+'s\s)"
)
_ASKING = (
    r"(?:(?:what|which|how)\s+\w+\s+(?:is|are|do|does|should|can|would)\b"
    r"|(?:what|where|who|how|which|when|why)(?:'s\b|\s+(?:is|are|was|do|does|did|can|could|should|would|will"
    r"|about|much"
    r"|many|long|often|kind|sort|type|else)\b)|(?:can|could|would|will|do|did|are)\s+you\b|should\s+I\b|(?:can"
    r"|could)\s+I\b"
    r"|do\s+I\b|is\s+(?:there|it|that)\b|are\s+there\b|any\s+(?:\w+\s+)?(?:ideas?|tips?|suggestions?"
    r"|recommendations?|good|advice"
    r"|recs)\b|please\b|(?:suggest|recommend|tell|show|help|give|explain|find|write)\s+(?:me|us|an?|some|the)\b)"
)
_BOUNDARY = _verbose(
    rf"""\s*;\s*|\s*[—–]\s*|\s+-\s+|\s+\((?=I\b|my\b)|\.{{2,}}\s*|…\s*
    |,?\s+(?:and|but|so|plus|also|while|yet|whereas|n|&)\s+(?:also\s+|now\s+|yes,?\s+)?(?={_NEW_SUBJECT})
    |\s*[,:]\s+(?:and\s+|but\s+)?(?={_NEW_SUBJECT})
    |(?<=\bplease),?\s+(?={_NEW_SUBJECT})|,\s*(?:and\s+|but\s+|so\s+)?(?={_ASKING})|\s+(?:and|but|so)\s+(?={_ASKING})"""
)
_HAS_VERB = _verbose(
    rf"\b(?:I|we|you|he|she|it|they|there)(?:'\w+|\s+[\w']+)|\b{_VERB}\b|'s\b|\w+ed\b|\w+n't\b|^(?:just\s+)?(?:lost|sold|bought|left|quit|gave|went|came|took|found|won|got)\b|^(?:please\s+)?(?:suggest"
    rf"|recommend|tell|show"
    r"|help|give|find|write|explain|plan|make|call|born|allergic|moved|remember|note)\b|\b(?:I'm|im|ive)\b"
)
_SUBORDINATE = _verbose(
    r"^(?:\W*(?:and|but|so)\s+)?(?:when|whenever|if|after|before|although|though|even\s+though|while|once|until"
    r"|as\s+soon"
    r"|every\s+time|unless|by\s+the\s+time|the\s+(?:day|year|week|month|moment))\b"
)
_GROUND = _verbose(
    rf"^\W*(?:now\s+that|ever\s+since|since|because|given\s+that)\s+(?:(?:I|we|I'\w+|we'\w+)|(?-i:[A-Z])\w+|(?:my|our)\s+\w+)"
    rf"\s+[^,;]+?(?=\s+(?:(?:I|we)\s+\w|(?:my|our|the)\s+\w+\s+{_VERB}\b))"
)
"""The half of a sentence that gives the ground for the other, with no comma after it."""
_GIVEN = _verbose(
    r"^(?:since|as|because|given\s+that|considering(?:\s+that)?|seeing\s+that|now\s+that)\s+(?=I\b|I'm\b|my\b|we\b|(?-i:[A-Z])\w+\s+(?:died|left|moved)\b"
    r"|im\b)"
)
_TAG = _verbose(
    r",?\s*(?:right|correct|yes|no|yeah|remember|isn't\s+it|aren't\s+I|don't\s+I|do\s+I|am\s+I|is\s+it)\s*\?+\s*$"
)
_LEAD = _verbose(
    r"""^\W*(?:
    (?:well|oh|ah|hey|hi|hello|yo|yeah|yep|yup|ok|okay|lol|haha+|hm+|um+|uh|ugh|btw|fyi|anyway|anyways|honestly
      |frankly|and|but|also|plus
      |basically|unfortunately|sadly|luckily|fortunately|otherwise|besides|so|oops|wait|ps|p\.s|psst|tbh|ngl|fwiw|imo
        |thankfully
      |interestingly|funnily\s+enough|as\s+it\s+happens|surprise|change\s+of\s+plans?|no(?=\s+I\b)|right(?=\s+so\b)|guess\s+what
        |(?:just\s+)?(?:one|a)\s+(?:moment|sec|second|minute)|hang\s+on|hold\s+on|long\s+story\s+short|good\s+news|bad\s+news|big\s+news
        |great\s+news|the\s+thing\s+is)
    (?:\s+(?:there|again|all|everyone|folks|team))?\s*[,:;.!…]*\s+
    |(?-i:[A-Z][a-z]+),\s+(?=(?:I|we|my)\b)
    |(?:yes|no|nope|right|sure|great|cool|thanks|thank\s+you|news|update|correction|confession|actually|edit|sorry|morning
      |good\s+(?:morning|evening))
      (?:\s+(?:there|again|all|everyone|folks|a\s+lot|so\s+much))?\s*[,:;.!-]+\s*
    |(?:actually|turns\s+out|it\s+turns\s+out|it\s+turned\s+out|by\s+the\s+way|fun\s+fact|for\s+context
      |some\s+context|context|for\s+your\s+information
      |just\s+so\s+you\s+know|so\s+you\s+know|heads\s+up|quick\s+update|small\s+update|one\s+more\s+thing
        |little\s+known\s+fact|in\s+case\s+(?:it\s+)?(?:helps|matters|you\s+\w+)
      |as\s+I\s+(?:said|mentioned)|as\s+mentioned|like\s+I\s+said|to\s+be\s+(?:honest|fair|clear|precise|exact)
        |you\s+(?:should\s+)?know|worth\s+(?:mentioning|knowing|noting)
      |I\s+should\s+(?:mention|say|add|note)|I\s+forgot\s+to\s+(?:mention|say|add|tell\s+you)|I\s+meant
        |to\s+correct\s+myself|my\s+mistake|my\s+bad|not\s+sure\s+I\s+(?:said|mentioned)
      |I(?:'ve|\s+have)?\s+(?:already\s+)?(?:told|mentioned\s+to)\s+you(?:\s+before)?|did\s+I\s+mention
        |I\s+(?:just\s+)?want(?:ed)?\s+to\s+(?:mention|add|say|tell\s+you|let\s+you\s+know)
      |let\s+me\s+(?:tell\s+you|add|mention|correct\s+(?:that|myself))|a\s+(?:bit|little)\s+about\s+me|about\s+me
        |(?:I|we)(?:'ve|\s+have)?\s+(?:just\s+|even\s+|already\s+|always\s+)?(?:(?:told|remind(?:ed)?|warn(?:ed)?|inform(?:ed)?|assured|tell)\s+(?:him|her|them|every(?:one|body)|people
          |(?:the|my|our|his|her|their|a|an)\s+(?:[\w'-]+\s+)?[\w'-]+|(?-i:[A-Z]\w+))|(?:said|mentioned|explained|admitted)(?:\s+to\s+(?:him|her|them|(?:the|my|our)\s+\w+|(?-i:[A-Z]\w+)))?)
          (?=\s+(?:that\s+)?(?:(?:I|we)(?:'m|\s+am|'re|\s+are|'ve|\s+have|\s+do\s+not|\s+don't|\s+can't|\s+cannot|\s+(?:never|only|always|hate|love|like|live|work|run|play|teach|speak|own|drive|prefer|eat|drink|take|study))\b|my\s+\w+\s+(?:is|are|has|have|lives?|works?)\b))
        |background|personal\s+note|on\s+a\s+personal\s+note|(?:me|myself)\s*:
      |the\s+truth\s+is|truth\s+be\s+told|I\s+have\s+to\s+(?:say|admit)|I\s+must\s+(?:say|admit)|(?:I\s+)?can\s+confirm|I\s+mean(?=,?\s+(?:I|my|we|i'm|im)\b))
    (?:\s+that)?\s*[,:;.!–—-]*\s+(?:is\s+that\s+)?
    )+"""
)
_EXPLICIT = _verbose(
    r"""^\W*(?:(?:dear\s+\w+|please|pls|plz|kindly|can\s+you|could\s+you|also|and|ok|hey|just|so|would\s+you|i\s+want\s+you\s+to
      |i\s+need\s+you\s+to|i'd\s+like\s+you\s+to),?\s+)*
    (?:(?:do\s+)?(?:remember|note|keep\s+in\s+mind|bear\s+in\s+mind|don't\s+forget|do\s+not\s+forget|never\s+forget
      |take\s+note|make\s+a\s+note|memori[sz]e|write\s+down|jot\s+down|save|store|record|log)
      (?:\s+(?:this|down|it))?(?:\s+(?:for\s+(?:me|later|the\s+future)|please))?(?:\s*[:,–—-]\s*|\s+that\s+
        |\s+(?=(?:I|my|I'm|we|our|the)\b))
    |(?:update|correct|change|confirm|reconfirm|keep)\s+(?:this|that|it|the\s+record|(?:my|your)\s+(?:notes?|records?))
      (?:\s+(?:still\s+(?:matters|holds|applies|counts)|in\s+mind))?\s*:\s*
    |(?:confirm|reconfirm|keep\s+remembering)\s+(?:that\s+)?(?=(?:my|our|the|I)\b)
    |for\s+(?:the\s+record|future\s+reference|your\s+(?:notes|records|memory))\s*[,:–—-]?\s+(?:that\s+)?)(?=\w)"""
)
_NOT_EXPLICIT = _verbose(r"^(?:when|the\s+time|how|what|me\b|to\s|where|who|if)")
_QUESTION = _verbose(
    r"""^(?:\W*(?:so|and|but|or|ok|hey|well)\W+)?(?:
    (?:who|what|where|when|why|how|which|whose)(?:'s\b|'re\b|\s+(?:is|are|was|were|do|does|did|can|could|should|would
      |will|am|have|has|had|else|about|many|much
      |long|often|old|far|kind|sort|type|time|day|one|come)\b)
    |had\s+(?:i|you|we|he|she|it|they|there|this|that|your|any|anyone|someone|anybody)\b
    |had\s+(?:the|my)\ (?!(?:\w+\ ){1,2}?(?:done|out|off|removed|fixed|replaced|repaired|serviced|lasered)\b)
    |(?:is|are|am|was|were|do|does|did|can|could|would|will|shall|should|may|might|have|has|isn't|aren't|don't
      |doesn't|didn't|can't|won't|wouldn't)\s+
      (?:i|you|we|he|she|it|they|there|this|that|the|my|your|any|anyone|someone|anybody)\b
    |(?:can|could|will|would|do|did|are|r)\s+(?:u|ya)\b|(?:what|how|where|who|when)s\b|why\s+(?:can|do|does|did|is|are|wo)(?:n)?t?\b
    |(?:what|which)\s+(?!I\b|we\b|my\b)[\w-]+\s+(?:for|to|should|do|does|can|is\s+best)\b
    |any\s+(?:\w+\s+)?(?:ideas?|tips?|suggestions?|recommendations?|news|advice|recs)\b)"""
)
_REQUEST = _verbose(
    r"""^(?:please|pls|plz|kindly|let(?:'s|\s+us|\s+me)|lemme|could|can\s+you|tell|show|give|help|write|make|explain
      |summari[sz]e|translate|rewrite|proofread|rephrase
    |paraphrase|fix|draft|compose|generate|create|find|check|list|suggest|recommend|compare|search|look|calculate
      |convert|describe|define|read|remind|imagine|pretend
    |use|try|add|remove|change|update|set|open|close|run|stop|start|continue|go|wait|ignore|repeat|send|book|order
      |play|sing|say|ask|answer|reply|respond|consider|assume
    |debug|refactor|implement|sort|format|plan|schedule|print|keep|put|pick|choose|name|walk|teach|act|speak|talk|do
      |don't|be|shorten|expand|brainstorm|outline|review|test|polish|correct|edit)\s+
      (?!(?:is|are|was|got|has|had|will|does|did|fell|went|to\s+be)\b)
    |^\w+\s*:\s
    |^I\ (?:want|need|would\ (?:like|love)|expect)\ (?:you|to\ (?:know|ask|see|understand|check|hear|talk|make\ sure
      |be\ sure|confirm|clarify|get\ (?:some|a)|find\ (?:out|a|some)|book|order|write|figure)|help|some\ (?:help
      |advice|ideas)
      |(?:an?|the|your|more|another)\ (?:\w+\ )?(?:recipe|list|summary|answer|example|idea|recommendation|suggestion
        |advice|opinion|help|explanation|hand|favou?r|info\w*|quick\ \w+|break|minute|moment|plan|name|title|poem
        |story|tip|reminder|coffee|nap|drink|hug|holiday|vacation))\b
    |^I\ (?:have|had|have\ got)\ (?:an?|some|another|one|two|a\ few)\ (?:\w+\ )?(?:questions?|problems?|issues?
      |doubts?|ideas?|thoughts?|request|favou?r|point|feeling|look|chat|quick\ \w+|minute|moment)\b
    |^(?:quick|one|another|dumb|silly)\ question\b|^question\b|^(?:looking|asking|searching)\ for\b|^I\ (?:am|was
      |have\ been)\ (?:just\ )?(?:looking|searching|hunting)\ for\b"""
)
_HYPOTHETICAL = _verbose(
    r"""^(?:if|unless|suppose|supposing|assuming|imagine|pretend|say\ (?:I|that)|let's\ say|what\ if|in\ theory|for\ the\ sake\ of\ argument|for\ argument's\ sake|playing\ devil's\ advocate|let\ us\ imagine|hypothetical
      |hypothetically|in\ an\ ideal\ world|one\ day\ I|someday)\b
    |\bif\ (?:I|we|my\ \w+|only)\ (?:were|was|had|could|ever|won|did|might|would|lived|owned)\b
    |\b(?:I|we)\ would\b|\bwould\b(?!\ not\ (?:have\ it|let|allow|budge|renew)\b)|\b(?:might|maybe|perhaps|possibly|hypothetically|theoretically|supposedly|considering|contemplating
      |wondering|wonder|whether|tempted|toying|debating)\b
    |\b(?:I|we)\ (?:could|should|may|shall|ought|must)\b(?!\ not\ (?:eat|have|drink|take|be\ around))(?!\ (?:avoid
      |stay\ away|take|eat|use\ a))
    |\b(?:thinking|dream|dreaming|fantasi[sz]ing|day-?dreaming)\ (?:of|about)\b|\bwish\b|\bused\ to\ (?:think|believe|dream|imagine|pretend)\b|\bwhen\ I\ (?:win|am\ (?:rich|famous|king|queen|president|older|dead))\b|\b(?:about|tempted|dying|just\ going)\ to\ (?:say|tell|joke)\b|\b(?:almost|nearly)\ (?:said|told|wrote|quit|sold|bought|moved|left)\b|\bnot\ sure\ (?:if|whether
      |that)\b|\bas\ if\b|\bwhat\ if\b|\bno\ idea\b
    |\bfor\ (?:example|instance)\b|\blet\ us\ say\b|\bin\ (?:another|a\ (?:past|previous|former|parallel)|my\ next)\ life\b"""
)
_FICTION = _verbose(
    r"""\bin\ (?:my|our|the|this|a|his|her)\ (?:\w+\ )?(?:story|novel|book(?!\ club)|screenplay|script|campaign
      |fan-?fic\w*|poem|dream|comic|role-?play|movie|film|scene|chapter|film|sims?)\b
    |\b(?:my|our|the)\ (?:\w+\ )?(?:character|protagonist|heroine?|villain|narrator|avatar|persona|antagonist)\b
      |\b(?:dreamt|dreamed)\ (?:that|I|about)\b|\bin-game\b|\bd&d\b|\bin\ character\b"""
)
_ROLEPLAY = _verbose(
    r"""\b(?:pretend|let's\ (?:play|pretend)|role-?play\w*|act\ (?:as|like)|acting\ as|let\ us\ play|imagine\ (?:that\ )?(?:you|I|we)
      |you\ are\ now\ an?|from\ now\ on\ you\ are|speak\ as|answer\ as|reply\ as|as\ if\ (?:you|I)\ were
    |play\ (?:the\ part|the\ role)|you\ (?:will|are\ going\ to)\ (?:play|be)\ (?:a|an|the|my)\b|I\ (?:will
      |am\ going\ to)\ (?:be|play)\ (?:the|a|an)\ \w+\ (?:and|,)\ you)\b"""
)
_PAYLOAD = _verbose(
    r"""^(?:\W*(?:please|can\ you|could\ you|would\ you|hey|hi|now)\W+)*(?:translate|rewrite|proofread|correct|fix
      |rephrase|paraphrase|summari[sz]e|polish|edit|improve|shorten|make|turn|check|analy[sz]e|review|convert|draft
      |write|compose
    |create|complete|continue|finish)\b.*(?::\s*$|\b(?:this|the\ following|these)\b(?:\s+\w+){0,6}\W*$)"""
)
_CALL_ME = _verbose(
    r"^(?:please\ |just\ |you\ can\ |everyone\ |people\ |friends\ )*(?:calls?|address"
    r"|refer\ to)\ me\ (?:as\ )?(?!back\b|when\b|a\b|an\b|later\b|at\b|on\b|if\b|crazy\b)\w"
)
_SECOND = _verbose(
    r"^(?:you|your|yours|u|ur)\b(?!\ (?:can|will)\ (?:always\ |usually\ )?(?:call|reach|find)\ me)"
    r"|^(?:cheer|distract|entertain|wake|surprise|humou?r|bear|trust|excuse|forgive|talk|listen)\ (?:with\ |to\ )?(?:me|us)\b"
)
_HABITUAL = _verbose(
    r"\b(?:any\ (?:more|longer)|no\ longer|always|usually|often|every|never|generally|most\ (?:days|mornings|weekends)|for\ (?:years|months"
    r"|decades)|since|chronic\w*|constantly|mornings|weekends|\w+days)\b"
)
_CHATTER = _verbose(
    r"""^(?:(?:I|we)\ (?:just\ |still\ |really\ |also\ |have\ (?=heard|seen|read|noticed|been\ (?:thinking|wondering
      |trying(?!\ to\ (?:sell|buy|get\ pregnant|conceive|quit|lose|learn|move|save))|told)|thought|forgotten|tried|asked|checked|looked)|had\ (?=heard|thought|forgotten
      |hoped))?(?:do\ not\ |did\ not\ |can\ not\ |could\ not\ |will\ |am\ )?(?:see(?!\ (?:an?|my|the|our)\ (?:\w+\ )?(?:\w+(?:ist|path|ician|ractor)|physio|doctor|counsell?or|coach|trainer)\b)|get\ (?:it|that|you|this|an?\ |the\ (?!(?:bus|train|tram|tube|ferry|metro)\b|\w+\ delivered\b))|got\ (?:it|that|you|an?\ (?:error|message|warning|exception)|the\ (?:error|message|point|idea|joke)|this
      |stuck|lost|confused|to\ (?:go|run))
      |understand|understood|agree|disagree|appreciate|apologi[sz]e|thank|guess|suppose|mean|meant|bet|doubt|swear
        |promise|hope(?!\ to\ (?:learn|become|move|visit|run|finish|study|buy|have))|hoped|notice|noticed|realise
        |realize|realised|realized|assume|assumed|figured?|imagine|reckon|see|saw|seen|heard|hear|been\ (?:thinking
        |wondering|trying(?!\ to\ (?:sell|buy|get\ pregnant|conceive|quit|lose|learn|move|save))|told)|mistyped|misspoke|mixed\ up|was\ (?:confusing|mistaken|joking|kidding)|read\ (?:that
        |about|somewhere|an?|the|your|it|this)
      |asked|ask|said|say|told|tell|mention|mentioned|try|tried|click|clicked|check|checked|look(?!\ after)
        |looked(?!\ after)|wait|waited|forgot(?!\ (?:all|how))|forgotten|forget|remember|believe|know(?!\ (?:[A-Z]
        |how\ to|a\ (?:bit|little)))|knew|wanted|need(?!\ (?:glasses|a\ wheelchair|a\ cane|a\ hearing|insulin
        |an?\ inhaler|.*\ any\ more\b))|expect|expected|copy|copied|paste|pasted|type|typed
      |feel(?!\ (?:most|best))|felt|care|mind(?!\ \w+ing\b)|dunno|laughed|cried|smiled|second\ that|rest\ my\ case|stand\ corrected
        |digress|think(?!\ (?:I|my|we|our)\b)|thought|love\ (?:it|this|that|you|your|these|those|how|the\ (?:way|idea
        |answer|suggestion|first|second))|like\ (?:it|this|that|you|your|these|those|how|the\ (?:way|idea|answer
        |suggestion|first|second|sound))
      |hate\ (?:it|this|that|you|your|these|when|how|the\ (?:weather|rain|way|idea))|enjoy(?:ed)?\ (?:it|this|that
        |our|talking|chatting|your)|loved\ (?:it|this|that|your)|liked\ (?:it|this|that|your)|prefer\ (?:it|this|that
        |the\ (?:first|second|third|last|other|former|latter|shorter|longer))|use\ (?:it|this|that)|run\ (?:it|this
        |that|the\ (?:command|script|code|tests?|query|program|app|build|server|job))|ran\ (?:it|this|that|the)|open|opened|find|fix|fixed|install|installed|access|figure|explain|help(?!\ (?:out|at|run|my|in)\b)
        |wait|stop\ (?:laughing|thinking)|come\ (?:up|back)|do\ (?:that|this|it|so|not)\W*$|did\ (?:that|this|it|so
        |not)\W*$|do\W*$|did\W*$|am\W*$|have\W*$|can\W*$|will\W*$)
      (?:\b|\ |(?<=\ ))
    |(?:I\ am|we\ are|I\ was)\ (?:(?:not|so|too|very|really|just|all|pretty|a\ bit|a\ little|kinda|still|quite
      |totally|completely|also|now|feeling|getting|doing|being|only|back)\ )*
      (?:tired|bored|hungry|thirsty|sleepy|happy|sad|fine|good|great|well|okay|ok|alright|busy|back(?!\ (?:in|at|on|to)\ (?!a\ )\w)|here|there|ready
        |sorry|sure|certain|confused|stuck|curious|excited|glad|exhausted|done(?!\ (?:with|\w+ing)\b)|late|early|aware
        |afraid\ (?:that|I|so|not)|afraid|lost|cold(?!\ sore)|hot|warm|drunk|listening|kidding|joking|testing|wondering|asking
        |trying(?!\ to\ (?:sell|buy|get\ pregnant|conceive|quit|lose|learn|move|save))|talking|chatting|looking|hoping|thinking
      |guessing|guess|saying|writing\ (?:to|this)|using\ (?:this|it|your)|seeing\ (?:this|an|the)|getting\ (?:this|an
        |the)|impressed|amazed|surprised|grateful|thankful|pleased|happy|nervous|angry|annoyed|mad|upset|worried
        |stressed|frustrated|overwhelmed|sick\ of|fed\ up|thrilled|proud|lucky|honou?red|blessed|inspired|motivated
        |hopeful|optimistic|pumped|stoked|relieved|touched|flattered|determined|eager|delighted|ecstatic|speechless
        |jealous|out\ of|in\ (?:a\ (?:meeting|hurry|rush)|the\ (?:office|car|train))|on\ (?:my\ way|it|the\ (?:bus
        |train|way))|at\ (?:work|home|the\ office|school|lunch)|away|leaving|off(?!\ (?:the|my|all)\b)|down(?!\ to\ \S*\d|\ to\ (?:one|two|three|four|five)\b)|up(?!\ to\ \S*\d)|all\ (?:set|ears|good)
        |with\ you|right|wrong|rich|doomed|dead|dying|starving|freezing|the\ same|home|outside|online|better|worse
        |next|feeling\ \w+|having\ (?:trouble|issues|problems|a\ (?:bad|rough|hard|good|great|nice|long)|lunch|dinner
        |breakfast|coffee))\b(?!\ of\b(?!\ (?:course|it|this|that)))(?!-)
    |(?:I\ have|I\ had|we\ had|I\ had\ such|I\ am\ having|I\ have\ had)\ (?:an?|such\ an?|quite\ an?|the
      |no)\ (?:(?:really|very|super|bit)\ )?(?:of\ a\ )?(?:(?:long|bad|good|great|nice|rough|hard|tough|busy|terrible
      |lovely|crazy|weird|fun|quiet|productive|stressful|awful|amazing|slow|mad)\ (?:day|night|week|morning|afternoon
      |evening|weekend|time|month|year|trip|flight|feeling|sleep|mood|laugh|meal|chat|start|one)|headache|hangover
      |blast|feeling|hunch|idea|clue|choice|time|moment|break|minute|cold(?!\ sore)|flu|dream|nightmare|hard\ time|sandwich
      |salad|pizza|coffee|tea|snack|problem)\b(?!\ (?:dog|cat|friend|relationship|back))
    |I\ (?:slept|overslept|woke|dozed|napped|yawned|sneezed|ate|(?:had|have)\ .*\ for\ (?:lunch|dinner|breakfast)
      |(?:get|got|see|keep\ getting)\ \"|skipped|missed\ (?:the|my|a)|spilled|burnt|burned|stayed\ up|was\ (?:away
      |out|late|gone|afk)|had\ (?:lunch|dinner|breakfast|coffee|tea|pizza|pasta|soup|a\ (?:sandwich|salad|nap|shower
      |bath|snack))|got\ (?:up|home|back|wet|here|soaked)|went\ to\ bed|took\ (?:a|the)\ (?:nap|shower|bath|bus|break
      |walk)|lost\ my\ (?:keys|umbrella|phone|wallet|place|train)|can\ not\ (?:wait|sleep|complain|stop|see|believe
      |find|open|tell|help|think|remember|figure|decide|concentrate|focus|imagine|get|log|access|read|hear|connect)
      |did\ it|made\ it|won\b|can\ (?:see|tell|hear|imagine|try|do\ (?:it|that)|wait)|will\ (?:be\ (?:back|right
      |there|fine|okay|ok)|let\ you|try|see|do\ (?:it|that)|check|take\ (?:it|that|a\ look)|think|get\ back
      |come\ back|go\ with|keep)|have\ to\ (?:go|run|leave|think|take\ (?:this|that|a\ call)|head|get\ (?:back
      |going))|am\ (?:going|gonna)\ to\ (?:go|bed|sleep|try|check|take\ a|lie|grab|eat|have|think)|go\ to\ bed\ now
      |keep\ getting|had\ to\ (?:laugh|smile)|mean\ it)\b
    |(?:I|we)\ (?:(?:have|had|did|do|will|not|just)\ )*\w+\ (?:it|that|this|them|you|him|her|one)\W*$
    |we\ (?:will\ see|shall\ see|are\ (?:done|good|back|on)|can\ (?:continue|start|move|try|do)|agree
      |need\ to\ (?:talk|stop))
    |my\ (?:(?:\w+\ )?(?:question|problem|issue|point|guess|bad|mistake|apologies|code|script|query|function|error
      |message|prompt|screen|cursor|pleasure|turn|god|goodness|word|(?:head|stomach|back|feet|eyes|throat)\ (?:hurts?
      |aches?|(?:is|are)\ (?:killing|sore|spinning|pounding|tired))|(?:coffee|lunch|dinner|breakfast|train
      |bus)\ (?:is|was|got|came|arrived)|flight\ (?:is|was)\ (?:delayed|late)|(?:wifi|internet|connection|phone|laptop
      |battery)\ (?:is\ (?:slow|down|bad|dead|dying|low|out|not|terrible|acting)|keeps|died|dropped|does)|fault
      |thoughts?|answer|request|understanding|idea|previous|last|first\ question)\b(?!'s\ name))
    |(?:that|this(?!\ (?:week|month|year|spring|summer|autumn|fall|winter|morning))|it(?!\ is\ over\ (?:with
      |between))|these(?!\ days)|those|which|there(?!\ (?:is|are)\ a\ new\b|\ (?:is|are)\ .*\b(?:with\ me|with\ us|mine|at\ home)\b)|here)\b
    |(?:thanks?|thank\ you|cheers|ta|thx|sounds|good|great|nice|cool|perfect|awesome|lovely|wonderful|brilliant
      |excellent|amazing|fantastic|hello|hi|hey|bye|goodbye|see\ you|talk|later|sorry|excuse|pardon|welcome
      |congrat\w*|happy|merry|wow|omg|lol|same|me\ (?:too|neither|either)|never\ mind|nevermind|no\ (?:worries
      |problem|rush|way|thanks|idea|need)|of\ course|fair\ enough|got\ it|makes\ sense|makes\ me|help\ me|for\ me\ it
      |glad|hope|hopefully|wish|guess|not\ sure|not\ really|not\ bad|what\ a|how\ (?:nice|cool|funny|interesting
      |lovely))\b
    )"""
)
_TALK = _verbose(
    r"""^(?:I|we)\ (?:will|shall|am\ going\ to|are\ going\ to|am\ gonna)\ (?:(?:be|keep|try|see|check|think|let|need
      |remember|make\ sure|get\ back|come\ back|do\ (?:my|our)\ best|give\ it|take\ (?:it|that|a\ look|care)
      |have\ a\ look|look|wait|miss|cheer|root|text|call|send|show|tell|share|talk|chat|meet\ you|see\ you|catch)\b
      |(?:\w+\ ){1,2}(?:it|that|this|them|you|those)\b)
    |^we\ (?:can|should|need|got\ (?:it|this|you)|all\ (?:need|have|get)|must|could|may)\b
    |^(?:they|he|she|their|his|her|your|everyone|everybody|nobody|each|every|those|these)\b.*\b(?:us|our)\b
    |^(?:remind(?:s|ed)|seems?|looks?|feels?|enjoy|stay|take\ care|keep|hit|believe|trust|check|count|bring|guess
      |must|can\ not\ wait|could\ not|so\ (?:glad|happy|excited|proud|sorry)|proud|love\ (?:it|that|this|your|you)
      |wishing|sending|hoping|looking|counting|nothing|something|anything)\b"""
)
_FILLER = _verbose(
    r"""\b(?:something|anything|nothing)\ (?:\w+\ )?(?:\w+\ )?happened\b|\bhaving\ (?:fun|a\ (?:blast|ball|laugh|good
      |great))\b|\blet\ me\ know\b|\bthanks?\ (?:you\ )?(?:for|to)\b|\bhere\ for\ you\b|\bproud\ of\ you\b
    |\bI\ have\ (?:got\ )?(?:an?\ )?(?:\w+\ )?(?:story|news|surprise|confession|update)\b|\b(?:great|good
      |nice)\ to\ (?:see|hear|meet)\b|\bcan\ not\ wait\b|\bas\ (?:I\ type|we\ speak)\b|\bhelp\ me\ (?:with|out)\b"""
)
_TODAY_SMALL = _verbose(
    r"^(?:the|a|an|some|our|everything|nothing|today|it|traffic|lunch|dinner|breakfast|class|work|rain\w*"
    r"|weather)\b.*\b(?:this\ (?:morning|afternoon|evening)|today|tonight|right\ now|again|late|was\ (?:great|good"
    r"|fine|terrible|awful|nice|lovely|boring|long))\b"
)
_FIRST = _verbose(r"\b(?:I|me|my|mine|myself|we|us|our|ours)\b")
_NOT_MEANT = _verbose(
    r"""\bor\ so\ it\ (?:feels|seems|felt)\b|\b(?:just|only)\ (?:kidding|joking)\b|\b(?:jk|j/k)\b|\bin\ my\ dreams\b|\b(?:said|says)\ no\ one\ ever\b|\bnot!\s*$
    |^\W*(?:(?:yeah|yes|sure|right|oh)\W+)+(?:and|because|cos|like)\ I(?:'m|\ am)?\ (?:the|a|an|obviously|just|totally|really|so)\b
    |\b(?:yeah|sure),?\ right\b|\bobviously\ (?:love|adore|enjoy|live\ for)\b|\bas\ (?:the|they|my)\ (?:\w+\ )?(?:song|saying|lyric|poem|hymn|proverb|film|say|used\ to\ say|says|goes)\b
    |\b(?:the|that)\ (?:song|line|lyric|joke)\b.*\b(?:goes|about)\b|\bI\ am\ (?:basically|practically|officially)\ (?:a|an|the|married\ to)\b|\b(?:I'm|I\ am|im)\ (?:so\ |just\ |really\ )*(?:loving\ (?:this|the|that|it|every)|living\ the\ dream|the\ (?:king|queen|god|master|world\ champion|poster\ child)\ of)\b
    |^\W*oh,?\ (?:yeah|great|joy|sure|wonderful|good|fantastic|brilliant|perfect)\b|\bbest\ day\ of\ my\ life\b|\bfor\ (?:a\ laugh|laughs|the\ lols)\b|\bas\ a\ joke\b|\bmy\ (?:\w+\ )?(?:hint|motto|mantra|status|caption|tagline|slogan|catchphrase|excuse|alibi|headline)\ (?:is|was|reads)\b
    |\bmarried\ to\ (?:my|the|this)\ (?:job|work|phone|laptop|sofa|bed)\b
    |\b(?:apparently|officially|basically|literally|practically)\b.*(?:\b(?:lol|lmao|rofl|ha(?:ha)+)\b|😂|🤣|😅)"""
)
"""Said in jest, in irony, or in the words of a song."""
_HEADER = re.compile(r"\W*(?:subject|cc|bcc)\s*:", re.IGNORECASE)
"""Begins a letter that is pasted or asked for."""
_PAIR_OVER = _verbose(
    r"^(?:(?:my|our|the|me)\ )?[\w'&\ -]{1,40}?\ and\ (?:I|me|we)\ (?:are|is|am|have|no\ longer|split|broke)\b"
    r".*\b(?:done|through|finished|over|history|split|broke|broken|parted|fell\ out|fallen\ out|together\ any\ more|no\ longer)\b"
)
"""Two who are done with one another: "the gym and I are done"."""


def first_person(text: str) -> bool:
    """Whether an English `text` speaks of its writer."""
    return bool(_FIRST.search(expanded(text)))


_TELEGRAPHIC = re.compile(
    r"(?:just |recently |still |currently |now |also |originally |been )*(?:allergic|lactose|gluten|vegan"
    r"|vegetarian|pescatarian|live|living|based|moved|relocated|work|working|born|from|married|single|divorced"
    r"|engaged|learning|studying"
    r"|left-handed|fluent|speak|diagnosed|got|have|adopted|hate|love|can't stand|cannot stand|don't like|dont like"
    r"|turned|turning|drive|bought|became|\d{1,3} years? old|not a fan|big fan|huge fan|started|joined|retired"
    r"|upgraded|switched|swapped|signed up|enrolled|picked up|took up|taken up|dyed|qualified|promoted|down to|up to|back (?:to|in|at|on)"
    r"|[\w-]+ allergy$|suffer|grew up|quit|stopped|dropped|gave up|given up|sold|cancelled|canceled|no longer|weigh|cant stand|not"
    r" into|am)\b",
    re.IGNORECASE,
)


def telegraphic(text: str) -> bool:
    """Whether an English `text` may leave out its "I" ("allergic to nuts", "just moved to Bergen")."""
    return bool(_TELEGRAPHIC.match(straight(text)))


def states(clause: str) -> bool:
    """Whether an English clause states something that could be worth keeping, going by its form."""
    plain = quoting.unquoted(clause)
    said = expanded(plain).strip(" .!,;:")
    if _CALL_ME.match(said):
        return True
    if not said or len(clause) > LONGEST_CLAUSE or _QUESTION.match(said) or asks(plain):
        return False
    if quoting.MEDICAL_SOURCE.match(said):
        said = quoting.MEDICAL_SOURCE.sub("", said)
    elif quoting.reports(clause, said):
        return False
    if any(p.search(said) for p in (_REQUEST, _HYPOTHETICAL, _FICTION, _SECOND)):
        return False
    bare = without_adverbs(said)
    if _TALK.match(bare) or _FILLER.search(bare) or _TODAY_SMALL.match(said):
        return False
    habit = bare.startswith(("I ", "i ", "we ", "We ", "my ", "My ")) and _HABITUAL.search(said)
    return bool(habit) or not _CHATTER.match(bare)


def clauses(text: str) -> Iterator[Clause]:
    """Yield the clauses of a user's message that state something, in order; see `states`.

    At most `READ_AT_MOST` characters are read. After a call for role-play, and after a request to work on a text that
    follows, the rest of the message is not the user's own statement.
    """
    follows = passed_on = False
    for sentence in sentences(own_words(text[:READ_AT_MOST])):
        if len(sentence) > LONGEST_SENTENCE:
            continue
        plain = expanded(sentence)
        if _ROLEPLAY.search(plain) or _PAYLOAD.match(plain) or _HEADER.match(plain):
            return
        passed_on = passed_on or quoting.heads_text(sentence)
        found = [clause for clause in _of_sentence(sentence) if clause.explicit or not passed_on]
        for at, clause in enumerate(found):
            yield replace(clause, follows=follows if at == 0 else not found[at - 1].loose)
        follows = bool(found) and not found[-1].loose


def _of_sentence(sentence: str) -> Iterator[Clause]:
    if _TAG.search(straight(sentence)):
        return
    explicit = asked_to_keep(sentence)
    if explicit:
        yield explicit
        return
    if quoting.is_speech(sentence) or (re.search(r":\s", sentence) and _REQUEST.match(expanded(opened(sentence)))):
        return
    if _NOT_MEANT.search(straight(sentence)):
        return
    whole = opened(sentence)
    if _PAIR_OVER.match(expanded(whole)) and states(whole):
        yield Clause(whole, sentence)
        return
    for quote in split(sentence):
        if quoting.speaks_as(quote):  # and so does what comes after it
            return
        if states_command(quote):
            yield Clause(quote, quote)
            continue
        text = opened(quote)
        if text and states(text):
            yield Clause(text, quote)
        elif (said := before_question(text)) and may_state(said):
            yield Clause(said, said, loose=True)


_LAST_PART = re.compile(
    r"(?:[,;:]|\s[-–—])\s+(?=[^,;:]*\?\W*$)|[，；：](?=[^，；：]*[?？]\W*$)|、(?=[^、]*[?？]\W*$)"
    r"|\s+(?=so (?:what|which|how|where|when|is|are|do|does|can|should)\b[^,;:]*\?\W*$)"
)


def before_question(text: str) -> str:
    """Return `text` without the question that it ends in ("quit swimming, new timetable?"); nothing where it is one."""
    if not text.rstrip().endswith(("?", "？")):
        return text
    cut = _LAST_PART.search(text)
    return text[: cut.start()].strip() if cut else ""


_IMPERATIVE = re.compile(
    r"(?:give|make|write|show|tell|explain|find|help|list|suggest|recommend|translate|check|fix|add|remove|use|do|don't|let|let's"
    r"|can|could|draft|shorten|rewrite|compare|summari[sz]e|redo|put|start|stop|send|turn|change|any|how|what|why|where|when|which"
    r"|who|anything|something|ideas|tips|cheer)\b",
    re.IGNORECASE,
)


_HEARSAY = _verbose(
    r"""^(?:I|we)\ (?:just\ |also\ |recently\ )?(?:heard|read|saw|overheard|got\ wind)\b|\b(?:unverified|allegedly|apparently|rumou?rs?
      |hearsay|supposedly)\b"""
)


def may_state(clause: str) -> bool:
    """Whether a clause that states nothing by its form may do so: it does not ask, suppose, play, or say what somebody says."""
    plain = quoting.unquoted(clause)
    said = expanded(plain).strip(" .!,;:")
    if (
        (len(said.split()) < 2 and said.isascii())
        or len(clause) > LONGEST_CLAUSE
        or _QUESTION.match(said)
        or asks(plain)
    ):
        return False
    excluded = (_REQUEST, _HYPOTHETICAL, _FICTION, _HEARSAY)
    return not (_IMPERATIVE.match(said) or quoting.reports(clause, said) or any(one.search(said) for one in excluded))


def asked_to_keep(sentence: str) -> Clause | None:
    """Return what a sentence asks to be remembered, updated or confirmed, verbatim; None where it asks for nothing of the kind."""
    found = _EXPLICIT.match(straight(sentence))
    if not found or (rest := sentence[found.end() :]) == "" or _NOT_EXPLICIT.match(rest):
        return None
    return Clause(rest.rstrip("?").strip(), sentence, explicit=True)


_COMMAND = _verbose(
    r"""^(?:\W*(?:please|pls|ok|okay|actually|no|oh|and|also|you\ can|can\ you|could\ you)\W+)*(?:
    (?:forget|scrap|delete|remove|erase|drop|disregard|ignore|unlearn|never\ mind|strike)\ (?:(?:about|everything|all)\b|(?:the\ (?:fact
      |thing|bit|part)\ )?(?:that\b|what\ I\ (?:said|told)|what\ you\ know|my\b|I\b))
    |(?:that|it|this)(?:\ one)?\ (?:is|was)\ (?:not|no\ longer)\ (?:true|right|correct|the\ case|accurate|valid|so)\b
    |(?:that|the\ fact\ that)\ .+\ is\ (?:not|no\ longer)\ (?:true|right|correct|the\ case|accurate|valid|so)\b
      |(?:that|it|this)\ is\ (?:wrong|outdated|old\ news|a\ thing\ of\ the\ past)\b|I\ take\ (?:it|that)\ back\b)"""
)


def states_command(text: str) -> bool:
    """Whether `text` takes something back by name: "forget that …", "that's not true any more"."""
    return bool(_COMMAND.match(expanded(text))) and not text.rstrip().endswith("?")


_TAIL = _verbose(
    r"(?<=\w)[,.]?\s+(?:as\s+(?:I\s+)?(?:said|mentioned|told\s+you)(?:\s+(?:before|earlier|already))?"
    r"|in\s+case\s+you\s+forgot|remember|(?:as\s+)?you\s+know|by\s+the\s+way|btw|lol|haha|tbh|from\s+now\s+on|fyi"
    r"|like\s+I\s+said|I\s+mistyped)\W*$"
)


def opened(quote: str) -> str:
    """Return `quote` without its opening ("by the way, …", "actually, …", "since …"), verbatim."""
    plain = straight(quote)
    at = 0
    if lead := _LEAD.match(plain):
        at = lead.end()
    if given := _GIVEN.match(plain[at:]):
        at += given.end()
    end = tail.start() if (tail := _TAIL.search(plain)) else len(quote)
    return quote[at:end].strip(" ,;:-–—()")


def split(sentence: str) -> list[str]:
    """Split a sentence where a clause with a subject of its own begins; every piece is verbatim."""
    plain = quoting.unquoted(sentence)
    pieces: list[str] = []
    start = 0
    if ground := _GROUND.match(plain):
        pieces, start = [sentence[: ground.end()]], ground.end()
    for mark in _BOUNDARY.finditer(plain):
        left = plain[start : mark.start()]
        asked = left.lower().endswith("please")
        if mark.start() == start or not (asked or _HAS_VERB.search(left)) or _open_condition(left):
            continue
        pieces.append(sentence[start : mark.start()])
        start = mark.end()
    return [piece for piece in (*pieces, sentence[start:]) if piece.strip()]


def _open_condition(left: str) -> bool:
    """Whether `left` is only the subordinate half ("When I was ten"), which its main clause needs."""
    return bool(_SUBORDINATE.match(left)) and "," not in left
