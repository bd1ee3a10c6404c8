"""A made-up town chronicle of any length, and facts to hide in it with questions about them."""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

WORDS_A_TOKEN = 0.83
"""The tokenizer of MiniLM takes 1.21 tokens for a word of this chronicle."""


class Needle(NamedTuple):
    """A fact to hide, with a question about it."""

    kind: str
    text: str
    question: str
    answer: str
    """What an answer has to hold."""
    near: tuple[str, ...]
    """Sentences about the same matter that do not answer the question."""


NEEDLES = (
    Needle(
        "same words",
        "The combination of the safe in the town hall is 4713.",
        "What is the combination of the safe in the town hall?",
        "4713",
        (
            "The safe in the bank has a combination that nobody wrote down.",
            "The clerk forgot the combination of the town hall's side door.",
            "A new safe was carried up the stairs of the town hall.",
        ),
    ),
    Needle(
        "other words",
        "Ilse Maartens' father repairs violins in a cellar in Ghent.",
        "What does Ilse Maartens' dad do for a living?",
        "violins",
        (
            "Ilse Maartens' mother sells tulips on Saturdays.",
            "Ilse Maartens' father never missed a market day.",
            "What Ilse Maartens' brother does for a living was anybody's guess.",
        ),
    ),
    Needle(
        "pronoun",
        "Marek Dvorsky came back from the coast in spring. He had sold his mill to a baker from Graz.",
        "To whom did Marek Dvorsky sell his mill?",
        "baker from Graz",
        (
            "Marek Dvorsky inherited the mill from an uncle.",
            "The mill of Marek Dvorsky stood still for two winters.",
            "Others wanted to sell their mills too, but to whom?",
        ),
    ),
    Needle(
        "date",
        "On 14 May 1893 the first train crossed the viaduct at Sennhof.",
        "When was the viaduct at Sennhof first crossed by a train?",
        "14 May 1893",
        (
            "The viaduct at Sennhof was painted green in 1911.",
            "In June 1902 a train stood on the viaduct at Sennhof for two hours.",
            "Nobody remembers when the viaduct at Sennhof got its lamps.",
        ),
    ),
    Needle(
        "number",
        "Captain Ottesen came in on the evening tide with 212 barrels of salt.",
        "How many barrels of salt did Captain Ottesen bring?",
        "212",
        (
            "Captain Lund brought 90 barrels of salt and was laughed at.",
            "Captain Ottesen lost barrels of tar in the storm.",
            "How many barrels of salt the cellar could hold was never settled.",
        ),
    ),
    Needle(
        "talk",
        "Tove: Is there a medicine you cannot take?\nPia: Penicillin, it gives me hives.",
        "Which medicine can Pia not take?",
        "Penicillin",
        (
            "Tove: Pia, did you take your medicine?",
            "Pia: I take the early ferry.",
            "Tove: The medicine on the shelf is for the goats.",
        ),
    ),
    Needle(
        "common words",
        "Aunt Berta hides the spare key of the boathouse under the third beehive.",
        "Where is the spare key of the boathouse?",
        "third beehive",
        (
            "The key of the boathouse was heavy and old.",
            "A spare key of the chapel hung in the school.",
            "The boathouse had a new door, but where was its key?",
        ),
    ),
    Needle(
        "role",
        "After the vote Henrike Sol took over as head of the fire brigade from Anton Weiss.",
        "Who succeeded Anton Weiss as head of the fire brigade?",
        "Henrike Sol",
        (
            "Anton Weiss was head of the fire brigade for nine years.",
            "The fire brigade thanked Anton Weiss with a clock.",
            "Who would lead the fire brigade, people asked.",
        ),
    ),
    Needle(
        "reason",
        "Lieve Bosch stopped swimming in the lake because the cold made her knees ache.",
        "Why does Lieve Bosch no longer swim in the lake?",
        "knees",
        (
            "Lieve Bosch swam across the lake when she was twelve.",
            "The lake was too cold for most people, and Lieve Bosch knew why.",
            "Lieve Bosch no longer owns the hut by the lake.",
        ),
    ),
    Needle(
        "buried",
        "On the list stood two lanterns, a coil of rope, Doctor Emmerich's microscope, which was later lent to the school in "
        "Varna, six blankets and a box of nails.",
        "To which school was Doctor Emmerich's microscope lent?",
        "Varna",
        (
            "Doctor Emmerich lent his coat to a stranger.",
            "The school asked for a microscope and got a globe.",
            "Doctor Emmerich looked through the microscope every evening.",
        ),
    ),
)
HELD_OUT = (
    Needle(
        "place",
        "Since the flood the archive of the guild has been stored in a disused brewery outside Bruck.",
        "Where is the guild's archive kept now?",
        "brewery",
        (
            "The guild kept its archive dry for sixty years.",
            "Where the guild met in those days is not known.",
            "The archive of the bishop was kept in a tower.",
        ),
    ),
    Needle(
        "verb in other words",
        "Radka Hoffer purchased the corner inn for 9,400 crowns.",
        "How much did Radka Hoffer pay for the inn on the corner?",
        "9,400",
        (
            "Radka Hoffer paid for everybody's soup that night.",
            "The inn on the corner had eleven beds.",
            "How much an inn may charge was written on a board.",
        ),
    ),
    Needle(
        "transcript",
        "Interviewer: What made you leave the navy, Mr Aalto?\nAalto: My eyesight, to be honest.",
        "Why did Mr Aalto leave the navy?",
        "eyesight",
        (
            "Interviewer: Did you like the navy, Mr Aalto?",
            "Aalto: The navy taught me to cook.",
            "Interviewer: And why did you leave the choir, Mr Aalto?",
        ),
    ),
    Needle(
        "relative clause",
        "The portrait of the countess, which a restorer named Bea Lindqvist had cleaned, came back in a cart full of straw.",
        "Who cleaned the portrait of the countess?",
        "Bea Lindqvist",
        (
            "The portrait of the countess hung above the stairs.",
            "The countess cleaned her boots herself.",
            "Who painted the portrait of the countess is still disputed.",
        ),
    ),
    Needle(
        "negation",
        "Of the three sons only Valentin could not read.",
        "Which of the sons was unable to read?",
        "Valentin",
        (
            "The three sons liked to read aloud.",
            "Most of the sons of the town were unable to swim.",
            "Which of the sons would inherit was an open secret.",
        ),
    ),
    Needle(
        "two sentences on",
        "Professor Quandt wrote one book. It appeared in 1931. Its subject was the migration of eels.",
        "What was Professor Quandt's book about?",
        "eels",
        (
            "Professor Quandt lost a book on the ferry.",
            "There was a book about lighthouses in every window.",
            "Professor Quandt was asked what the fuss was about.",
        ),
    ),
    Needle(
        "list",
        "Room assignments: Fitz 12, Gruber 14, Nakamura 17, Orsini 21, Petrov 23.",
        "Which room was Nakamura assigned?",
        "17",
        (
            "Nakamura asked for another room.",
            "Every room had a stove and a chair.",
            "Which room had the leak, nobody wanted to say.",
        ),
    ),
    Needle(
        "opposite order",
        "Seven hundred metres: that is how deep the shaft at Kolm goes.",
        "What is the depth of the shaft at Kolm?",
        "Seven hundred",
        (
            "The shaft at Kolm was closed on Sundays.",
            "The depth of the harbour is 9 metres at low tide.",
            "A cage went down the shaft at Kolm twice a day.",
        ),
    ),
    Needle(
        "state",
        "The doctor told Yusuf Demir that his leg would heal, but that he would never hear again on the left side.",
        "Which ear is Yusuf Demir deaf in?",
        "left",
        (
            "Yusuf Demir played the drum with his right hand.",
            "An old man, deaf in one ear, sat in front.",
            "Yusuf Demir wore a ring in his ear.",
        ),
    ),
    Needle(
        "name of a thing",
        "They christened the new lifeboat Perseverance and sent her out the same week.",
        "What is the new lifeboat called?",
        "Perseverance",
        (
            "The old lifeboat was called a coffin by those who rowed it.",
            "The new lifeboat had ten oars.",
            "What the crew called the cook is not fit to print.",
        ),
    ),
)
"""Written when the reader was done; nothing was changed on their account."""
UNANSWERED = (
    "What is the name of Captain Ottesen's wife?",
    "Which instrument does Henrike Sol play?",
    "How much did the viaduct at Sennhof cost?",
    "What did the astronomer discover on Mars?",
    "Where did Professor Quandt study chemistry?",
)
"""Questions that nothing in the chronicle answers."""

