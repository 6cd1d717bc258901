"""Terminology: T01 notation, T02 symbols, T03 units, T04 short forms, T05 spelling, T06 lecture terms, T07 vague nouns, T08 numbers,
T09 shorthand, T10 structure before values."""

import re
from collections.abc import Iterator
from functools import lru_cache

from ad4edu_train.scoring.checks.phrases import (
    CLAUSE_END,
    GENERIC,
    ON_PAGE,
    SIZES,
    Hit,
    Phrase,
    alternatives,
    hit_of,
    whole,
)
from ad4edu_train.scoring.moment import Moment
from ad4edu_train.scoring.standard import Scoring
from ad4edu_train.scoring.text import MASK, STOP, Text, stem
from ad4edu_train.scoring.words import words

_NOTATION = re.compile(
    r"\\[a-zA-Z]+|\\[()\[\]]|\$\$|\$[^$\s](?:[^$\n]{0,300}[^$\s])?\$(?!\d)"
    r"|[\w)\]}]\s?\^\s?[\w({+-]|\b[A-Za-z]\w*_(?=[\w{(])\w*|\b(?:frac|sqrt|sum|int|lim|vec|hat|bar)\s*\{"
)
_MAYBE_NOTATION = re.compile(r"[\\$^_{]")
_SYMBOL = re.compile(
    "[=<>\u00b1\u00d7\u00f7\u00ac\u00b9\u00b2\u00b3\u2070-\u209c\u2190-\u22ff\u27c0-\u27ff\u2900-\u297f\u2980-\u2bff\u0370-\u03ff\u1f00-\u1fff\U0001d400-\U0001d7ff]+"
    r"|(?<=\s)[+*/](?=\s)|(?<=\d)\s?[+*]\s?(?=\d)|->|(?<=\s)\\(?=\s)"
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,80}>")
_UNITS = (
    "mm cm km nm µm μm um dm kg mg µg μg ug ng ml mL dL µL uL cl ms µs us ns Hz kHz MHz GHz THz kB "
    "KB MB GB TB PB kbps Mbps Gbps kW MW GW mW kV mV eV keV MeV GeV mA kPa MPa hPa Pa "
    "mmHg psi rpm bpm fps dB kcal cal kJ MJ mol mmol µmol mM µM nM pM dpi ppi px sec secs hr hrs "
    "mins lb lbs oz ft yd mph kph kmh sq cc kDa bp kb Mb ppm ppb AU wpm kWh mAh lx"
)
_UNIT = re.compile(
    rf"(?<![\w.])\d[\d,.]*\s?(?P<unit>{'|'.join(map(re.escape, _UNITS.split()))})(?:²|³|2|3)?(?![\w'-])"
    rf"|\d\s?[°º˚℃℉]"
)
_SHORT_FORM = re.compile(r"(?<![\w-])(?<!\d[ -])[A-Z]{2,6}(?=s?(?![\w'+]|-\d))")
_ROMAN = re.compile(r"X{0,3}(?:IX|IV|V?I{0,3})")
ALLOWED = words(
    "AI AM BC BCE CD CE CEO DNA DVD EU FAQ GPS ID IQ IT OK PC PDF PIN PM RAM RNA TV UK UN URL US USA "
    "USB WWW UV HIV AIDS NASA MRI CT NATO UNESCO WHO GDP LED GPU CPU AND OR NOT XOR NOR NAND IF THEN "
    "ELSE TRUE FALSE ON OFF STOP EXIT START END NEW YES NO"
)
NEAR = 8  # words before or after a short form within which its full form must stand

