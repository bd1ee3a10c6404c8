"""The extractor that needs no model: what it keeps, in whose name, and when it stays silent."""

import time
from datetime import UTC, datetime

import pytest

from sharpwave.memory.extract import Extractor
from sharpwave.memory.extract.rules import AT_MOST, RulesExtractor
from sharpwave.memory.gate import worth_reading
from sharpwave.memory.records import Candidate, Memory, Message, Recall, Turn

WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def turn_of(text: str, speaker: str | None = None) -> Turn:
    message = Message(id="m1", role="user", text=text, speaker=speaker)
    return Turn(owner="ana", thread="t1", messages=(message,), said_at=WHEN)


def extract(text: str, *known: str, speaker: str | None = None) -> list[Candidate]:
    recalled = [
        Recall(
            id=str(at),
            store="semantic",
            text=statement,
            said_at=WHEN,
            score=0.5,
            memory=Memory(owner="ana", text=statement, recorded_at=WHEN, valid_from=WHEN),
        )
        for at, statement in enumerate(known)
    ]
    return RulesExtractor().extract(turn_of(text, speaker), recalled)


def slots(text: str, *known: str) -> list[tuple[str, str | None, str | None]]:
    return [(c.subject, c.attribute, c.value) for c in extract(text, *known)]


# Each turn with the facts it holds: words of the clause, subject, attribute, value. An attribute of None leaves it open.
Fact = tuple[str, str, str | None, str | None]
SAID: list[tuple[str, list[Fact]]] = [
    ("I moved from Oslo to Lisbon last month and I'm allergic to shellfish.", [("moved from Oslo", "user", "home_city", "Lisbon"), ("shellfish", "user", "allergy", "shellfish")]),
    ("I play cello, I'm left-handed, I live in Porto and have two cats.", [("cello", "user", "hobby", "cello"), ("left-handed", "user", "handedness", "left-handed"), ("Porto", "user", "home_city", "Porto")]),
    ("My sister Oona is allergic to walnuts. My flatmate just moved to Turku.", [("walnuts", "Oona", "allergy", "walnuts"), ("Turku", "flatmate", "home_city", "Turku")]),
    ("btw my dog's called Biscuit lol", [("Biscuit", "user", "pet", "Biscuit")]),
    ("hi! i'm a paramedic in leeds, been doing it for 9 years now", [("paramedic", "user", "job", "paramedic")]),
    ("Allergic to penicillin. Married, two kids. Based in Ghent.", [("penicillin", "user", "allergy", "penicillin"), ("Ghent", "user", "home_city", "Ghent")]),
    ("Good morning! Just so you know, I turned 41 yesterday.", [("41", "user", "age", "41")]),
    ("Gluten makes me really ill.", [("Gluten", "user", "allergy", "Gluten")]),
    ("Horror films aren't really my thing.", [("Horror", "user", "dislikes", "Horror films")]),
    ("We adopted a greyhound called Luna in spring.", [("Luna", "user", "pet", "Luna")]),
    ("My favorite color is teal, and my favourite season is autumn.", [("teal", "user", "favourite_colour", "teal"), ("autumn", "user", "favourite_season", "autumn")]),
    ("I work as a structural engineer at Harrow & Finch.", [("structural engineer", "user", "job", "structural engineer")]),
    ("I've been with my wife Ines since university; she teaches maths.", [("Ines", "Ines", None, None)]),
    ("My husband Tobias is a firefighter.", [("firefighter", "Tobias", "job", "firefighter")]),
    ("I'm a vegetarian, what can I cook tonight?", [("vegetarian", "user", "diet", "vegetarian")]),
    ("As I said, I don't eat pork.", [("pork", "user", "avoids", "pork")]),
    ("I was born on 3 May 1988 in Graz.", [("3 May 1988", "user", "birthday", "3 May 1988")]),
    ("I speak Dutch and a little Turkish.", [("Dutch", "user", "language", "Dutch")]),
    ("Please remember that the spare key is with the neighbour.", [("spare key", "user", None, None)]),
    ("For the record, my blood type is O negative.", [("blood type", "user", "blood_type", "O negative")]),
    ("Correction: the grant deadline is 16 October. And my flat is 3D, not 3B.", [("16 October", "user", "deadline:grant", "16 October"), ("3D", "user", "flat", "3D")]),
    ("no, my sister's name is Mia", [("Mia", "sister", "name", "Mia")]),
    ("Actually I live in Porto, not Lisbon.", [("Porto", "user", "home_city", "Porto")]),
    ("I changed jobs: I'm now at Initium.", [("Initium", "user", "employer", "Initium")]),
    ("I just handed in my thesis.", [("thesis", "user", None, None)]),
    ("I went to Lisbon last week and I start my new job tomorrow.", [("went to Lisbon", "user", None, None), ("new job", "user", "plan", None)]),
    ("I can't stand coriander", [("coriander", "user", "dislikes", "coriander")]),
    ("i love night hikes", [("night hikes", "user", "likes", "night hikes")]),
    ("My daughter is called Wren and she's five.", [("Wren", "daughter", "name", "Wren")]),
    ("I've had type 1 diabetes since I was nine.", [("diabetes", "user", None, None)]),
    ("I was diagnosed with coeliac disease last year.", [("coeliac", "user", "condition", "coeliac disease")]),
    ("I take metformin twice a day.", [("metformin", "user", "medication", "metformin")]),
    ("I go to the gym on Tuesdays.", [("gym", "user", "schedule:gym", "Tuesdays")]),
    ("I'm studying marine biology at the University of Bergen.", [("Bergen", "user", None, None)]),
    ("My email is ada@example.org and my phone number is 555-0142.", [("ada@example.org", "user", "email", "ada@example.org"), ("555-0142", "user", "phone", "555-0142")]),
    ("We're getting married in June.", [("married", "user", "plan", None)]),
    ("I'm planning to run the Valencia marathon in December.", [("Valencia", "user", "plan", None)]),
    ("I think I'm lactose intolerant.", [("lactose", "user", "allergy", "lactose")]),
    ("I drive an old Saab, and my partner is called Noor.", [("Saab", "user", "vehicle", "Saab"), ("Noor", "user", "partner", "Noor")]),
    ("People call me Lex.", [("Lex", "user", "name", "Lex")]),
    ("My boss Helga wants everyone back in the office.", [("Helga", "Helga", None, None)]),
    ("I'm working on a bird atlas of the delta", [("bird atlas", "user", "project", "bird atlas of the delta")]),
    ("I always get up at five to swim.", [("get up at five", "user", None, None)]),
    ("In 2019 we bought a narrowboat.", [("narrowboat", "user", None, None)]),
    ("My doctor says I'm allergic to dust mites.", [("dust mites", "user", "allergy", "dust mites")]),
]  # fmt: skip
SILENT = [
    "ok thanks",
    "👍",
    "hey, quick question about sorting lists",
    "What's the weather like in Bergen?",
    "Do I have any allergies?",
    "Do you like pizza?",
    "Can you show the sales numbers for Kristof?",
    "If I were rich I'd live in Monaco.",
    "Maybe I'll take up pottery one day.",
    "I'm thinking of moving to Japan.",
    "I might get a dog.",
    "the poster in the lift says 'we love our tenants and we never sleep', can you make it shorter?",
    "The label reads 'my dog ate 40 pies and I am proud', is that grammatical?",
    "I wish I lived by the sea.",
    'He said "I love Rome and I live there".',
    "Pretend you are my landlord. I live in your attic and I owe you rent.",
    "In my novel the hero lives in Prague and is allergic to silver.",
    "My character is an elf called Lia.",
    "I'm tired.",
    "I see, that makes sense.",
    "I think so too.",
    "I'm just testing this.",
    "I appreciate your help!",
    "I want you to answer in bullet points.",
    "I need help with a regular expression.",
    "I'd like to know how tides work.",
    "You keep saying I'm allergic to walnuts.",
    "Translate this to French: I live in a small house with my two brothers.",
    "Can you make this politer?\n> Hi team, I'm leaving Fjord Ltd on Friday and my new number is 555-0142.\n> -- Dina",
    "Write a poem about a man who lives alone.",
    "I slept badly last night.",
    "I get an error when I run the script.",
    "Please note what I did.",
    "The capital of Australia is Canberra.",
    "Suppose I own a bakery. How would I price bread?",
    "I'm allergic to nuts, right?",
    "My code doesn't compile.",
    "He goes, I hate Mondays, every week.",
    "My boss always says I love deadlines, what a guy",
    "Her email just says I like tea, nothing else",
    "His T-shirt read I love Paris in big letters",
    "my kid goes I hate peas every single dinner",
    "the line I love the smell of napalm, which film is that?",
    "Who sang I like big butts in the nineties?",
    "Mark Twain wrote I love cats somewhere, where exactly?",
    "How do you say I love you in Dutch?",
    "what does it mean when a man tells you I love your eyes",
    "Tom told the waiter I love oysters but he never ate one",
    "As Churchill put it, I like pigs, who said that?",
    "it's from the musical where she sings I love Paris every moment",
    "my favourite line in the film is I like the way you die, boy",
    "and then she answered I love hiking too, which surprised us",
    "that song I like to move it is stuck in my head",
    "the tattoo on his arm reads I love mum",
    "his first words to me were I like your hat",
    "why do influencers always write I love this product under everything",
    "what's the opposite of I love loud music",
    "there was graffiti I love Lisa Simpson on the wall of the station",
    "my ex put I love cheap wine in his dating profile",
    "the parrot squawks I love fish fingers whenever the doorbell goes",
    "her voicemail was I love you all and nothing else",
    "his status says I love fast cars, should I reply?",
    "the toddler yelled I like big trucks across the whole bus",
    "does I love good food sound ok in a bio?",
    "her answer was I love old trains, can you believe it",
    "So she goes and I quote I love boring men",
    "Gran thinks I love lavender soap so I have nine bars",
    "and he's all I love craft beer now",
    "the chorus is just I love my car over and over",
    "and mum be like I love soggy chips",
    "'I'm fine, I love running', he said and collapsed on the sofa",
    "the sign at the cafe says 'we don't do wifi, I love talking'",
    "Can you make 'I love cold mornings' sound less cheesy for a poem?",
    "translate 'I'd say I like quiet people' into German please",
    "the reviewer's comment was I'd buy again, I love this blender",
    "he's got 'I love loud cars' on his bumper, isn't that funny",
    "_I like big dogs_ is the title of the book",
    "I love early mornings, says my flatmate, who has never seen one",
    "I love Mondays said nobody ever, right?",
    "Tom said I hate mornings and I love coffee, so I bought him a mug",
    "The lead character says I am lost and I love mountains, how do I punctuate it?",
    "he told me I'm done with cities and I love farms now, funny man",
    "In the interview she said I sing and I love dancing, which show was it?",
    "The ad says you are tired and I love coffee, weird grammar, right?",
    "What should I reply when he says hey I love brunch?",
    "My colleague said, well, I love Mondays, and we all stared",
    "Is it true that he said so I love brunch on air?",
    "She said oh I love jazz, but she has never heard any",
    "Was it Douglas Adams who said I love deadlines, I like the whooshing sound they make?",
    "My flatmate texted me this. I love brunch today. Should I be worried about her?",
    "Who said this? I love deadlines.",
    "Fix the grammar of the following. I likes big dogs. I love small cats.",
    "Say it like a pirate. I love rum punch.",
    "Translate to Spanish. I love old books. I live in a small house.",
    "Subject line, I love your product, is that too much for a cold mail",
    "on the mug, I love wet dogs, in comic sans, what a present",
    "Famous last words, I love fast bikes",
    "Her text in full, I love it here, send money",
    "a bumper sticker in front of me, I love slow drivers",
    "She posted a photo with I love wet dogs underneath",
    "he finished with I love you all and left the stage",
    "If a customer says I hate onions and I love sushi what should I recommend?",
    "Write a tinder bio like I'm Bob and I love sushi for my friend",
    "He introduced himself with I'm Bob and I love sushi",
    "The example sentence is my name is Tom and I love sushi",
    "'I'm a simple man and I love sushi', says my uncle each Christmas",
    "the song goes it's late and I love sushi, who sings it?",
    "A stranger said excuse me, I love sushi, where did you get it",
    "My daughter's essay says my dog is brown and I love sushi and naps",
    "My friend Ana says hi, I'm Ana, I love sushi",
    "You know that meme, I like turtles, where's it from?",
    "It's that old slogan, I like Ike.",
    "So he says to me, I've got a boat.",
    "And she's going, I don't eat meat.",
    "The interviewee answered, I grew up in Kenya.",
    "As Churchill said, I have nothing to offer but blood.",
    'My mate went "I\'ve got a new dog".',
    "The email from Lisa: I'm on holiday until the 5th.",
    "The note on the fridge: I'm allergic to shellfish.",
    "Tweet I saw: I quit my job today.",
    "Overheard on the bus: I've got three wives.",
    "My niece's essay begins: My name is Eva and I'm nine years old.",
    "On the mug it says I love New York.",
    "Someone on Reddit wrote that I should eat more fish.",
    "Reviewer 2: I don't like the introduction.",
    "[10:42] Ben: I live in Graz.",
    "Ben (10:42): I live in Graz.",
    "anna  10:42 AM\nI'm moving to Oslo in May.",
    "Got this from Tom:\nHi, I'm in Berlin next week. I have a new job at SAP.",
    "Here's my friend's cover letter: I am a nurse with 10 years of experience. I live in Leeds.",
]


