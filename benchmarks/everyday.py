"""Made-up talk to mix with a real conversation: small talk, facts that nobody asks about, and facts that change.

The facts are of the kinds that people ask about (family, work, travel, health, hobbies, purchases, dates, plans), in the first
person and with names and numbers, so that no filter for small talk tells them apart from the real ones.
"""

from typing import NamedTuple

import numpy as np

_VALUES: dict[str, list[str]] = {
    "city": "Lisbon,Oslo,Tucson,Halifax,Kyoto,Bergen,Austin,Leeds,Turin,Denver,Quito,Perth,Ghent,Lyon,Sofia,Malmö,Omaha".split(
        ","
    ),
    "person": "Nadia,Oscar,Priya,Tomas,Wendy,Ruben,Ingrid,Malik,Greta,Hugo,Selma,Dario,Fiona,Kenji,Paula,Yusuf,Marta".split(
        ","
    ),
    "kin": "sister,brother,cousin,uncle,aunt,nephew,niece,grandmother,neighbour,old roommate,godson".split(","),
    "day": "last Saturday,yesterday,two days ago,last Monday,this morning,on the 4th,last weekend,on Thursday,in March".split(
        ","
    ),
    "soon": "next Tuesday,in two weeks,on the 19th,next month,this Friday,in June,over Easter,the weekend after next".split(
        ","
    ),
    "number": "3,4,5,6,7,8,9,12,14,15,18,20,24,30,45".split(","),
    "price": "$35,$60,$85,$120,$240,$310,$475,$900".split(","),
    "sport": "badminton,rowing,bouldering,fencing,squash,curling,archery,water polo,table tennis,judo,cycling,netball".split(
        ","
    ),
    "craft": "woodcarving,knitting,calligraphy,bookbinding,origami,weaving,candle making,embroidery,quilting,leatherwork".split(
        ","
    ),
    "instrument": "cello,banjo,accordion,oboe,ukulele,trumpet,harp,mandolin,clarinet,harmonica".split(","),
    "dish": "lasagne,pad thai,shakshuka,goulash,paella,ramen,moussaka,dumplings,gumbo,risotto,borscht,tagine".split(
        ","
    ),
    "pet": "ferret,parrot,tortoise,hamster,rabbit,greyhound,beagle,gecko,canary,guinea pig".split(","),
    "name": "Pepper,Biscuit,Ziggy,Olive,Waffles,Mango,Juno,Tofu,Clover,Rusty,Pickle".split(","),
    "thing": "a toaster,a standing desk,a tent,noise-cancelling headphones,an air fryer,a mountain bike,a sewing machine,"
    "a telescope,a rug,a bookshelf,a raincoat,a second monitor,a wok,a pair of boots".split(","),
    "course": "statistics,Italian,first aid,pottery,beekeeping,welding,photography,typing,accounting,sign language".split(
        ","
    ),
    "body": "knee,wrist,shoulder,ankle,lower back,elbow,neck,thumb".split(","),
    "work": "dentist's office,bakery,law firm,warehouse,call centre,garden centre,library,print shop,travel agency".split(
        ","
    ),
    "title": "The Glass Orchard,Salt Roads,Paper Lanterns,North of Nowhere,The Ninth Tide,Ember Street,Quiet Engines".split(
        ","
    ),
    "event": "a wedding,a book fair,a chess tournament,a flower show,a charity auction,a farmers' market,a jazz night,"
    "a school reunion,a comedy show,a street parade,an air show".split(","),
    "place": "the harbour,the old mill,the botanical garden,the aquarium,the railway museum,the cathedral,the salt flats".split(
        ","
    ),
    "feel": "proud,worn out,relieved,thrilled,a bit nervous,grateful,surprised,inspired".split(","),
    "food": "cilantro,olives,blue cheese,shrimp,coconut,mushrooms,liquorice,beetroot".split(","),
    "colour": "teal,maroon,mustard,lilac,navy,olive green,coral,charcoal".split(","),
}