_RANGE = re.compile(r"(?<![\w./-])\d[\d.,]*\s?[-\u2013\u2014\u2212]\s?\d[\d.,]*(?![\w-])")
_NUMBERED = re.compile(
    r"(?:figures?|figs?\.|tables?|sections?|sec\.|chapters?|slides?|exercises?|questions?|problems?"
    r"|equations?|theorem|lemma|example|version|lecture|week|unit|part|step|isbn|problem set|page"
    r"|verse)\s*$"
)
_RANGE_NAME = re.compile(r"\s+(?:trees?|loss|knapsack|fold|hot|matrix|game|heap|sat)\b")
_FIGURES = (
    re.compile(r"(?<![\w/.])\d+/\d+(?![\w/])|[\u00bc-\u00be\u2150-\u215e]"),
    re.compile(r"(?<![\w.])\d+(?:\.\d+)?[eE][-+\u2212]?\d+\b"),
    re.compile(r"(?<![\w.])\.\d+"),
    re.compile(r"(?<![\w.])\d+(?:\.\d+)?x(?!\w)"),
    re.compile(r"(?<![\d.,\w])\d{5,}(?![\d\w])"),
)
_SHORTHAND = re.compile(
    r"(?<!\w)(?:e\.\s?g\b\.?|i\.\s?e\b\.?|eg\.|ie\.|etc\b\.?|vs\b\.?|cf\.|approx\.|w/o?(?=\s|\w)|b/c\b"
    r"|w\.r\.t\b\.?|wrt\b|viz\b\.?|aka\b|a\.k\.a\b\.?|resp\.|incl\.|et al\b\.?|avg\.|"
    r"(?:Figs?|Eqs?|Secs?|Ch|Chap|Nos?|pp?|Vol|Tab|Ex|Thm|Def)\.(?=\s?\d))|(?<=\s)[&@](?=\s)|(?<![\w#])#(?=\d)|(?<=\s)~(?=\d)"
)

# Nouns that leave open what is there; shapes and places of the page (a dashed line, in a row) tell something and are not among them.
UNSAID_WORDS = (
    "part parts thing things item items object objects element elements bit bits piece pieces area "
    "areas region regions spot spots section sections portion portions segment "
    "segments structure structures shape shapes component components detail details unit units "
    "equation formula expression symbol symbols figure "
    "feature features point points place places thingy stuff"
)
UNSAID = alternatives(UNSAID_WORDS)
_VAGUE_ADJECTIVE = alternatives(
    "small little large big tiny new next last first second third other main certain particular "
    "specific whole different single upper lower top bottom left right middle "
    "central labelled labeled numbered highlighted marked shown important several few two three four"
)

VAGUE = (
    # An article and a generic noun that nothing names, before the end of a clause or before "on the slide".
    Phrase(
        rf"(?<!of things )\b(?P<at>(?:an?|the|some|another|one|certain|each"
        rf"|any)\s+(?:{_VAGUE_ADJECTIVE}\s+){{0,2}}{UNSAID}){ON_PAGE}"
        rf"(?:\s+(?:or other|among (?:the|them|these|those)(?: \w+)?|of (?:it|them|the (?:whole|slide"
        rf"|figure|diagram|drawing|picture|image|structure|thing))|(?:is|are) (?:shown|there|visible"
        rf"|present)|shown|on display|there|with a (?:\w+ )?label))*{CLAUSE_END}",
        UNSAID_WORDS,
    ),
    Phrase(
        rf"\b(?P<at>(?:the|another|some|certain)\s+(?:{_VAGUE_ADJECTIVE}\s+){{0,2}}(?:terms?|values?"
        rf"|numbers?|objects?)){ON_PAGE}{CLAUSE_END}",
        "term terms value values number numbers",
    ),
    Phrase(
        r"\b(?P<at>something|stuff|somewhere|anything|thingy?|whatever|whatnot|(?:this|that) (?:one"
        r"|guy)(?!\s+(?:can|could|may|might|must|should|would|of)\b)(?!-))\b",
        "something stuff somewhere anything thing thingy whatever whatnot one guy",
    ),
    Phrase(
        rf"\b(?P<at>(?:one|some|two|three|several|many|most|all) of (?:them\b|(?:these"
        rf"|those)\b(?=\s*[.,;:!?]|\s+(?:is|are|has|have|leads?|shows?|and)\b|\s*$)))|\b(?P<at2>one of "
        rf"(?:the |several |many |some |its "
        rf")+(?:{SIZES}\s+){{0,2}}{GENERIC}){ON_PAGE}(?:\s+shown)?{CLAUSE_END}",
        "of",
    ),
    Phrase(
        rf"\b(?P<at>(?:that|this|some|a|the)?\s?(?:kind|sort) of (?:an? "
        rf")?(?:{SIZES}\s+){{0,2}}{GENERIC})\b(?!\s+(?:of|labelled|labeled|called|named|titled)\b)",
        "kind sort",
    ),
)
_NAMED_OF = re.compile(
    r"\b(?:sides?|terms?|roots?|solutions?|coefficients?|forms?|factors?|parts?|left|right|rest|value"
    r"|slope|graph|half|end|line|step|derivation|numerator|denominator)(?: hand side)? of (?:the|this"
    r"|each) $"
)
_EQUATIONS = ("equation", "formula", "expression")
_APPOSITION = re.compile(rf"\s*[,:]\s*[\"']?(?P<word>{MASK}|[a-z]+)")
_TERM_OF_ART = re.compile(
    r"\b(?:internet of things|data structures?|secondary structures?|control points?|data points?|end "
    r"?points?|mid ?points?|decimal points?|boiling points?|turning points?)\b"
)

