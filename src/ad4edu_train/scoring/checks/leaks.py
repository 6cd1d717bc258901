"""Style, what is no description at all: S05 leaks of the generator, S09 markup, S10 wrapping and stage directions."""

import re
from collections.abc import Iterator

from ad4edu_train.scoring.checks.phrases import Hit, hit_of, whole
from ad4edu_train.scoring.moment import Moment
from ad4edu_train.scoring.standard import Scoring
from ad4edu_train.scoring.text import MASK, Text, stem
from ad4edu_train.scoring.words import words

_INPUTS = r"(?:images?|frames?|transcripts?|prompts?|key-?frames?|context|ocr|inputs?|screenshots?|metadata|video clips?)"
# Looked for in lower-case text with quotes masked, except where the whole text is one quotation. With the words without which none can be.
_LEAKS: tuple[tuple[frozenset[str], re.Pattern[str]], ...] = (
    (
        words("description ad narration narrator answer output assistant system user human alt caption"),
        re.compile(
            r"^\W*(?:(?:audio|video|image|scene|visual|slide|final|suggested|revised)[ -]?(?:description|ad"
            r"|caption|narration|answer|output)|description|described video|ad|narration|narrator|"
            r"answer|final answer|output|assistant|system|user|human|alt[ -]?text)(?: \d+)?\s*:"
        ),
    ),
    (
        words("as"),
        re.compile(
            r"\bas an? (?:ai|artificial intelligence|large language model|language model|llm|(?:virtual "
            r"|helpful )?assistant|chatbot)\b"
        ),
    ),
    (
        words("i i'm"),
        re.compile(
            r"\bi(?:'m| am) (?:an ai|a language model|not able|unable|sorry|afraid|just an)\b|\bi (?:cannot"
            r"|can't|can not|could not|couldn't|won't|do not have|don't have|apologi[sz]e)\b"
        ),
    ),
    (
        words("sure certainly okay ok absolutely course understood got great alright sorry apologies"),
        re.compile(
            r"^\W*(?:sure|certainly|okay|ok|absolutely|of course|understood|got it|great question|alright"
            r"|sorry|apologies|my apologies)\s*[,!.:;]"
        ),
    ),
    (
        words("here here's"),
        re.compile(
            r"\bhere(?:'s| is| are)\s+(?:the|an?|my|your|our|some)\s+(?:\w+\s+){0,3}(?:description|narration"
            r"|ad|answer|version|output|response|caption|text|audio description)\b"
        ),
    ),
    (
        words("provided supplied attached uploaded given"),
        re.compile(
            rf"\b(?:provided|supplied|attached|uploaded)\s+(?:\w+\s+)?(?:{_INPUTS}|text|slide|description"
            rf"|information)\b|\bgiven (?:{_INPUTS})(?! of reference)\b"
        ),
    ),
    (
        words("based according judging from per"),
        re.compile(
            r"\b(?:based on|according to|judging by|judging from|from|per)\s+the\s+(?:\w+\s+)?(?:transcripts?"
            r"|prompts?|ocr(?: text)?|key-?frames?|provided \w+|lecture context|metadata)\b"
        ),
    ),
    (
        words("ocr transcript prompt description"),
        re.compile(
            r"\bthe (?:ocr(?: text| output)?|transcript|prompt|on-screen description) (?:says|reads|shows"
            r"|contains|indicates|mentions|states|lists|does not)\b"
        ),
    ),
    (
        frozenset(),
        re.compile(
            r"</?\s*(?:think|thinking|thought|answer|reasoning|scratchpad|output|ad|description|assistant"
            r"|system|tool_call|response)\b[^<>]{0,80}>|<\||\|>|\[/?inst\]|im_start|im_end|<s>|</s>"
        ),
    ),
    (
        words("ignore disregard forget override"),
        re.compile(
            r"\b(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+|every\s+|the\s+|your\s+|these\s+"
            r"|those\s+)*(?:previous|prior|above|earlier|preceding|other|given|system)?\s*(?:instructions?"
            r"|prompts?|directions|rules|guidelines|messages)\b"
        ),
    ),
    (
        words("give award assign return output grant score rate grade"),
        re.compile(
            r"\b(?:give|award|assign|return|output|grant)\s+(?:\w+\s+){0,3}(?:a\s+)?(?:perfect\s+|full\s+"
            r"|high\s+|top\s+|maximum\s+|the\s+)*(?:score|rating|grade|marks)\b|\b(?:score|rate|grade) (?:this"
            r"|it|me) (?:as |with |a |at )*(?:\d|perfect|high|full|the)"
        ),
    ),
    (
        words("you grader evaluator judge"),
        re.compile(
            r"\byou are (?:now |an? )+(?:ai|assistant|helpful|language model|grader|evaluator|judge"
            r"|describer)\b|\bthe (?:grader|evaluator|judge) (?:must|should|will)\b"
        ),
    ),
    (
        words("words word description"),
        re.compile(
            r"\(\s*(?:about |approx\w*\.? |~)?\d+ words?\s*\)|\bword count\s*[:=]|\b(?:within|under|in) "
            r"(?:the )?\d+[- ]word (?:limit|budget)\b|\b(?:this (?:audio )?|the audio )description (?:is|has|fits"
            r"|uses|stays|contains|meets|complies|follows|avoids|was|will)\b"
        ),
    ),
    (
        words("know hope feel happy would if thank thanks any"),
        re.compile(
            r"\b(?:let me know (?:if|whether|when)|i hope (?:this|that)|hope (?:this|that) helps|feel free to"
            r"|happy to help|would you like me|if you (?:need|want|would like)|thanks? (?:you )?for "
            r"(?:watching|listening)|any (?:further|other) questions)\b"
        ),
    ),
    (
        words("thought reasoning analysis thinking plan step let's let"),
        re.compile(
            r"^\W*(?:thought|reasoning|analysis|thinking|plan|step 1|let's think|let me (?:think|analy[sz]e"
            r"|describe|see))\b\s*[:,]?\s*(?=\S)(?<=[:, ])(?:i |the user|we |let|first|step|now|about|this)"
        ),
    ),
    (
        frozenset(),
        re.compile(rf"^\s*[\[{{]\s*['\"]?[\w {MASK}]{{0,40}}['\"]?\s*[:{{\[]"),
    ),
    (
        words("user user's instructions training knowledge"),
        re.compile(
            r"\b(?:the user|user's (?:request|query|prompt)|my instructions|training data|knowledge "
            r"cutoff)\s+(?:asks?|asked|wants|wanted|request\w*|is asking|says?|require\w*|state\w*|do|does"
            r"|prohibit\w*)\b"
        ),
    ),
)
_INPUT_NAMES = re.compile(r"\b(?:images?|frames?|transcripts?|prompts?|contexts?|ocr|inputs?|screenshots?|metadata)\b")
_KEYFRAME = re.compile(r"\bkey-?frames?\b")
_KEYFRAME_LECTURE = words(
    "keyframe keyframes animation animations animate animated tween tweening easing interpolation interpolate keyframing"
)