_WORDS = {
    "who": "the miller|the ferryman|the schoolmaster|old Jansen|the baker's widow|a pedlar|the harbour master|Mrs Pohl|the clerk"
    "|the youngest of the Brandt girls|a surveyor|the sexton|Doctor Emmerich|Captain Lund|the glazier|a tinker|the postman".split(
        "|"
    ),
    "did": "mended|carried|sold|painted|counted|lost|found|measured|hid|borrowed|polished|described|bought|weighed|lent".split(
        "|"
    ),
    "what": "a barrel of salt|the weathercock|two lanterns|the parish register|a brass lamp|an old sail|the market scales|a key"
    "|a crate of herring|the church clock|a violin case|a map of the coast|the bell rope|four oars|a bundle of letters".split(
        "|"
    ),
    "where": "by the quay|in the town hall|behind the chapel|at the mill|near the lake|on the north road|in the cellar|at school"
    "|under the bridge|in the boathouse|beside the viaduct|in the market square|at the ferry|in the fire station".split(
        "|"
    ),
    "when": "in spring|on a Saturday|before the storm|in 1887|after the vote|that evening|twice a year|in the long winter of 1904"
    "|at the first frost|on the eve of the fair|for nine years|when the train was late|in June|at low tide".split("|"),
    "why": "because the cold made the rope stiff|since nobody asked|to please the council|for want of money|as his father had"
    "|because the ferry was late|out of habit|for the sake of peace|though few believed it|to settle a debt".split("|"),
}
_SHAPES = (
    "{When} {who} {did} {what} {where}.",
    "{Who} {did} {what} {where} {why}.",
    "It was said that {who} {did} {what} {when}.",
    "{Who} and {who2} argued about {what} {where}.",
    "Nobody remembers why {who} {did} {what}, but it was {when}.",
    "{When}, {where}, {who} met {who2} and spoke of {what}.",
    "The price of {what} was {number} crowns {when}.",
    "{Who2} wrote that {what} had been seen {where} {when}, {why}.",
    "No. {number} in the register names {who}, {what} and the {syllables} family.",
)
_SYLLABLES = "ka ro mi ten dal ver su lo ban fer gri hol wes mar tu zel".split()