_FACTS = """My {kin} {person} moved to {city} {day}.
I signed up for a {course} course that starts {soon}.
I adopted a {pet} {day} and named it {name}.
I bought {thing} for {price} {day}.
My {kin} {person} works at a {work} in {city}.
I've been playing the {instrument} for {number} years now.
I hurt my {body} at {sport} {day} and the doctor said to rest for {number} days.
I went to {event} in {city} with {person} {day}. I was {feel}!
I'm flying to {city} {soon} to see my {kin}.
I finished reading "{title}" {day}, it took me {number} evenings.
My {kin} had a baby {day}, they called her {person}.
I used to work at a {work} when I lived in {city}.
I started {craft} {number} months ago and sold my first piece for {price}.
I can't stand {food}, it has been that way since I was {number}.
I painted my bedroom {colour} {day}.
{person} and I run a {sport} club for kids, we have {number} members.
I won second prize at {event} {day}.
My dentist appointment is {soon} at {number} past nine.
We spent {number} days in {city} and visited {place}.
I learned to cook {dish} from {person}, my {kin}.
My {pet} {name} is {number} months old and already knows how to open doors.
I lost my wallet near {place} {day}, with {price} in it.
I'm saving {price} a month for a trip to {city}.
I volunteer at a {work} every Thursday, {number} hours a week.
{person} got me {thing} for my birthday {day}.
I grew up in {city} and my parents owned a {work}.
My favourite meal is {dish}, my {kin} makes it every Sunday.
I ran {number} miles along {place} {day}.
I quit {sport} {number} weeks ago because of my {body}.
I'm planning a party for {person} {soon}, about {number} people will come.
I took {person} to see {place} {day}; they were {feel}.
My landlord raised the rent by {price} {day}.
I was born in {city}, and my twin {person} still lives there.
I wrote a short story called "{title}" and a magazine paid me {price}.
My car broke down on the way to {city} {day}, the repair cost {price}.
I've had {number} {sport} lessons so far and I feel {feel}.
I teach {course} to beginners {number} evenings a month.
My {kin} {person} is allergic to {food}.
I met {person} at {event} {number} years ago.
I'm making {dish} for {number} guests {soon}.
I want to open my own {work} in {city} one day.
I got a {colour} tattoo of my {pet} {name} {day}.
I dropped {course} and switched to {craft} {day}.
I interviewed at a {work} {day}, they will call me {soon}.
I go to {place} with my {kin} whenever I need to clear my head.
{person} taught me the {instrument} when I was {number}.
I donated {price} to {event} in memory of my {kin}.
My {kin} {person} graduated in {course} {day}, and I was so {feel}.
I joined a {craft} group that meets {number} minutes from home.
I caught a cold in {city} and missed {event} {day}.
I've collected {number} {colour} vases from {city} over the years.
I moved {thing} into the spare room so {person} can stay from {soon}.
My team lost the {sport} final in {city} by {number} points.
I built {thing} with my {kin} out of scrap wood {day}.
I broke my phone at {place} and paid {price} for a new screen.
My {kin} proposed to {person} at {place} {day}!
I've started getting up at {number} past five to practise the {instrument}.
I tried {dish} for the first time in {city}, thanks to {person}.
I'm {number} lessons into learning {course}, mostly on the train.
The vet said {name}, my {pet}, needs an operation {soon} that costs {price}.""".splitlines()

_SMALL_TALK = """That sounds {nice}!
Wow, {name}, that's {nice}.
Hey {name}! How have you been?
Good to hear from you, {name}.
Thanks, {name}! I appreciate it{end}
Haha, you always make me laugh{end}
I hope you have a {nice} day.
Talk to you soon, {name}!
Take care and keep me posted{end}
Oh, I totally get that{end}
Totally agree with you there{end}
How was your week, {name}?
What have you been up to lately?
It's been so {weather} here, hasn't it?
The weather is really {weather} today.
I can't wait to hear more about it{end}
You're the best, {name}!
No worries at all{end}
Sure thing, let me know how it goes{end}
I'm so happy for you, {name}{end}
That must have been {nice}.
Sounds like a plan{end}
Really? Tell me more!
Time flies, doesn't it?
Good luck with everything, {name}{end}
Yeah, I know what you mean{end}
Well, that's life, I guess{end}
Anyway, I should get going now{end}
Let's catch up again soon{end}
Glad to hear you're doing well, {name}.
It's always {nice} chatting with you.
Sorry for the late reply, things have been {weather}.
Mondays, right? At least it's not so {weather}.
I could use a coffee right now{end}
You've got this, {name}! Never give up{end}
What do you think about that, {name}?
Keep up the {nice} work{end}
Nothing much going on over here{end}
Same old, same old. And you, {name}?
Aw, that's {nice}, thank you for sharing.""".splitlines()
_FILLERS: dict[str, list[str]] = {
    "nice": "amazing,great,lovely,wonderful,awesome,so cool,really nice,fantastic,sweet,brilliant,pretty special".split(
        ","
    ),
    "weather": "hot,rainy,cold,windy,grey,busy,hectic,mild,foggy,crazy,unpredictable".split(","),
    "end": "!|.| :)|, really.|, you know.|, haha.|, my friend.|... anyway.".split("|"),
}

