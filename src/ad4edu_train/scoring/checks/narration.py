"""Style, the narrator: S02 tense, S03 person and orders, S06 hedging, S07 judgement and guesses."""

import re
from collections.abc import Iterator

from ad4edu_train.scoring.checks.phrases import AGENT, AGENTS, BEGIN, Hit, Phrase, all_hits, alternatives, hit_of
from ad4edu_train.scoring.moment import Moment
from ad4edu_train.scoring.standard import Scoring
from ad4edu_train.scoring.text import Text, stem
from ad4edu_train.scoring.words import words

_RELATIVE = words("that which who whom whose what when where if after before until since because while how whether")
_PAST_AGENT = alternatives(
    "moved pointed circled rested hovered stopped paused traced tapped clicked jumped swept drew "
    "wrote went came showed appeared disappeared "
    "began started changed became returned turned gestured waved dragged erased faded slid ran "
    "lingered drifted outlined explained said "
    "asked mentioned described underlined highlighted revealed added crossed ended left touched "
    "landed scrolled advanced switched selected "
    "opened closed indicated walked looked followed stayed settled passed dropped pulled pushed "
    "zoomed nodded held brought took made put gave"
)
# Forms that are past and nothing else, whatever the subject.
_PAST_ANY = frozenset(
    [
        "fell",
        "grew",
        "drew",
        "wrote",
        "went",
        "came",
        "became",
        "began",
        "took",
        "gave",
        "threw",
        "flew",
        "chose",
        "knew",
        "stood",
        "sat",
        "shrank",
        "sank",
        "swam",
        "arose",
        "froze",
        "shook",
        "woke",
        "appeared",
        "disappeared",
        "remained",
        "seemed",
        "occurred",
        "emerged",
        "arrived",
        "vanished",
        "happened",
        "existed",
        "consisted",
        "belonged",
        "climbed",
        "hovered",
        "descended",
        "ascended",
        "dwindled",
        "plunged",
        "soared",
    ]
)
_NOUN_BEFORE = words("a an the this that its newly just recently has have having is are be been being been's most")
_BE_PAST = re.compile(r"\b(?:was|were|wasn't|weren't|had been|hadn't)\b")
TENSE = (
    Phrase(
        rf"\b{AGENT}(?:\s+(?:\w+ly|then|now|also|again|just|first|next"
        rf"|briefly))?\s+(?P<at>{_PAST_AGENT})\b(?!\s+(?:by|as)\b)",
        AGENTS,
    ),
    # "had" reports data too ("The control group had twelve errors"); with a participle or a pointing agent it is past narration.
    Phrase(
        rf"\b(?P<at>had\s+(?:just\s+|already\s+|not\s+|also\s+)?(?:\w+ed|been|shown|drawn|written|gone|come"
        rf"|become|begun|risen|fallen|grown|given|taken|made|put|seen|said|done|known|stood|left|"
        rf"moved))\b|\b{AGENT}\s+(?P<at2>had)\b",
        "had",
    ),
    Phrase(
        r"\b(?P<at>(?:will|'ll|shall|(?:is|are) going to|(?:is|are) about to)\s+(?:\w+ly\s+|then\s+|now\s+"
        r"|next\s+|soon\s+|also\s+)?(?:be\s+)?(?:show|shown|appear|move|display|"
        r"displayed|highlight|highlighted|point|circle|reveal|revealed|draw|drawn|rise|fall|change|follow"
        r"|present|presented|explain|describe|discuss|begin|start|see|become|turn|underline|write|fade"
        r"|slide|open))\b",
        "will shall going about",
    ),
    Phrase(r"\b(?P<at>(?:some time|a while|a moment|moments|minutes|seconds) ago)\b", "ago"),
    Phrase(
        rf"{BEGIN}(?P<at>(?:previously|formerly|earlier|originally|once|just before)\s+(?:\w+ed|drawn|shown"
        rf"|written|seen|given|made|put))\b(?=\s*[:,.;])",
        "previously formerly earlier originally once before",
    ),
    Phrase(r"\b(?P<at>(?:what|there|it|he|she|they|who)\s+used to)\b", "used"),
)