OTHERS_KNOW = [
    ("My wife knows I love cheese", "I love cheese"),
    ("It turns out I like olives", "I like olives"),
    ("On Fridays I like pizza", "I like pizza"),
    ("My brother hates tea but I love coffee", "I love coffee"),
    ("the songs I love are old and I play the banjo", "I play the banjo"),
    ("These days I prefer tea", "I prefer tea"),
]


@pytest.mark.parametrize(("text", "kept"), OTHERS_KNOW)
def test_what_stands_beside_others_is_still_ones_own(text: str, kept: str) -> None:
    turn = Turn(owner="ana", thread="t", messages=(Message(id="m", role="user", text=text),), said_at=WHEN)
    assert any(kept in candidate.text for candidate in RulesExtractor().extract(turn, []))


IN_PASSING = [
    ("I'm on the on-call rota this month", "I'm on the on-call rota this month"),
    ("I see a chiropractor on Mondays.", "I see a chiropractor on Mondays."),
    ("Quote for a five day job please, I charge 420 a day these days", "I charge 420 a day these days"),
    ("confession: I've started having fish again. Mackerel ideas?", "I've started having fish again."),
    ("I handed the allotment back, the knees would not have it any longer.", "I handed the allotment back, the knees"),
    ("I swim on Mondays. porridge ideas?", "I swim on Mondays."),
    ("I live in Bath. my cat is called Tom", "I live in Bath."),
    ("I get the bus to work. cheaper than the train?", "I get the bus to work."),
    ("had the hip done in May, finally", "had the hip done in May, finally"),
    ("I'm allergic to nuts, eggs etc. What can I bake?", "I'm allergic to nuts, eggs etc."),
    ("I moved to Bath in Dec. What should I see there?", "I moved to Bath in Dec."),
    ("I quit smoking. recommend gum", "I quit smoking."),
    ("I have two kids. plan a day out", "I have two kids."),
    ("I keep bees. three hives up at the allotment", "I keep bees. three hives up at the allotment"),
    ("we're down to 45 people after a long evening. table layout?", "we're down to 45 people after a long evening."),
]