_TREND = words(
    "rises rise rising falls fall falling climbs climb climbing drops drop dropping increases "
    "increase increasing decreases decrease decreasing peaks plateaus levels declines declining "
    "grows shrinks dips fluctuates flattens"
)
CHART_KINDS = words("""
        chart charts graph graphs plot plots histogram scatterplot scatter curve-chart boxplot heatmap axis axes x-axis
        y-axis barplot pie diagram scatterplots plotted horizontal vertical bar bars line-graph function spectrum
        spectrogram trace waveform contour dendrogram
        """)
HEADERS = words(
    "row rows column columns table tables header headers heading headings headed grid labelled labeled under across"
)


def t01(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for match in _NOTATION.finditer(text.plain) if _MAYBE_NOTATION.search(text.plain) else ():
        yield Hit(*match.span())


def t02(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    tags = [match.span() for match in _TAG.finditer(text.raw)] if "<" in text.raw else []
    for match in _SYMBOL.finditer(text.raw):
        if not any(start <= match.start() < end for start, end in tags):
            yield Hit(*match.span())


def t03(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for match in _UNIT.finditer(text.raw) if text.has_figures else ():
        yield Hit(*match.span())


def t04(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    if not moment.words or not _SHORT_FORM.search(text.unquoted):
        return
    letters = [c for c in text.unquoted if c.isalpha()]
    if sum(map(str.isupper, letters)) > 0.6 * len(letters):
        return
    for match in _SHORT_FORM.finditer(text.unquoted):
        form = match.group()
        if text.masked[match.start()] == MASK or form in ALLOWED or _ROMAN.fullmatch(form):
            continue
        small = form.lower()
        if small in moment.words or small + "s" in moment.words or f" {' '.join(small)} " in moment.spelled:
            continue
        if not _expanded(text, match.start(), small):
            yield Hit(*match.span())


def _expanded(text: Text, position: int, form: str) -> bool:
    """Do the first letters of neighbouring words, with or without the small ones between, spell the form?"""
    at = next((k for k, start in enumerate(text.starts) if start >= position), len(text.words))
    near = [*text.words[max(0, at - NEAR) : at], "|", *text.words[at + 1 : at + 1 + NEAR]]
    every, large = "".join(word[0] for word in near), "".join(word[0] for word in near if word not in STOP)
    return form in every or form in large


def t05(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    known, buckets = moment.words, moment.long_words
    if not buckets:
        return
    for k, word in enumerate(text.words):
        if len(word) < 6 or not word.isalpha() or word in known:
            continue
        near = _near(word, buckets)
        if not near or _is_word(word) or any(other.startswith(word) or word.startswith(other) for other in near):
            continue
        # What the slide itself may have misspelt is no measure.
        if any(_is_word(other) for other in near):
            yield Hit(text.starts[k], text.ends[k])


def _near(word: str, buckets: dict[str, list[str]]) -> list[str]:
    """Context words within one edit of a word (two from eight letters; a swap of neighbours is one edit) that begin or end alike."""
    candidates = {*buckets.get(word[:2], ()), *buckets.get("-" + word[-3:], ())}
    limit = 2 if len(word) >= 8 else 1
    candidates = {one for one in candidates if abs(len(one) - len(word)) <= limit}
    if not candidates:
        return []
    from rapidfuzz.distance import DamerauLevenshtein

    return [one for one in sorted(candidates) if DamerauLevenshtein.distance(word, one, score_cutoff=limit) <= limit]


@lru_cache(maxsize=4096)
def _is_word(word: str) -> bool:
    from wordfreq import zipf_frequency

    return bool(zipf_frequency(word, "en") >= 1.2)


def t06(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    terms = moment.slide_terms
    if moment.moment_type == "transition" or len(terms) < 3 or not terms.isdisjoint(text.stems):
        return
    # The slide's OCR may have lost the end of a word, and a variable of one letter is a term where the slide prints it.
    cut = any(len(one) >= 6 and any(term[:6] == one[:6] for term in terms) for one in text.stems)
    variable = any(
        len(word) == 1 and word not in STOP and word.isalpha() and word in moment.ocr_words for word in text.all_words
    )
    if not cut and not variable:
        yield whole(text)


def t07(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for phrase in VAGUE:
        for match in phrase.matches(text):
            hit = hit_of(match)
            words = text.masked[hit.start : hit.end].split()
            if words[-1] in _EQUATIONS and _NAMED_OF.search(text.masked[: hit.start] + " ".join(words[:1]) + " "):
                continue
            if any(hit.start < art.end() and art.start() < hit.end for art in _TERM_OF_ART.finditer(text.masked)):
                continue
            # What the slide's own description calls so, and what a name follows at once, is named.
            if len(words) > 1 and (stem(words[-1]) in moment.names or _named_next(text, moment, hit.end)):
                continue
            yield hit


def _named_next(text: Text, moment: Moment, end: int) -> bool:
    """Does an apposition follow: a comma and then an article, a naming word, a quote or a name of the slide?"""
    match = _APPOSITION.match(text.masked, end)
    if not match:
        return False
    word = match["word"]
    return (
        word[0] == MASK
        or word in ("the", "a", "an", "labelled", "labeled", "called", "titled", "named", "namely")
        or stem(word) in moment.names
    )


def t08(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    if not text.has_figures and text.plain.isascii():
        return
    for match in _RANGE.finditer(text.plain):
        if not _NUMBERED.search(text.spoken[max(0, match.start() - 16) : match.start()]) and not _RANGE_NAME.match(
            text.spoken, match.end()
        ):
            yield Hit(*match.span())
    for pattern in _FIGURES:
        for match in pattern.finditer(text.plain):
            yield Hit(*match.span())


def t09(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for match in _SHORTHAND.finditer(text.plain):
        if text.masked[match.start()] != MASK:
            yield Hit(*match.span())


def t10(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    if moment.moment_type == "chart":
        at = next((k for k, word in enumerate(text.words) if word in _TREND), None)
        frame = CHART_KINDS
    elif moment.moment_type == "table":
        figures = [k for k, word in enumerate(text.words) if word[0].isdigit()]
        at = figures[0] if len(figures) >= 2 else None
        frame = HEADERS
    else:
        return
    if at is None:
        return
    before = text.words[:at]
    if frame.isdisjoint(before) and MASK not in before and moment.names.isdisjoint(map(stem, before)):
        yield Hit(text.starts[at], text.ends[at])