_SAYING = alternatives(
    "think see say have had am believe would will can cannot can't want notice guess know show draw "
    "point hear find call like do don't "
    "suppose describe suggest hope mean love feel recommend assume note observe understand"
)
_I = re.compile(rf"\b(?P<at>I(?:'(?:m|ve|d|ll)\b|(?:\s+(?:also|just|really|now|would|will|can))?\s+{_SAYING}\b))")
_US = re.compile(r"\b(?P<at>us)\b")
PERSON = Phrase(
    r"\b(?P<at>we(?:'\w+)?|ours?|ourselves|you(?:'\w+)?|yours?|yourself|yourselves|my|me|myself|let's|let us)\b",
    "we we're we've we'll we'd our ours ourselves you you're you've you'll you'd your yours yourself "
    "yourselves my mine me myself let's let",
)
ORDERS = (
    Phrase(
        rf"{BEGIN}(?:(?:please|now|first|next|then|so|and|also),?\s+)?(?P<at>(?:please\s+\w+"
        rf"|notice(?=\s+(?:the|that|how|a|an|where|also|what|this|here)\b|\s*,)|note(?=\s+(?:that|how|the"
        rf"|also|here|where)\b)|look(?:ing)? (?:at|for|closely|"
        r"carefully|here|to)|imagine(?!d)|remember(?=\s+(?:that|the|how|to|this)\b|\s*,)"
        r"|observe(?=\s+(?:that|how|the|a|an)\b)|consider(?=\s+(?:the|a|an|this|how|what)\b)"
        r"|watch(?=\s+(?:the|how|as|for|"
        r"this|closely)\b)|pay (?:close )?attention|keep in mind|recall(?=\s+(?:that|the|how)\b)|think "
        r"(?:of|about)|focus on|see(?=\s+(?:the|how|that|this|also)\b)|"
        r"picture(?=\s+(?:a|the|this|an)\s)|find(?=\s+(?:the|a|an)\b)|take (?:a look|note)|listen (?:to"
        r"|for|carefully)|click (?:on|the)|turn to|go to|"
        r"check (?:the|for|out)|compare (?:the|this)|ignore (?:the|this)|do not|don't|bear in mind|have a "
        r"look|let (?:the|me))(?:\s+(?:that|how|at|for))?)\b",
        "please notice note look looking imagine remember observe consider watch pay keep recall think "
        "focus see picture find take listen click turn "
        "go check compare ignore do don't bear have let",
    ),
)

_HEDGED = alternatives(
    "diagram chart figure structure device graph image thing object shape drawing machine plot map "
    "pattern animal tool process network"
)
HEDGES = (
    Phrase(
        r"\b(?P<at>seems?|seemed|seemingly|possibly|perhaps|presumably|maybe|apparently|supposedly"
        r"|conceivably|probably(?! approximately correct))\b",
        "seem seems seemed seemingly possibly perhaps presumably maybe apparently supposedly conceivably probably",
    ),
    Phrase(
        r"\b(?P<at>(?:looks?|looking|appears?|sounds?) (?:to (?:be|show|have|depict|indicate|represent"
        r"|contain|illustrate)|like|as if|as though)|appears? to(?! (?:the|its|their|an?|one|both|his|her|left|right)\b))\b",
        "look looks looking appear appears sound sounds",
    ),
    Phrase(
        r"\b(?:this|it|these|those)\s+(?P<it>(?:might|could|may)(?:\s+(?:well|also|perhaps))?\s+be)\b"
        r"|(?<!that )(?<!which )(?<!who )(?<!they )"
        r"\b(?P<at>(?:might|could|may)(?:\s+(?:well|also|perhaps))?\s+be)(?=\s+(?:an?|the|some|part|from"
        r"|one|showing|shown|pointing|depicting|"
        r"related|about)\b)",
        "might could may",
    ),
    Phrase(
        r"\b(?P<at>(?:is|are|it's) (?:very |quite |also )?likely)\b|(?<!more )(?<!less )(?<!most "
        r")(?<!least )(?<!equally )(?<!how )(?<!as )"
        r"\b(?P<noun>likely)\b(?=\s+(?:an?|the|shows?|represent\w*|indicat\w*|depict\w*|due|from)\b|\s*,)",
        "likely",
    ),
    Phrase(
        rf"\b(?P<at>(?:some|a|what looks like a) (?:kind|sort|type) of (?:an? )?(?:\w+ )?{_HEDGED})\b"
        rf"|\b(?P<kind>(?:kind|sort) of)(?= (?:a|an|like|looks|blurry|messy)\b)",
        "kind sort type",
    ),
    # That a named thing is illegible or hidden is honest; "it is unclear what this shows" is not.
    Phrase(
        r"\b(?P<at>it(?: is|'s) (?:unclear|not clear|hard to (?:say|tell|know)|difficult to (?:say|tell"
        r"|know)|impossible to (?:say|tell))|not (?:entirely |quite |completely )?sure|hard to tell"
        r"|uncertain (?:what|whether|if))\b",
        "unclear clear hard difficult impossible sure uncertain",
    ),
)