@pytest.mark.parametrize(("text", "kept"), IN_PASSING)
def test_what_is_told_on_the_way_to_a_request_is_kept_without_it(text: str, kept: str) -> None:
    found = [candidate.text for candidate in extract(text)]
    assert any(said.startswith(kept) for said in found), found
    assert not any(asked in said for said in found for asked in ("?", "please", "recommend", "plan"))


def test_a_long_word_after_a_full_stop_takes_no_longer_than_its_length() -> None:
    def spent(length: int) -> float:
        started = time.process_time()
        extract("here is the key. " + "aGVsbG8" * (length // 7))
        return time.process_time() - started

    spent(5_000)
    assert spent(40_000) <= 30 * spent(5_000) + 0.05


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("the landlord is a Mr Abernathy", True),
        ("Supervisor is Professor Lindqvist", True),
        ("The project is called Heron", True),
        ("Wifi upstairs is called owlnest", True),
        ("error: file not found", False),
        ("Boss: you need to finish the deck", False),
        ("Job: Senior Python developer, 5 years required", False),
        ("the river is called the Danube", False),
        ("the network is called a CNN", False),
        ("The product is called iPhone", False),
        ("the trainer is Spanish", False),
        ("The best teacher is experience", False),
        ("I get the joke", False),
        ("I get a 404 when I open it", False),
        ("had my boss known, I'd be fired", False),
        ("had the meeting been moved", False),
        ("I would not eat meat if it were up to me", False),
        ("I couldn't sleep last night", False),
        ("the doctor is in", False),
    ],
)
def test_who_and_what_there_is_in_ones_own_world_needs_no_word_of_oneself(text: str, kept: bool) -> None:
    assert [c.text for c in extract(text)] == ([text] if kept else [])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I've started having fish again", None),
        ("I have fish on Fridays", None),
        ("we've got chicken tonight", None),
        ("I've got a duck", "duck"),
        ("I have two fish", "two fish"),
        ("I keep fish with plants", "fish"),
    ],
)
def test_what_is_eaten_is_no_pet(text: str, value: str | None) -> None:
    assert [c.value for c in extract(text) if c.attribute == "pet"] == ([value] if value else [])


