"""Within-lecture novelty, and the sequence rule: what a system's descriptions of one lecture say again, and rename."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from ad4edu_train.scoring.checks.phrases import Hit
from ad4edu_train.scoring.moment import Moment
from ad4edu_train.scoring.text import Text, trigrams, words_of
from ad4edu_train.scoring.words import words

# Names for one thing of every lecture; the word used first in a sequence is the one to keep.
ONE_THING = (
    words("cursor pointer mouse"),
    words("lecturer professor presenter speaker instructor teacher"),
    words("graph chart plot"),
    words("photo photograph picture"),
)


def grams(ad: str) -> frozenset[tuple[str, ...]]:
    """Word trigrams of a description; one gram of all its words where it has fewer than three."""
    words = words_of(ad)
    return frozenset(trigrams(words)) if len(words) >= 3 else frozenset([tuple(words)] if words else [])


def novelties(ads: Sequence[str]) -> list[float]:
    """Novelty of each description of a sequence, in its order: 1 - the largest share of its grams that one earlier one holds.

    1 for the first. Cost follows the number of shared grams, not the square of the sequence, unless everything repeats.
    """
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    result = []
    for index, ad in enumerate(ads):
        own = grams(ad)
        shared = Counter(earlier for gram in own for earlier in holders.get(gram, ()))
        result.append(1 - max(shared.values(), default=0) / len(own) if own else 1.0)
        for gram in own:
            holders[gram].append(index)
    return result


def renamed(texts: Sequence[Text], moments: Sequence[Moment]) -> list[Hit | None]:
    """T11 over a sequence: the first word in each description that renames a thing named otherwise before, None where none does."""
    first: dict[int, str] = {}
    found: list[Hit | None] = []
    for text, moment in zip(texts, moments, strict=True):
        hit = None
        for k, word in enumerate(text.words):
            for group, names in enumerate(ONE_THING):
                if word not in names or word in moment.words:
                    continue
                if first.setdefault(group, word) != word and hit is None:
                    hit = Hit(text.starts[k], text.ends[k])
        found.append(hit)
    return found