_JUDGED = alternatives(
    "beautiful(?:ly)? impressive(?:ly)? interesting(?:ly)? amazing(?:ly)? fascinating(?:ly)? "
    "confusing(?:ly)? messy remarkabl[ey] obvious(?:ly)? clearly surprising(?:ly)? "
    "wonderful(?:ly)? gorgeous(?:ly)? stunning(?:ly)? lovely nicely ugly awful(?:ly)? terribl[ey] "
    "boring brilliantly elegant(?:ly)? excellent(?:ly)? fantastic(?:ally)? incredibl[ey] "
    "marvell?ous(?:ly)? magnificent(?:ly)? dramatically unfortunately sadly luckily thankfully "
    "hopefully importantly notably crucially horribl[ey] superb(?:ly)? "
    "spectacular(?:ly)? delightful(?:ly)? neatly astonishing(?:ly)? cleverly "
    "breathtaking intriguing(?:ly)? cute silly undoubtedly unsurprisingly"
)
_JUDGED_WORDS = (
    "beautiful beautifully impressive impressively interesting interestingly amazing amazingly "
    "fascinating fascinatingly confusing confusingly messy remarkable "
    "remarkably obvious obviously clearly surprising surprisingly wonderful wonderfully gorgeous "
    "gorgeously stunning stunningly lovely nicely ugly awful awfully terrible "
    "terribly boring brilliantly elegant elegantly excellent excellently fantastic fantastically "
    "incredible incredibly marvelous marvellous marvelously marvellously "
    "magnificent magnificently dramatically unfortunately sadly luckily thankfully hopefully "
    "importantly notably crucially horrible horribly superb superbly spectacular "
    "spectacularly delightful delightfully neatly astonishing astonishingly "
    "cleverly breathtaking intriguing intriguingly "
    "cute silly undoubtedly unsurprisingly"
)
_QUALITY = alternatives(
    "good bad nice clear important pretty beautiful cool helpful useful busy complex complicated "
    "detailed interesting impressive simple easy hard messy confusing big neat powerful special "
    "strange clever great"
)
JUDGEMENTS = (
    Phrase(rf"\b(?P<at>{_JUDGED})\b", _JUDGED_WORDS),
    # The adverb stands apart; "a list of course topics" speaks of courses.
    Phrase(
        rf"(?:{BEGIN}(?P<at>of course)(?=\s*,|\s+(?:the|a|this|it)\b)|,\s+(?P<mid>of course)\b|\b(?:is|are"
        rf"|has|have|does|can|will)\s+(?P<verb>of course)\b)",
        "course",
    ),
    Phrase(r"\b(?P<at>a? ?great (?:detail|clarity|example|diagram|picture|way|job|illustration|visual|slide|care))\b", "great"),
    Phrase(
        r"\b(?P<at>(?:easy|hard|difficult|nice|pleasant) to (?:see|read|follow|look at|understand))\b",
        "easy hard difficult nice pleasant",
    ),
    Phrase(
        rf"\b(?P<at>(?:very|really|extremely|quite|rather|super|truly) {_QUALITY})\b",
        "very really extremely quite rather super truly",
    ),
    Phrase(rf"{BEGIN}(?P<at>what an? (?:\w+(?=\s*[:!.,])|\w+ \w+(?=\s*[:!.])|[^.!?,;:]{{1,60}}(?=!)))", "what"),
    Phrase(r"\b(?P<at>nice)\b(?!\s+guideline)", "nice"),
)

