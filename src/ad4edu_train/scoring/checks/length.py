"""Length: L01 the pause, L02 the moment's limit, L03 a stub, L04 long sentences, L05 long lists, L06 repetition."""

import re
from collections import Counter
from collections.abc import Iterator

from ad4edu_train.scoring.checks.phrases import Hit, whole
from ad4edu_train.scoring.moment import LAYOUT, Moment
from ad4edu_train.scoring.standard import Scoring
from ad4edu_train.scoring.text import STOP, Text
from ad4edu_train.scoring.words import words

_FUNCTION = words(
    "the a an of to in on at is are and or by with for from as it its this these those which who be "
    "has have was were into over under but if then than"
)


def allowance(moment: Moment, scoring: Scoring) -> float | None:
    """Seconds that a description may take, tolerance included; None where nothing says how long it may be."""
    mode = moment.ad_mode or scoring.ad_mode
    pause = moment.pause_s
    if pause is None:
        if mode != "extended":
            return None
        pause = 0.0  # the player stops the lecture, whatever the pause
    return scoring.pause_tolerance * (pause + scoring.added_pause_s[mode])


def l01(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    available = allowance(moment, scoring)
    if available is None:
        return
    rate = moment.speech_rate_wpm or scoring.speech_rate_wpm
    spoken = 60 * text.n_spoken / rate
    if spoken > available:
        yield whole(text, min(1.0, spoken / available - 1) if available > 0 else 1.0)


def l02(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    limit = scoring.word_limit[moment.moment_type]
    count = text.n_spoken
    if count > limit:
        yield whole(text, min(1.0, (count - limit) / max(1, limit)))


def l03(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    content = [one for one in text.stems if one not in LAYOUT and not one.isdigit()]
    if len(text.all_words) >= 3:
        if not content:
            yield whole(text)
        return
    # One or two words are a good description where they name a thing of the slide.
    terms = moment.slide_terms
    if not content or (terms and terms.isdisjoint(content)):
        yield whole(text)


def l04(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    if len(text.words) <= scoring.sentence_words:
        return
    for sentence in text.sentences:
        # Hyphenated words and figures are one token each here: what counts is how long the sentence is to hold in mind.
        tokens = [token for token in text.plain[sentence.start : sentence.end].split() if any(c.isalnum() for c in token)]
        if len(tokens) > scoring.sentence_words:
            yield Hit(sentence.start, sentence.end, 1 / len(text.sentences))


def l05(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    if text.plain.count(",") + text.plain.count(";") < scoring.list_items - 1:
        return
    for sentence in text.sentences:
        part = re.sub(r"\([^()]{0,400}\)", lambda match: " " * len(match.group()), text.plain[sentence.start : sentence.end])
        part = re.sub(r"(?<=\d),(?=\d{3})", "0", part)
        begin = sentence.start
        for stretch in re.split(r"[;:]", part):
            if _items(stretch) > scoring.list_items:
                yield Hit(begin, min(sentence.end, begin + len(stretch)))
            begin += len(stretch) + 1


def _items(stretch: str) -> int:
    """Items of the longest list between commas: short entries in a row, and the longer ones that open and close it."""
    entries = [entry.split() for entry in stretch.split(",")]
    best = run = 0
    for k, entry in enumerate(entries):
        if 0 < len(entry) <= 4:
            if run == 0 and k > 0:
                run = 1
            joined = 1 if k and len(entry) >= 3 and entry[0] != "and" and ("and" in entry[1:-1] or "or" in entry[1:-1]) else 0
            run += 1 + joined
            best = max(best, run)
        else:
            # A longer last entry closes the list when "and" opens it.
            best = max(best, run + 1) if entry[:1] in (["and"], ["or"]) and run else best
            if run >= 3 and "and" in entry[1:5]:
                best = max(best, run + 2)
            run = 0
    return best


def l06(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    words = text.words
    spans: list[tuple[int, int]] = []
    for k in range(1, len(words)):
        if words[k] == words[k - 1] and words[k] in _FUNCTION and text.plain[text.starts[k]].islower():
            if text.plain[text.ends[k - 1] : text.starts[k]].strip():
                continue
            spans.append((text.starts[k - 1], text.ends[k]))
    seen: set[tuple[str, ...]] = set()
    repeated = 0
    for sentence in text.sentences if len(words) > 3 else ():
        own = tuple(words[sentence.first : sentence.last])
        if len(own) >= 2 and own in seen:
            spans.append((sentence.start, sentence.end))
            repeated += len(own)
        seen.add(own)
    if len(words) >= 6:
        counts = Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
        often = {gram for gram, n in counts.items() if n >= 3}
        often |= {gram for gram, n in counts.items() if n >= 2 and len(set(gram)) == 1 and gram[0] not in ("\u00a4",)}
        if often:
            k = next(k for k in range(len(words)) if tuple(words[k : k + 4]) in often)
            spans.append((text.starts[k], text.ends[min(k + 3, len(words) - 1)]))
            repeated = max(
                repeated, sum(4 * (counts[gram] - 1) for gram in often if gram[0] not in STOP or len(set(gram)) == 1)
            )
    if spans:
        severity = "critical" if repeated > len(words) / 2 else None
        start, end = min(spans)
        yield Hit(start, end, severity=severity)