def fits(candidate: Candidate, fact: Fact) -> bool:
    words, subject, attribute, value = fact
    return (
        words in candidate.text
        and candidate.subject == subject
        and (attribute is None or candidate.attribute == attribute)
        and (value is None or candidate.value == value)
    )


def test_it_is_an_extractor() -> None:
    assert isinstance(RulesExtractor(), Extractor)


def test_precision_and_recall_over_many_styles() -> None:
    wanted = found = kept = good = 0
    for text, facts in SAID:
        candidates = extract(text)
        wanted += len(facts)
        found += sum(any(fits(c, f) for c in candidates) for f in facts)
        kept += len(candidates)
        good += sum(any(f[0] in c.text for f in facts) for c in candidates)
    noise = [(text, [c.text for c in extract(text)]) for text in SILENT if extract(text)]
    assert found / wanted >= 0.85
    assert good / (kept + len(noise)) >= 0.95
    assert not noise


@pytest.mark.parametrize(("text", "facts"), SAID, ids=[text[:40] for text, _ in SAID])
def test_facts_are_kept_with_their_slot(text: str, facts: list[Fact]) -> None:
    candidates = extract(text)
    for fact in facts:
        assert any(fits(c, fact) for c in candidates), (fact, candidates)


@pytest.mark.parametrize("text", SILENT)
def test_stays_silent(text: str) -> None:
    assert [c.text for c in extract(text)] == []