_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffd\ud800-\udfff\ue000-\uf8ff"
    "\U000e0000-\U000e007f]|\r(?!\n)"
)
_EMOJI = re.compile(
    "[\u2600-\u27bf\u2b00-\u2bff\ufe0f\u20e3\u231a\u231b\u23e9-\u23fa\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\U0001f000-\U0001faff\U0001f1e6-\U0001f1ff]"
)
_ADDRESS = re.compile(
    r"(?:https?|ftp)://\S|\bwww\.\w|\b[\w.+-]{1,64}@[\w-]{1,64}\.[a-z]{2,}"
    r"|(?<![\w.@-])[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,3}\.(?:com|org|net|edu|gov|info|co\.uk"
    r"|ac\.uk)\b",
    re.IGNORECASE,
)
_MARKUP = (
    re.compile(r"(?<![\w*])\*{1,3}(?=[^\s*])[^*\n]{0,400}(?<=[^\s*])\*{1,3}(?![\w*])"),
    re.compile(r"(?<![\w_])_{1,3}(?=[^\s_])[^_\n]{0,400}(?<=[^\s_])_{1,3}(?![\w_])"),
    re.compile(r"~~[^~\n]{1,400}~~|`[^`\n]{0,400}`|```"),
    re.compile(r"!?\[[^\]\n]{0,400}\]\([^)\s]{1,400}\)"),
    re.compile(r"</?[a-zA-Z][a-zA-Z0-9-]{0,20}(?:\s[^<>]{0,400})?/?>|<!--|&(?:[a-zA-Z]{2,8}|#x?[0-9a-fA-F]{1,6});"),
    re.compile(
        r"^[ \t]{0,20}(?:#{1,6}[ \t]|(?:[-*+\u2022\u2023\u25e6\u25cf\u25aa\u2043\u2013\u2014]|\d{1,2}[.)]"
        r"|\([a-z0-9]\))[ \t]+(?=\S)|>[ \t])",
        re.MULTILINE,
    ),
    re.compile(r"\|\s*:?-{3,}|^\s{0,20}\|.{0,200}\|", re.MULTILINE),
    re.compile(r'\{\s{0,20}"[^"\n]{0,80}"\s{0,20}:'),
)
_MAYBE_ADDRESS = re.compile(r"@|://|[Ww]{3}\.|\.[A-Za-z]")
_MAYBE_MARKUP = re.compile(r"[*_~`\[<&|{#>]|(?m:^[ \t]{0,20}[-+(\d\u2022\u2023\u25e6\u25cf\u25aa\u2043\u2013\u2014])")
_BREAK = re.compile(r"[ \t]*\r?\n")
_SHORT_LINE = 40  # a line that stops short of this without punctuation is an item, not a wrapped line

