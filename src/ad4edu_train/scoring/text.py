"""A description prepared for the checks: one character in, one character out, so that every span points into the given text."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ad4edu_train.scoring.speech import spoken_words
from ad4edu_train.scoring.words import words

MASK = "\N{CURRENCY SIGN}"  # stands for every character of quoted slide text; counts as one word, the name of something
RUN = 3  # so many words of the slide in a row are a quotation without marks

# Look-alikes of one character each. Line breaks and odd spaces become spaces: the checks of layout look at the raw text.
_FOLD = {ord(c): " " for c in "\n\r\t\x0b\x0c\x85\u00a0\u1680\u2028\u2029\u202f\u205f\u3000"} | dict.fromkeys(
    range(0x2000, 0x200B), " "
)
_FOLD |= {ord(c): "'" for c in "\u2018\u2019\u201b\u02bc\u00b4\u2032"} | {
    ord(c): '"' for c in "\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02"
}
_FOLD |= {ord(c): "-" for c in "\u2010\u2011\u2012"} | {0x2026: "."}

_FIGURE = re.compile(r"\d")
WORD = re.compile(rf"{MASK}+|[^\W_{MASK}]+(?:'[^\W_{MASK}]+)*")
_QUOTE = re.compile(r'"[^"]*"')
_SINGLE = re.compile(r"(?<![\w'])'(?=[^\s'])[^'\n]{0,200}(?:(?<=\w)'(?=\w)[^'\n]{0,200}){0,3}(?<=[^\s'])'(?!\w)")
_BOUNDARY = re.compile(r"(?<![.!?])[.!?]++[\"')\]]*+\s++(?=[\"'(\[]?[A-Z0-9\u00a4\u00c0-\u00de])")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:dr|mr|mrs|ms|prof|st|jr|sr|vs|fig|figs|eq|eqs|sec|ch|no|nos|vol|pp|cf|al|approx"
    r"|e\.g|i\.e|dept|univ|ca|var|sp|spp|ssp)\.$"
)

STOP = words("""
        a about above after again against all along also among an and any are around as at be because been before behind
        being below beneath beside between beyond both but by can cannot could did do does doing down during each either
        else every few for from further had has have having he her here hers him his how i if in inside into is it its
        itself just less let like made make makes many may me might more most much must my near neither no nor not now of
        off on once one onto only or other our out outside over own per rather same shall she should since so some such than
        that the their them then there these they this those three through to together too toward towards two under until up
        upon us very was we were what when where which while who whom whose why will with within without would yet you your
        yes okay ok well thing things something anything everything nothing stuff somewhere somehow please thanks thank us
        im really also still even ever
        """)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A word less its inflection (plural as Harman 1991, and -ing, -ed): enough to match a term with itself, no more."""
    if len(word) <= 3 or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and re.search("[aeiouy]", word[: -len(ending)]):
            word = word[: -len(ending)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def fold(raw: str) -> str:
    """The same text in plain punctuation, character for character."""
    return raw.translate(_FOLD)


def lower(text: str) -> str:
    """Lower case of the same length; characters that would grow are kept."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def words_of(text: str) -> list[str]:
    """Lower-case words, hyphenated parts apart."""
    return WORD.findall(lower(fold(text)))


def trigrams(words: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    return zip(words, words[1:], words[2:], strict=False)


@dataclass(frozen=True)
class Sentence:
    """Character span of a sentence, and the range of its words."""

    start: int
    end: int
    first: int
    last: int

    @property
    def n_words(self) -> int:
        return self.last - self.first


@dataclass
class Text:
    """A description and the views of it that the checks read; all of one length.

    raw: as given. plain: plain punctuation. unquoted: plain, with the inside of quotes masked. masked: lower case, and runs of
    `RUN` or more words of the slide's OCR masked like quotes.
    """

    raw: str
    ocr_trigrams: Collection[tuple[str, str, str]] = ()

    def __post_init__(self) -> None:
        self.plain = fold(self.raw)
        self.unquoted = _without_quotes(self.plain)
        low = lower(self.unquoted)
        self.spoken = lower(self.plain)
        self.masked = _without_runs(low, self.ocr_trigrams) if self.ocr_trigrams else low
        matches = list(WORD.finditer(self.masked))
        self.words = [match.group() if match.group()[0] != MASK else MASK for match in matches]
        self.starts = [match.start() for match in matches]
        self.ends = [match.end() for match in matches]
        self.vocabulary = frozenset(self.words)

    @cached_property
    def all_words(self) -> list[str]:
        """Words with nothing masked."""
        return WORD.findall(self.spoken)

    @cached_property
    def n_spoken(self) -> int:
        """Words that a voice speaks."""
        return spoken_words(self.plain, len(self.all_words))

    @cached_property
    def has_figures(self) -> bool:
        return _FIGURE.search(self.plain) is not None

    @cached_property
    def unquoted_words(self) -> list[str]:
        """Words outside quotation marks."""
        return [word for word in WORD.findall(lower(self.unquoted)) if word[0] != MASK]

    @cached_property
    def quotes(self) -> list[str]:
        """What stands between double quotation marks."""
        return [match.group()[1:-1] for match in _QUOTE.finditer(self.plain)]

    @cached_property
    def stems(self) -> list[str]:
        """Stems of the words that carry content, quoted ones too."""
        return [stem(word) for word in self.all_words if word not in STOP]

    @cached_property
    def sentences(self) -> list[Sentence]:
        """Sentences; decimals, initials, species names, titles and common abbreviations end none."""
        bounds, begin = [], len(self.plain) - len(self.plain.lstrip())
        for match in _BOUNDARY.finditer(self.unquoted):
            head = self.spoken[max(begin, match.start() - 24) : match.start() + 1]
            # The short last word of a closed list ("fig.", "no.") ends no sentence where a number follows or a title precedes.
            if match.group()[0] == "." and self._abbreviated(head, match):
                continue
            bounds.append((begin, match.start() + len(match.group().rstrip())))
            begin = match.end()
        end = len(self.plain.rstrip())
        if end > begin:
            bounds.append((begin, end))
        sentences, at = [], 0
        for start, stop in bounds:
            first = at
            while at < len(self.starts) and self.starts[at] < stop:
                at += 1
            sentences.append(Sentence(start, stop, first, at))
        return sentences

    def _abbreviated(self, head: str, match: re.Match[str]) -> bool:
        after = self.plain[match.end() : match.end() + 1]
        if _ABBREVIATION.search(head):
            word = head.rstrip(".").rsplit(None, 1)[-1].strip("(")
            return after.isdigit() if word in ("fig", "figs", "no", "nos", "eq", "sec", "ch", "pp", "vol") else True
        # A single letter is an initial at the start of a sentence or behind another name: "C. elegans", "Michael K. Young".
        at = match.start() - 1
        if at < 0 or not self.plain[at].isupper() or (at > 0 and self.plain[at - 1].isalnum()):
            return False
        before = self.plain[max(0, at - 24) : at].rstrip()
        return not before or before.endswith((".", "!", "?")) or before.rsplit(None, 1)[-1][:1].isupper()

    def sentence_at(self, position: int) -> Sentence:
        """The sentence that holds a character."""
        found = self.sentences[0]
        for sentence in self.sentences:
            if sentence.start > position:
                break
            found = sentence
        return found

    def part(self, sentence: Sentence) -> str:
        return self.masked[sentence.start : sentence.end]


def _without_quotes(plain: str) -> str:
    if '"' not in plain and "'" not in plain:
        return plain

    def hide(match: re.Match[str]) -> str:
        inside = match.group()[1:-1]
        return match.group()[0] + MASK * len(inside) + match.group()[-1] if inside.strip() else match.group()

    text = _QUOTE.sub(hide, plain)
    return _SINGLE.sub(hide, text) if "'" in text else text


def _without_runs(low: str, ocr_trigrams: Collection[tuple[str, str, str]]) -> str:
    matches = list(WORD.finditer(low))
    words = [match.group() for match in matches]
    hits = [k for k, gram in enumerate(trigrams(words)) if gram in ocr_trigrams]
    if not hits:
        return low
    pieces, at, covered = [], 0, -1
    for k in hits:
        start, end = max(matches[k].start(), covered), matches[k + RUN - 1].end()
        pieces += [low[at:start], MASK * (end - start)]
        at = covered = end
    return "".join([*pieces, low[at:]])