# Feelings and aims of persons and animals on the slide, unless the lecture itself speaks of them.
INNER = Phrase(
    r"\b(?:lecturer|professor|presenter|speaker|instructor|teacher|students?|man|woman|men|women"
    r"|person|people|child|children|boy|girl|dog|cat|rat|mouse|animal|patient|participant|he|she"
    r"|they)\s+(?:\w+ly\s+)?"
    r"(?P<at>(?P<word>wants?|tries|try|intends?|feels?|believes?|hopes?|enjoys?|wishes|worries|loves?"
    r"|hates?|expects?|trusts?)\b(?:\s+(?:to|that|happy|sad|bored|excited|tired|proud|confident|afraid"
    r"|angry))?)",
    "wants want tries try intends intend feels feel believes believe hopes hope enjoys enjoy wishes "
    "worries loves love hates hate expects expect trusts trust",
)


def s02(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for phrase in TENSE:
        for match in phrase.matches(text):
            if not _in_relative_clause(text, match.start()):
                yield hit_of(match)
    if not text.vocabulary.isdisjoint(("was", "were", "wasn't", "weren't", "had")):
        for match in _BE_PAST.finditer(text.masked):
            if not _in_relative_clause(text, match.start()):
                yield Hit(*match.span())
    if not _PAST_ANY.isdisjoint(text.vocabulary):
        for k, word in enumerate(text.words):
            if (
                word in _PAST_ANY
                and (k == 0 or text.words[k - 1] not in _NOUN_BEFORE)
                and not _in_relative_clause(text, text.starts[k])
            ):
                yield Hit(text.starts[k], text.ends[k])


def s03(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for hit in PERSON.hits(text):
        word = text.plain[hit.start : hit.end]
        # "ME" is a short form, "Me" within a sentence a methyl group.
        if not word.isupper() and not (word == "Me" and hit.start > text.sentence_at(hit.start).start):
            yield hit
    if "us" in text.vocabulary:
        for match in _US.finditer(text.unquoted):
            if text.masked[match.start()] == "u":
                yield hit_of(match)
    if not text.vocabulary.isdisjoint(("i", "i'm", "i've", "i'd", "i'll")):
        for match in _I.finditer(text.unquoted):
            # "Type I can ..." is a numeral: what names a type or class stands before it.
            before = text.unquoted[: match.start()].rstrip()
            if text.masked[match.start()] == "i" and (
                not before
                or before[-1] in ".!?,;:(\"'"
                or before.rsplit(None, 1)[-1] in ("and", "that", "what", "as", "but", "so", "if", "which")
            ):
                yield hit_of(match)
    yield from all_hits(ORDERS, text)


def s06(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for phrase in HEDGES:
        for match in phrase.matches(text):
            # Capital letters within a sentence mark a name: "Probably Approximately Correct".
            word = text.plain[match.start() : match.end()]
            if word[:1].isupper() and match.start() != text.sentence_at(match.start()).start:
                continue
            yield hit_of(match)


def s07(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for phrase in JUDGEMENTS:
        for match in phrase.matches(text):
            hit = hit_of(match)
            # A word that the slide prints is a term there: a scale from "poor" to "excellent".
            if not text.plain[hit.start : hit.end].isupper() and text.masked[hit.start : hit.end] not in moment.ocr_words:
                yield hit
    for match in INNER.matches(text):
        if match["word"] not in moment.words and stem(match["word"]) not in moment.stems:
            yield hit_of(match)


def _in_relative_clause(text: Text, position: int) -> bool:
    """Does a relative or subordinate word stand in the six words before, in the same sentence?"""
    sentence = text.sentence_at(position)
    before = text.masked[sentence.start : position].split()[-6:]
    return any(word.strip(",;:\"'(") in _RELATIVE for word in before)