@pytest.mark.parametrize("text", [text for text, _ in SAID])
def test_never_invents(text: str) -> None:
    for candidate in extract(text):
        assert candidate.text in text
        assert candidate.quote in text
        assert candidate.text in candidate.quote
        assert candidate.message_id == "m1"


def test_another_persons_allergy_is_never_the_users() -> None:
    found = extract(
        "My sister Oona is allergic to walnuts. I'm not allergic to anything. My flatmate just moved to Turku."
    )
    assert [(c.subject, c.attribute, c.value) for c in found] == [
        ("Oona", "allergy", "walnuts"),
        ("user", "allergy", "none"),
        ("flatmate", "home_city", "Turku"),
    ]


@pytest.mark.parametrize(
    ("text", "attribute", "value"),
    [
        ("I no longer play tennis.", "hobby", "tennis"),
        ("I don't like sushi any more.", "likes", "sushi"),
        ("I've given up climbing.", "hobby", "climbing"),
        ("I sold my car.", "vehicle", None),
        ("We broke up.", "partner", None),
        ("I'm not allergic to walnuts after all.", "allergy", "walnuts"),
        ("Please forget that I live in Rome.", "home_city", "Rome"),
        ("I quit my job.", "job", None),
        ("I don't work at Acorn anymore.", "employer", "Acorn"),
        ("My cat passed away.", "pet", "cat"),
        ("I'm not the one allergic to walnuts, that was my guest.", "allergy", "walnuts"),
    ],
)
def test_what_is_taken_back(text: str, attribute: str, value: str | None) -> None:
    [candidate] = extract(text)
    assert (candidate.polarity, candidate.attribute, candidate.value) == ("retract", attribute, value)


