"""The little that is read of other languages than English: who speaks of themselves, and a few slots of high value."""

import re
from collections.abc import Collection

from sharpwave.memory.extract.quoting import is_speech_elsewhere, unquoted_elsewhere
from sharpwave.memory.extract.slotting import USER, Reading
from sharpwave.memory.extract.values import thing_key

_ENGLISH = re.compile(
    r"\b(?:the|is|are|and|of|to|my|it|you|have|not|that|with|for|this|but|at|from|i'm|been|has|our|we|off|can't"
    r"|turned|yesterday|today|lives|works|goes|likes|loves|moved|still|now|she|they|his|her"
    r"|don't)\b",
    re.IGNORECASE,
)
_SMALL_WORDS = re.compile(
    r"\b(?:der|das|dem|den|und|ist|nicht|ein|eine[nmr]?|mit|für|auf|jetzt|auch|noch|wir|aber|schon|el|los|las|una|que|qué|por|para|del"
    r"|pero|muy|ahora|les|du|une|et|est|pas|avec|pour|dans|elle|ça|qui|sur|maintenant|che|di|è|però|anche|adesso|não|com|uma|mas"
    r"|agora)\b",
    re.IGNORECASE,
)
"""Small words of other languages that are none in English."""
_ASCII_WORDS = re.compile(r"[a-z']+", re.IGNORECASE)
_FIRST_PERSON = re.compile(
    r"\b(?:ich|mein\w{0,2}|mir|mich|wir|unser\w{0,2}|yo|mis?|nosotr[oa]s|nuestr[oa]s?|me\s+(?:llamo|gusta\w*"
    r"|encanta\w*|mudé|dedico|casé)|soy|tengo|vivo|estoy|trabajo|prefiero|odio|hablo|nací|juego|compré|estudio"
    r"|como|bebo|leo|corro|toco|uso|cocino|voy|hago|mudo|conduzco|toco|colecciono"
    r"|je|j['’]\w+|moi|mon|ma|mes|nous|notre|nos|eu|meus?|minhas?|nós|nosso|sou|tenho|moro|gosto|adoro|falo|nasci"
    r"|mudei|detesto|io|mi[oae]i?|miei|noi|nostr[oaie]|sono|ho|abito|lavoro|parlo|mi\s+(?:chiamo|piac\w+)|amo"
    r"|odeio|ik|mijn|wij|ons|onze|jag|min|mitt|mina|jeg|mitt|jestem|mam|mój|moja|moje|mieszkam)\b"
    r"|\b(?:я|мой|моя|моё|мои|меня|мне|мы|наш\w*)\b|我|咱|私|僕|俺|わたし|ぼく|나는|저는|제가|내가|우리|住んで|飼って|働いて|勤めて|通って|好きです|嫌いです"
    r"|苦手です|アレルギー|やめました",
    re.IGNORECASE,
)
_IN_PASSING = re.compile(
    r"^(?:hab|bin|pendel|pendle|jobbe|studiere|arbeite|wohne|fahre|gehe|j(?:e\s)?suis|chuis|on\s+(?:part|s['’]est|vit|habite|a\s+\w+é))\b"
    r"|\b(?:vivimos|padezco|doy|llevo|arranqué|largué|empecé|dejé|salgo|somos|tenemos|estamos|vamos)\b",
    re.IGNORECASE,
)
"""The first person without its pronoun."""
_JAPANESE = re.compile(
    r"うち|妻|夫|息子|娘|実家|主人|家内|毎[日週月年朝晩]"
    r"|(?:[てで]い?(?:ます|る|おります)|になりました|になった|と申します|辞めた|に行きます|派です|派なんだ)"
    r"(?:$|[。、！!]|よ|ん[だで]|けど|が|から|ので|らしい|の$)"
)
_SOMEBODY_ELSE = re.compile(
    r"さん|様|先生|彼|彼女|あの人|みんな|天気|雨|雪|今日は|お世話になっ|^[^、。]{1,8}が[^、。]*(?:降|咲|鳴|吹|届)"
)
"""In Japanese who speaks leaves himself out, and whoever else is meant is named."""
_ASKS = re.compile(r"[?？؟]|^\s*[¿]|(?:か|吗|呢|么)[。．.!！]?\s*$|(?:ですか|ますか|나요|까요)")
_UNREAL = re.compile(
    r"\b(?:würde\w*|hätte\w*|wäre\w*|könnte\w*|vielleicht|möchte\s+(?:wissen|gern)|wenn\s+ich|quisiera|quizás?"
    r"|tal\s+vez|si\s+(?:yo\s+)?\w+(?:ara|iera|uera|ese)|ojalá|peut-être|si\s+j\w*|j['’]aimerais|je\s+voudrais"
    r"|pourrais|talvez|se\s+eu|gostaria|queria"
    r"|forse|se\s+(?:io|fossi|avessi)|vorrei|magari|brauche\s+hilfe|danke\w*|gracias|merci|obrigad[oa]|grazie"
    r"|necesito\s+(?:ayuda|que)|ich\s+(?:will|möchte),?\s+dass|kannst|könntest|puedes|podrías|peux-tu|pouvez|pode"
    r"|puoi|potresti|ich\s+überlege|me\s+pregunto\s+si|je\s+me\s+demande|estoy\s+pensando|remercie|jaja|corrige[rz]?|traduis\w*|tradúce\w*|traduce\w*|übersetz\w*|kannste|könntste|schreib\w*\s+mir|zeig\w*\s+mir|erklär\w*\s+mir|hilf\s+mir|mach\w*\s+mir|sag\w*\s+mir"
    r"|tu\s+peux|tu\s+pourrais|vous\s+pouvez|fais-moi|aide-moi|dis-moi|stp|svp|s['’]il\s+(?:te|vous)\s+plaît|ayúdame|dime|hazme"
    r"|explícame|por\s+favor|me\s+ajuda|aiutami|dimmi|per\s+favore)\b"
    r"|如果|要是|也许|可能|想象|假装|请|帮我|给我|可不可以|改得|改成|翻译|教えて|くれ(?:る|ない|ませんか|$)|てほしい|羡慕|謝謝|谢谢|もし|たら、|かもしれ|ありがとう|ください|下さい|お願い",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\W*(?:(?:vielen?|schönen?|guten?|muchas?|muchos?|bonne?|bom|boa|buon\w*|mille|muito|molte|non|de|no|hay"
    r"|prego|bitte|tag|morgen|abend|días|dias|tardes|noches|noite|tarde|dia|jour|soir|giorno|sera"
    r"|danke\w*|gracias|merci|beaucoup|obrigad[oa]|grazie|hallo|hola|salut|bonjour|bonsoir|olá|oi|ciao|tschüss"
    r"|adiós|genial|super|prima|perfecto|parfait|ok|okay|спасибо|привет|пока)\W*)+"
    r"|\W*(?:谢谢|多谢|你好|好的|再见|ありがとう(?:ございます)?|こんにちは|おはよう|はい|了解|감사합니다|안녕하세요|네)\W*",
    re.IGNORECASE,
)
_PLACE = r"(?P<v>[\w’'-]+(?:\s+(?-i:[A-ZÀ-Þ])[\w’'-]+){0,2})"
_THING = r"(?P<v>[\w’'-]+(?:\s+(?:und|y|et|e|o|ou|de|di|da)\s+[\w’'-]+)*)"
_SLOTS = tuple(
    (attribute, re.compile(pattern, re.IGNORECASE))
    for attribute, pattern in (
        ("home_city",
            (rf"\b(?:ich\s+(?:wohne|lebe)(?:\s+(?:jetzt|seit\s+\w+))?\s+in|vivo\s+en"
            rf"|j['’]habite(?:\s+maintenant)?\s+(?:à|en|au)|je\s+vis\s+à|moro\s+em|vivo\s+em|(?:vivo"
            rf"|abito)\s+a)\s+{_PLACE}")),
        ("home_city", rf"\b(?:nach\s+{_PLACE}\s+(?:gezogen|umgezogen))"),
        ("home_city",
            (rf"\b(?:me\s+(?:he\s+mudado|mudé)\s+a|j['’]ai\s+déménagé\s+à|mudei(?:-me)?\s+para"
            rf"|mi\s+sono\s+trasferit[oa]\s+a)\s+{_PLACE}")),
        ("home_city", r"我(?:现在)?(?:住在|搬到了?|搬去)(?P<v>[^，。,.！!、]+)"),
        ("home_city", r"(?:私は|僕は|俺は)?(?P<v>[^、。は]+?)に(?:住んでいます|住んでいる|住んでる|引っ越しました)"),
        ("allergy",
            (rf"\b(?:allergisch\s+(?:gegen|auf)|al[ée]rgic[oa]\s+(?:a(?:l|\s+l[oa]s?)?|ao?s?|à)"
            rf"|allergique\s+(?:à\s+la|à\s+l['’]|aux|au|à)|allergic[oa]\s+(?:al(?:la|le|l['’])?|agli|ai"
            rf"|a))\s*{_THING}")),
        ("allergy", r"我对(?P<v>[^，。,.！!]+?)过敏"),
        ("allergy", r"(?P<v>[^、。は]+?)アレルギー"),
        ("name",
            (r"\b(?:ich\s+heiße|mein\s+name\s+ist|me\s+llamo|mi\s+nombre\s+es|je\s+m['’]appelle|meu\s+nome\s+é"
            r"|(?:eu\s+)?me\s+chamo|chamo-me|mi\s+chiamo)\s+(?P<v>[\w-]+(?:\s+(?-i:[A-ZÀ-Þ])[\w-]+)?)")),
        ("name", r"(?:我叫|我的名字是)(?P<v>[^，。,.！!]+)"),
    )
)  # fmt: skip
_OVER = re.compile(
    r"\b(?:nicht|kein\w*)\b.*\bmehr\b|\bya\s+no\b|\b(?:ne|n['’]\w*)\b.*\bplus\b|\bnão\b.*\bmais\b|\bjá\s+não\b"
    r"|\bnon\b.*\bpiù\b|不再|已经不|不.*了$|もう.*(?:ない|ません)|やめ(?:た|ました)|더\s*이상"
    r"|\b(?:gestorben|verstorben|tot|gekündigt|aufgegeben|aufgehört|abgesagt|verkauft|murió|ha\s+muerto|falleció|dejé"
    r"|vendí|cancelé|est\s+mort\w*|est\s+décédé\w*|ai\s+(?:quitté|arrêté|vendu|annulé)|è\s+mort[oa]|morreu)\b"
    r"|死了|去世|卖了|取消了|戒了|亡くなりました|死にました|売りました|辞めました",
    re.IGNORECASE,
)
_GIVEN_UP = re.compile(
    r"\b(?:gestorben|verstorben|tot|gekündigt|aufgegeben|aufgehört|abgesagt|verkauft|geschmissen|murió|muerto|falleció|dejé|vendí"
    r"|cancelé|mort\w*|décédé\w*|quitté|arrêté|vendu|annulé|morreu)\b",
    re.IGNORECASE,
)
_DOING = frozenset(
    "spiele lerne mache gehe treibe fahre besitze joue apprends fais vais juego aprendo hago voy practico toco jogo faço"
    " gioco imparo faccio suono besuche travaille travaillais chez arbeite trabajo lavoro trabalho".split()
)
"""What one does with what one may give up."""
_RESTRICTS = re.compile(
    r"\b(?:alleine?|nachts|morgens|abends|mittags|\w+tags|seule?|sol[oa]|sozinh[oa]|noche|noches|mañanas?|tardes?|nuit|soir|matin"
    r"|lunes|martes|miércoles|jueves|viernes|sábados?|domingos?|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)\b",
    re.IGNORECASE,
)
"""What takes back a part only: alone, at night, on Thursdays."""
_COUNTS = re.compile(
    r"每天|天天|经常|常常|毎日|よく|[一二两三四五六七八九十]?[只個个条條辆輛台部匹頭头]|养|養|有|飼ってい?|飼い|住んでい?|いる|い"
)
_FUNCTION = frozenset(
    "ich habe bin mein meine meinen nicht kein keine keinen keiner mehr jetzt noch den die das dem der ein eine"
    " einen in im auf mit und zu"
    " yo ya no tengo soy estoy mi mis un una el la los las de del en con y a que al me"
    " je j ne n ai suis plus pas mon ma mes le les des du une à au aux et dans il elle est"
    " ist sind hat gestorben verstorben tot gekündigt aufgegeben aufgehört abgesagt verkauft meiner unser unsere"
    " murió ha muerto falleció dejé vendí cancelé nuestro nuestra"
    " est mort morte décédé décédée quitté arrêté vendu annulé notre nos"
    " eu não já mais tenho sou meu minha o os as um uma em do da no na io non più ho sono il lo gli mio mia di".split()
)
_MARKS = re.compile(
    r"我们|我的?|死了|去世|卖了|取消了|戒了|不再|已经|在|不|了|。|私は|僕は|俺は|もう|は|を|が|に|やめました|やめた|亡くなりました|死にました|売りました|辞めました|ません|ない|です|ます"
)
_ONE = r"""(?:lieblings[\w-]+|[\w -]*\b(?:favorit[oa]s?|préférée?s?|preferid[oa]s?|preferit[oa])\b[\w -]*|[\w-]*(?:nummer|adresse|termin
    |geburtstag|passwort)|e-?mail[\w -]*|(?:número|correo|cumpleaños|cita|numéro|anniversaire|rendez-vous|aniversário|compleanno
    |endereço|indirizzo)\b[\w -]*)"""
"""What there is one of: in "my brother is a nurse" and "my brother is tall" there are two facts."""
_NAMED = r"(?:heißt|se\s+llama|s['’]appelle|se\s+chama|si\s+chiama)"
_IS = r"(?:ist|es|est|é|è)\s+(?:jetzt\s+|nun\s+|ahora\s+|maintenant\s+|agora\s+|ora\s+)?(?:el\s+|la\s+|le\s+)?"
_MINE = r"\b(?:mein\w{0,2}|mi|mon|ma|(?:o\s+|a\s+)?(?:meu|minha)|(?:il\s+|la\s+)?(?:mio|mia))\s+"
_OWN = (
    re.compile(rf"{_MINE}(?P<t>[\w -]+?)\s+{_NAMED}\s+(?P<v>[^,;!?]+)", re.IGNORECASE),
    re.compile(rf"{_MINE}(?P<t>{_ONE})\s+{_IS}(?P<v>[^,;!?]+)", re.IGNORECASE | re.VERBOSE),
)
_NOT = re.compile(r"\b(?:nicht|kein\w*|no|pas|non|não)\b|不|没|ない|ません", re.IGNORECASE)


def is_english(text: str) -> bool:
    """Whether `text` is read as English: it has English function words, or nothing that says otherwise."""
    letters = sum(c.isalpha() for c in text)
    if letters and sum(c.isascii() and c.isalpha() for c in text) < 0.6 * letters:
        return False
    foreign = len(_FIRST_PERSON.findall(text)) + len(_SMALL_WORDS.findall(text))
    english = len(_ENGLISH.findall(text))
    return english >= foreign or bool(re.search(r"\bI\b|\bi'm\b", text))


def asks(text: str) -> bool:
    """Whether a text that is not English asks something."""
    return bool(_ASKS.search(text))


def is_courtesy(text: str) -> bool:
    """Whether a text that is not English only thanks or greets."""
    return bool(_COURTESY.fullmatch(text))


def speaks_of_self(text: str) -> bool:
    """Whether a text that is not English states something of who says it."""
    own = unquoted_elsewhere(text)
    left_out = _IN_PASSING.search(own) or (_JAPANESE.search(own) and not _SOMEBODY_ELSE.search(own))
    return bool(_FIRST_PERSON.search(own) or left_out) and not _supposes(text)


def _supposes(text: str) -> bool:
    return bool(_ASKS.search(text) or _UNREAL.search(text)) or is_speech_elsewhere(text)


def _names(text: str) -> list[str]:
    """Return what may be a name: words with a capital, and what stands before は, が, の or さん."""
    return re.findall(
        r"\b[A-ZÀ-Þ][\w-]+|[\u4e00-\u9fff\u30a0-\u30ff]{2,4}?(?=は|が|の|さん|ちゃん|君)", unquoted_elsewhere(text)
    )


def read(text: str, subject: str = USER, names: Collection[str] = ()) -> Reading | None:
    """Read a clause that is not English; None when it asks or supposes, or speaks of nobody's life that is known.

    Args:
        text: the clause.
        subject: its writer.
        names: names that memories are about or hold, in lower case.
    """
    if not speaks_of_self(text):
        about = next((word for word in _names(text) if word.casefold() in names), None)
        if about is None or _supposes(text):
            return None
        return Reading(about, value=about, retract=True) if _OVER.search(text) else Reading(about)
    if _OVER.search(text):
        return Reading(subject, value=_left_over(text) or None, retract=True)
    for attribute, pattern in _SLOTS:
        if found := pattern.search(text):
            value = found["v"].strip()
            denied = bool(_NOT.search(text))
            return Reading(subject, attribute, value, retract=denied) if value else Reading(subject)
    for pattern in _OWN:
        if own := pattern.search(text):
            return Reading(subject, thing_key(own["t"]), own["v"].strip(" ."))
    return Reading(subject)


def names_all(said: str, kept: str) -> bool:
    """Whether a retraction names everything that a kept statement says, so that nothing else goes with it."""
    gone = _content(said)
    left = _content(kept) - gone - (_DOING if _GIVEN_UP.search(said) else frozenset())
    return not left and bool(_content(kept) & gone) and not (_RESTRICTS.search(said) and not _RESTRICTS.search(kept))


def _content(text: str) -> frozenset[str]:
    """Return the content words of a text; of Chinese and Japanese, its characters without marks of grammar."""
    if re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", text):
        return frozenset(re.sub(r"[\W_]", "", _COUNTS.sub("", _MARKS.sub("", text))))
    return frozenset(re.findall(r"\w+", text.casefold())) - _FUNCTION


def _left_over(text: str) -> str:
    """Return what a retraction is about: its words without function words and marks of grammar."""
    words = re.findall(
        r"[^\W\d_]+", _MARKS.sub(" ", text) if not text.isascii() and not re.search(r"[a-z]{3}", text) else text
    )
    return " ".join(w for w in words if w.casefold() not in _FUNCTION)
