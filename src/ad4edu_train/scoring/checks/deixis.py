"""Deixis: D01 and D02 demonstratives, D03 here and there, D06 the referent, D07 pronouns, D08 the pointer's target."""

import re
from collections.abc import Iterator

from ad4edu_train.scoring.checks.phrases import (
    AGENT,
    AGENTS,
    BEGIN,
    CLAUSE_END,
    GENERIC,
    GENERICS,
    ON_PAGE,
    PAGE,
    SIZES,
    Hit,
    Phrase,
    alternatives,
    hit_of,
    whole,
)
from ad4edu_train.scoring.moment import COLOURS, LAYOUT, Moment
from ad4edu_train.scoring.standard import Scoring
from ad4edu_train.scoring.text import MASK, STOP, Text, stem
from ad4edu_train.scoring.words import words

_BARE = alternatives("this that these those")
_VERB = alternatives(
    "is are was were isn't aren't has have had does do shows? showed represents? means? indicates? "
    "illustrates? leads? gives? goes becomes? contains? includes? makes? "
    "looks? seems? appears? comes? marks? points? tells? allows? causes? happens? demonstrates? "
    "depicts? explains? describes? refers? corresponds? consists? forms? connects? feeds? "
    "suggests? follows? turns? rises? falls? moves? can could will would may might must should also then now"
)
_REACH = alternatives(
    "to at on onto in into of off from with by around over under underneath above below near beside "
    "behind beyond along across through toward towards between inside against like as about past after "
    "before "
    "circles? marks? underlines? highlights? touches? shows? indicates? connects? joins? crosses "
    "outlines? boxes taps? traces? reaches? surrounds? labels? selects? names? called becomes and"
)
# Openings that name nothing a demonstrative could take up: when, where on the display, or that someone sees it.
_OPENING = (
    r"(?:(?:(?:and|but|so|then|next|now|finally|again|here|there|also|first|after that)"
    r"|(?:on|to) the (?:far )?(?:left|right)|(?:at|on|in) the (?:very )?(?:top|bottom|middle|cent(?:er|re))"
    r"|as (?:you|we) (?:can )?see(?: here)?),?\s+){0,3}"
)
DEMONSTRATIVES = (
    Phrase(rf"{BEGIN}{_OPENING}(?P<at>{_BARE})\s+{_VERB}\b(?!-)", "this that these those"),
    Phrase(rf"{BEGIN}(?P<at>(?:this|that|these|those))(?=\s*[,:.]|\s+(?:and|here|over|right)\b)", "this that these those"),
    Phrase(
        r"\b(?P<at>(?:this|that|these|those) (?:ones?|guys?|fellow|little guy|thing "
        r"here))\b(?!-)(?!\s+(?:can|could|may|might|must|should|would|of)\b)",
        "this that these those",
    ),
    Phrase(
        rf"\b{_REACH}\s+(?P<at>{_BARE})(?=\s*(?:[.,;:!?]|$)|\s+(?:and|then|while|before|after|as|to|when"
        rf"|on the (?:slide|screen|left|right)|in the (?:figure|diagram|middle|centre|center)|right here"
        rf"|here|over there)\b)",
        "this that these those",
    ),
    Phrase(rf"\b(?:is|are)\s+(?P<at>{_BARE})(?=\s*(?:[.;:!?]|$))", "this that these those"),
    Phrase(rf"\b{AGENT}\s+(?:\w+\s+){{0,2}}(?P<at>{_BARE})(?=\s*(?:[.;:!?]|$))", "this that these those"),
)
_BOUNDARY = re.compile(r"[,;:]|\band\b|\bwhere\b|\bwhich\b")

POINTED_NOUNS = Phrase(
    rf"\b(?P<at>{_BARE}\s+(?:{SIZES}\s+){{0,2}}(?P<noun>{GENERIC}))\b(?!-)(?!\s+(?:can|could|may|might|must|should|would)\b)"
    rf"(?!\s*,\s*(?:the|an?|which is|namely|called)\b|\s*\(|\s*,?\s*(?:labelled|labeled|called|titled"
    rf"|named|marked|reading|headed|known)\b|\s*,?\s*{MASK}|\s*[\"'])",
    GENERICS,
)
_AT_THIS_POINT = re.compile(r"(?:^|[.!?:;]\s)\s*[\"(]?at $")
_ANCHOR = re.compile(
    r"\d|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|forty|fifty|hundred"
    r"|equals|midnight|noon)\b"
)
_MEASURED = words("point points value values number numbers")

HERE = (
    Phrase(r"\b(?P<at>(?:right |over |down |up |in )?here)\b(?!')", "here"),
    Phrase(r"\b(?P<at>(?:over|up|down|right|back|out|in|along|under) there)\b(?!\s+(?:is|are)\b)", "there"),
    Phrase(
        rf"(?<!from )(?<!and )(?<!or )(?<!,\s)\b(?P<verb>\w+)\s+(?P<at>there)(?={CLAUSE_END}|\s+(?:on|in|at"
        rf"|above|below|by|next)\b)",
        "there",
    ),
)
_NOT_PLACE = words("from and or is are was were that if whether because as when where while so but then than since")