def test_one_thing_given_up_another_kept() -> None:
    gone, kept = extract("I've given up climbing, but I still swim.")
    assert (gone.polarity, gone.value) == ("retract", "climbing")
    assert (kept.polarity, kept.text) == ("assert", "I still swim.")


def test_after_a_letter_that_is_passed_on_only_what_is_asked_for_is_kept() -> None:
    text = "Got this from my landlord: I am raising the rent. I live in Bonn. Please remember that my rent is 900 euros now."
    assert [c.quote.split(" that ")[-1] for c in extract(text)] == ["my rent is 900 euros now."]


def test_a_changed_taste_is_an_assertion() -> None:
    [candidate] = extract("I can't stand sushi any more.")
    assert (candidate.polarity, candidate.attribute, candidate.value) == ("assert", "dislikes", "sushi")


def test_the_past_is_marked() -> None:
    [before] = extract("I used to live in Rome.")
    [now] = extract("I live in Rome.")
    assert before.history and before.attribute == "home_city"
    assert not now.history


def test_first_person_of_a_named_speaker() -> None:
    [candidate] = extract("I adopted a parrot called Pico.", speaker="Caroline")
    assert (candidate.subject, candidate.attribute, candidate.value) == ("Caroline", "pet", "Pico")


def test_she_is_the_sister_of_the_sentence_before() -> None:
    first, second = extract("I have a sister. She's a nurse in Leeds.")
    assert (first.subject, first.attribute) == ("user", "sibling")
    assert (second.subject, second.attribute, second.value) == ("sister", "job", "nurse")
    assert second.text == "I have a sister. She's a nurse in Leeds."


def test_a_known_name_ties_a_statement_to_the_user() -> None:
    assert extract("Biscuit can't have beef either.") == []
    [candidate] = extract("Biscuit can't have beef either.", "My dog is called Biscuit")
    assert candidate.subject == "Biscuit"


def test_only_the_user_speaks_for_the_user() -> None:
    messages = (
        Message(id="s", role="system", text="I live in Cork."),
        Message(id="m1", role="user", text="How do I reverse a linked list?"),
        Message(id="m2", role="assistant", text="I prefer recursion. I live for clean code."),
        Message(id="m3", role="tool", text="I am allergic to kiwi."),
    )
    assert RulesExtractor().extract(Turn(owner="ana", thread="t1", messages=messages, said_at=WHEN), []) == []