_CHANGES: list[tuple[str, str, str, list[str]]] = [
    ("I live in {}.", "I moved to {}, so I live there now.", "Where does {} live now?", _VALUES["city"]),
    ("I work at a {}.", "I work at a {} now.", "Where does {} work at the moment?", _VALUES["work"]),
    ("My favourite colour is {}.", "My favourite colour is {} now.", "What is {}'s favourite colour?", _VALUES["colour"]),
    ("I drive a {}.", "I drive a {} these days.", "What car does {} drive?",
     ["Volvo", "Mazda", "Fiat", "Skoda", "Kia", "Jeep"]),
    ("My favourite food is {}.", "My favourite food is {} now.", "What is {}'s favourite food?", _VALUES["dish"]),
    ("My phone number is {}.", "My phone number is {} now.", "What is {}'s phone number?",
     ["555-0142", "555-0177", "555-0119", "555-0163"]),
    ("I take my coffee with {}.", "I take my coffee with {} now.", "How does {} take their coffee?",
     ["oat milk", "sugar", "cream", "honey", "nothing in it"]),
    ("I commute by {}.", "I commute by {} now.", "How does {} commute?", ["tram", "bus", "bike", "ferry", "train"]),
    ("My gym day is {}.", "My gym day is {} now.", "Which day is {}'s gym day?", ["Monday", "Tuesday", "Friday", "Sunday"]),
    ("My boss is called {}.", "My new boss is called {}.", "Who is {}'s boss?", _VALUES["person"]),
    ("My diet is {}.", "My diet is {} now.", "What diet does {} follow?", ["vegan", "keto", "pescatarian", "gluten-free"]),
    ("My email is {}@example.org.", "My email is {}@example.org now.", "What is {}'s email address?",
     ["river", "maple", "stone", "cloud"]),
]  # fmt: skip


class Change(NamedTuple):
    """A fact that changes, and the question about it."""

    speaker: str
    old: str
    new: str
    question: str


def small_talk(speakers: tuple[str, str], n: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return `n` lines that tell nothing, each with its speaker."""
    lines = []
    for _ in range(n):
        who = int(rng.integers(2))
        values = {"name": speakers[1 - who]} | {key: str(rng.choice(some)) for key, some in _FILLERS.items()}
        picked = [str(one).format(**values) for one in rng.choice(_SMALL_TALK, 1 + int(rng.integers(3)), replace=False)]
        lines.append((speakers[who], " ".join(picked)))
    return lines


def facts(speakers: tuple[str, str], n: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return `n` lines with one to three facts, all different, each with its speaker; half of them with small talk too."""
    found: dict[tuple[str, str], None] = {}
    while len(found) < n:
        speaker = speakers[int(rng.integers(2))]
        told = [str(one).format(**_drawn(rng)) for one in rng.choice(_FACTS, 1 + int(rng.integers(3)), replace=False)]
        chat = [small_talk(speakers, 1, rng)[0][1]] if rng.random() < 0.5 else []
        lines = [*chat, *told] if rng.random() < 0.5 else [*told, *chat]
        found[speaker, " ".join(lines)] = None
    return list(found)


def _drawn(rng: np.random.Generator) -> dict[str, str]:
    return {key: str(rng.choice(some)) for key, some in _VALUES.items()}


def changes(speakers: tuple[str, str], rng: np.random.Generator) -> list[Change]:
    """Return one change of each kind for each speaker."""
    found = []
    for speaker in speakers:
        for old, new, question, values in _CHANGES:
            before, after = rng.choice(values, 2, replace=False)
            found.append(Change(speaker, old.format(before), new.format(after), question.format(speaker)))
    return found