_POINTS_AT = alternatives(
    "points gestures waves motions circles highlights underlines hovers indicates taps clicks traces "
    "rests outlines marks selects touches encircles lingers stops pauses lands gestures "
    "draws\\sattention"
)
NAMED_NEXT = rf"\s*,\s*(?:the|an?|which is|namely|called|labelled|labeled|titled|marked|{MASK})\b|\s*,?\s*[\"']"
_TARGETLESS = (
    rf"(?:\s+(?:around|about|repeatedly|again|twice|once|briefly|slowly|quickly|now|down|up|over|back"
    rf"|out))*(?:\s+(?:(?:at|to|on|over|toward|towards|around|in|near|across|onto|along)\s+)?"
    rf"(?:(?:the|this|that|an?|some|its|another|one)\s+)?(?:{SIZES}\s+)?(?:{PAGE}|something|somewhere"
    rf"|it|them|this|that|these|those|here|there|{GENERIC}|blackboard|whiteboard|class|audience|room"
    rf"|wall|projection|chart|graph|table|content|text))?"
)
TARGETS = (
    Phrase(
        rf"\b{AGENT}\s+(?:(?!that\b|which\b"
        rf"|who\b)\w+\s+){{0,2}}(?P<at>{_POINTS_AT}{_TARGETLESS})(?!{NAMED_NEXT})(?={ON_PAGE}{CLAUSE_END}|\s+of the "
        rf"{PAGE}\b)",
        AGENTS,
    ),
    Phrase(
        rf"\b{AGENT}\s+(?:\w+ly\s+)?(?P<at>(?:moves?|jumps?|goes|slides?|travels?|drifts?|sweeps?|wanders?"
        rf"|returns?)(?:\s+(?:around|about|over|back|up|down|left|right|across|away|again|slowly|quickly"
        rf"|along))*(?:\s+(?:to|around|across|over|on|along|toward|towards)\s+(?:the\s+|this\s+|another\s+"
        rf"|a\s+)?(?:something|it|them|places?|spots?|parts?|things?))?)(?!{NAMED_NEXT})(?!\.\s+(?:it"
        rf"|there)\b){CLAUSE_END}",
        AGENTS,
    ),
)
_PRONOUN = re.compile(
    r"\s*[\"(]?(?P<at>(?:It|They|Its|Their|Theirs|She|Them|His|Her|Hers|It's|They're)\b(?!-)"
    r"|He\b(?!-)(?!\s+(?:and|atoms?|gas|ions?|nucle|is a noble|lamp)))"
)
_AGENT_WORDS = words(
    "cursor pointer mouse laser pen stylus lecturer presenter professor instructor teacher speaker hand finger"
)


def d01(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for number, phrase in enumerate(DEMONSTRATIVES):
        for match in phrase.matches(text):
            hit = hit_of(match)
            if number == 3 and _referent_before(text, hit):
                continue
            yield hit


def _referent_before(text: Text, hit: Hit) -> bool:
    """Does an earlier clause of the sentence name what the demonstrative stands for?"""
    sentence = text.sentence_at(hit.start)
    boundaries = list(_BOUNDARY.finditer(text.masked, sentence.start, hit.start))
    if not boundaries:
        return False
    earlier = text.masked[sentence.start : boundaries[-1].start()].split()
    content = [
        word for word in earlier if word not in STOP and stem(word.strip(",.")) not in LAYOUT and word not in _AGENT_WORDS
    ]
    return len(content) >= 2


def d02(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for match in POINTED_NOUNS.matches(text):
        # "At this point, ..." speaks of the time, and is a lead-in.
        if match["noun"] == "point" and _AT_THIS_POINT.search(text.masked[: match.start("at")]):
            continue
        if not _anaphora(text, moment, match):
            yield hit_of(match)


def _anaphora(text: Text, moment: Moment, match: re.Match[str]) -> bool:
    """Does the phrase take up a point or thing that the text has named before?"""
    noun, start = match["noun"], match.start("at")
    sentence = text.sentence_at(start)
    before = [one for one in text.sentences if one.end <= sentence.start]
    begin = before[-1].start if before else sentence.start
    earlier = text.masked[begin:start]
    if noun in _MEASURED and _ANCHOR.search(earlier):
        return True
    own = stem(noun)
    words = text.masked[:start].split()
    for k, word in enumerate(words):
        if stem(word.strip(",.;:()\"'")) == own:
            near = words[max(0, k - 2) : k] + words[k + 1 : k + 5]
            stems = {stem(one.strip(",.;:()\"'")) for one in near}
            if (
                stems & {"labell", "label", "call", "nam", "titl", "mark", "read"}
                or any(MASK in one for one in near)
                or stems & (moment.names - {own})
            ):
                return True
    return False


def d03(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for phrase in HERE:
        for match in phrase.matches(text):
            if "verb" in match.re.groupindex and (
                match["verb"] in _NOT_PLACE and match["verb"] not in ("is", "are", "was", "were")
            ):
                continue
            yield hit_of(match)


def d06(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    if not moment.pointed_at or not moment.names or not moment.slide_terms:
        return
    pointing = [k for k, one in enumerate(text.sentences) if not _AGENT_WORDS.isdisjoint(text.words[one.first : one.last])]
    # The pointer's own sentence names the target, or the next one does.
    chosen = {j for k in pointing for j in (k, k + 1) if j < len(text.sentences)} or set(range(len(text.sentences)))
    found: set[str] = set()
    for k in chosen:
        one = text.sentences[k]
        found.update(stem(word) for word in text.spoken[one.start : one.end].replace("-", " ").split() if word not in STOP)
    found = {stem(word.strip(".,;:!?\"'()")) for word in found} - LAYOUT - COLOURS
    if found.isdisjoint(moment.names) and not any(
        len(one) >= 6 and any(name[:6] == one[:6] for name in moment.names) for one in found
    ):
        yield whole(text)


def d07(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    match = _PRONOUN.match(text.unquoted)
    if match and text.masked[match.start("at")] != MASK:
        yield Hit(*match.span("at"))


def d08(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for phrase in TARGETS:
        for hit in phrase.hits(text):
            # A generic noun that the slide's own description uses is a name there ("the curve").
            if moment.names.isdisjoint(map(stem, text.masked[hit.start : hit.end].split()[1:])):
                yield hit