def test_importance_and_confidence_follow_what_is_said() -> None:
    allergy, told, taste, event = (
        extract(text)[0]
        for text in (
            "I'm allergic to kiwi.",
            "Remember that I park on level 4.",
            "I like jazz.",
            "I ran into an old classmate in Porto.",
        )
    )
    assert allergy.importance >= 0.8 and told.importance >= 0.9
    assert taste.importance == 0.5 and event.importance <= 0.4
    assert extract("I think I'm lactose intolerant.")[0].confidence == 0.5
    assert allergy.confidence == 0.9


@pytest.mark.parametrize(
    ("text", "attribute", "value"),
    [
        ("Ich wohne in Berlin.", "home_city", "Berlin"),
        ("Ich bin allergisch gegen Nüsse.", "allergy", "Nüsse"),
        ("Me llamo Inés y vivo en Sevilla.", "home_city", "Sevilla"),
        ("Je suis allergique aux arachides.", "allergy", "arachides"),
        ("Moro em Coimbra.", "home_city", "Coimbra"),
        ("Mi chiamo Luca.", "name", "Luca"),
        ("我住在北京。", "home_city", "北京"),
        ("我对花生过敏。", "allergy", "花生"),
        ("私は大阪に住んでいます。", "home_city", "大阪"),
        ("Ich spiele seit drei Jahren Cello.", None, None),
    ],
)
def test_other_languages(text: str, attribute: str | None, value: str | None) -> None:
    [candidate] = extract(text)
    assert (candidate.text, candidate.attribute, candidate.value) == (text, attribute, value)


@pytest.mark.parametrize(
    "text",
    [
        "Wo wohne ich?",
        "Danke dir!",
        "¿Dónde vivo?",
        "Wenn ich reich wäre, würde ich in Rom wohnen.",
        "谢谢",
        "我住在哪里?",
        "Mein Chef sagte: Ich bin allergisch gegen Nüsse",
        "Mon frère dit : « J'habite à Lyon »",
        'Mi jefe dijo: "Soy alérgico a las nueces"',
    ],
)
def test_other_languages_stay_silent(text: str) -> None:
    assert extract(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I like cats and dogs a lot. " * 180_000,
        "I am " * 1_000_000,
        "my " * 1_700_000,
        "I, " * 1_700_000,
        "a" * 5_000_000,
        '"' * 2_000_000,
        "I have a dog called " + "very " * 100_000,
    ],
    ids=["sentences", "no end", "possessives", "commas", "one word", "quotes", "one value"],
)
def test_a_message_of_five_megabytes_is_read_in_linear_time(text: str) -> None:
    before = time.process_time()
    found = extract(text)
    assert len(found) <= AT_MOST
    assert time.process_time() - before < 3


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Unser Sohn Emil hat Asthma, welche Sportarten gehen?", "Unser Sohn Emil hat Asthma"),
        ("Je tiens une librairie à Nantes, tu as des idées d'affiches ?", "Je tiens une librairie à Nantes"),
        ("vivimos en Lugo desde 2020, qué museos hay?", "vivimos en Lugo desde 2020"),
        ("我吃素，推荐什么菜？", "我吃素"),
        ("毎週金曜はフットサルをしてる、いい靴ある？", "毎週金曜はフットサルをしてる"),
        ("mi vecina repite «yo nunca pago multas y tengo un primo policía»", None),
        ("お世話になっております。", None),
        ("Ich überlege, ob ich mir ein Rad kaufe, was meinst du?", None),
        ("wie spät ist es in Tokio?", None),
    ],
)
def test_in_other_languages_a_statement_before_a_question_is_kept(text: str, kept: str | None) -> None:
    assert [one.quote for one in extract(text)] == ([kept] if kept else [])
    assert worth_reading(turn_of(text)) or kept is None


def test_in_other_languages_what_is_said_of_somebody_known_is_kept() -> None:
    assert extract("Minou dort toute la journée") == []
    (found,) = extract("Minou dort toute la journée", "Mon chat s'appelle Minou")
    assert found.subject == "Minou" and found.polarity == "assert"