_CUE_WORDS = (
    r"(?:pauses?|(?:background )?music|applause|laughter|inaudible|unintelligible|crosstalk|narrator"
    r"|end(?: of (?:audio )?description)?|voice-?over|sfx"
    r"|no audio)"
)
_CUE = re.compile(rf"[\[(*]\s*{_CUE_WORDS}(?:\s+(?:music|playing|continues|here|\d+\s*s(?:ec(?:ond)?s?)?))?\s*[\])*]")
_WRAPPED = re.compile(r"^\s*\"([^\"]+)\"\s*[.]?\s*$")
_CURLY = re.compile("[\u201c\u201e\u00ab]|[\u201d\u00bb]")


def s05(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    wrapped = _WRAPPED.match(text.plain) is not None
    looked = text.spoken.replace('"', " ") if wrapped else text.masked
    present = frozenset(text.all_words)
    for triggers, pattern in _LEAKS:
        if triggers and triggers.isdisjoint(present):
            continue
        for match in pattern.finditer(looked):
            if not _of_the_lecture(match.group(), moment):
                yield hit_of(match)
    if "keyframe" in looked or "key-frame" in looked:
        lecture = moment.words
        if lecture.isdisjoint(_KEYFRAME_LECTURE) and moment.moment_type != "animation":
            for match in _KEYFRAME.finditer(looked):
                yield hit_of(match)


def _of_the_lecture(leak: str, moment: Moment) -> bool:
    """Is the input that the text speaks of a thing of the slide: a transcript of genetics, a prompt of a language model?"""
    named = _INPUT_NAMES.findall(leak)
    return bool(named) and any(stem(name) in moment.slide_stems for name in named)


def s09(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    raw = text.raw
    if not raw.isascii() or not raw.isprintable():
        for pattern in (_CONTROLS, _EMOJI):
            for match in pattern.finditer(raw):
                yield Hit(*match.span())
    for match in _ADDRESS.finditer(raw) if _MAYBE_ADDRESS.search(raw) else ():
        yield Hit(*match.span())
    # Nearly all texts hold none of the marks; the patterns of each are only tried on the others.
    for pattern in _MARKUP if _MAYBE_MARKUP.search(raw) else ():
        for match in pattern.finditer(raw):
            yield Hit(*match.span())
    start, end = len(raw) - len(raw.lstrip()), len(raw.rstrip())
    if (tab := raw.find("\t", start, end)) >= 0:
        yield Hit(tab, tab + 1)
    if "\n" in raw[start:end]:
        yield from _bad_breaks(raw, start, end)


def _bad_breaks(raw: str, start: int, end: int) -> Iterator[Hit]:
    """Line breaks that set items or paragraphs; a plain wrap of running text passes."""
    begin = start
    for match in _BREAK.finditer(raw, start, end):
        before, after = raw[begin : match.start()].rstrip(), raw[match.end() : match.end() + 40].lstrip(" \t")
        begin = match.end()
        blank = not before or after[:1] in ("\n", "\r")
        item = len(before) < _SHORT_LINE and before[-1:] not in ".,:;!?-)\"'" and (after[:1].isupper() or after[:1].isdigit())
        if blank or item:
            yield Hit(*match.span())


def s10(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    wrapped = _WRAPPED.match(text.plain)
    if wrapped and len(text.all_words) >= 3:
        yield whole(text)
    for match in _CUE.finditer(text.spoken):
        yield Hit(*match.span())
    marks = text.plain.count('"')
    if marks % 2 and not re.search(r'\d"', text.plain):
        at = text.plain.rfind('"')
        yield Hit(at, at + 1)