def chronicle(tokens: int, needles: Sequence[Needle], seed: int) -> Iterator[str]:
    """Yield paragraphs of a chronicle of about so many tokens, with the needles spread over it and their decoys around them.

    Args:
        tokens: length in tokens, by `WORDS_A_TOKEN`; at least a few thousand.
        needles: facts to hide; the n-th of N at (n + ½) / N of the length.
        seed: of the choice of words, and of where the decoys stand.
    """
    chance = random.Random(seed)
    words = int(tokens * WORDS_A_TOKEN)
    places = [(int(words * (number + 0.5) / len(needles)), needle.text) for number, needle in enumerate(needles)]
    places += [(int(words * chance.random()), decoy) for needle in needles for decoy in needle.near]
    places.sort(reverse=True)
    written = 0
    while written < words:
        lines = [_sentence(chance) for _ in range(chance.randint(3, 8))]
        while places and places[-1][0] <= written:
            lines.insert(chance.randint(0, len(lines)), places.pop()[1])
        paragraph = " ".join(lines) if not any("\n" in line for line in lines) else "\n".join(lines)
        written += len(paragraph.split())
        yield paragraph


def _sentence(chance: random.Random) -> str:
    found = {slot: chance.choice(words) for slot, words in _WORDS.items()}
    found |= {"who2": chance.choice(_WORDS["who"]), "number": str(chance.randint(2, 4999))}
    found["syllables"] = "".join(chance.choice(_SYLLABLES) for _ in range(3)).title()
    found |= {slot.title(): found[slot][0].upper() + found[slot][1:] for slot in ("who", "who2", "when", "where")}
    return chance.choice(_SHAPES).format(**found)
