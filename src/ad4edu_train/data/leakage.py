"""Nothing of `test_human` may train. What test and train share is found while the training pairs stream past."""

from dataclasses import dataclass, field
from pathlib import Path

from ad4edu_train.data.fingerprints import Fingerprints, fingerprint, normalised
from ad4edu_train.data.problems import Problems
from ad4edu_train.data.rows import HumanPair, Pair

ADVICE = "\nThe evaluation would be measured on what was trained. Remove these pairs from the training data."
SHARED_MOMENT = "leak: the moment_id is in test_human" + ADVICE
SHARED_PROMPT_ID = "leak: the prompt_id is in test_human" + ADVICE
SHARED_PROMPT = "leak: the prompt is in test_human (case, white space and Unicode form aside)" + ADVICE
SHARED_AD = "leak: an AD with the same moment text is in test_human" + ADVICE
SHARED_PAIR = "leak: the pair_id is in test_human" + ADVICE


@dataclass
class LeakageGuard:
    """Fingerprints of the test set, and the training rows found to share one."""

    pair_ids: Fingerprints = field(default_factory=Fingerprints)
    moments: Fingerprints = field(default_factory=Fingerprints)
    prompt_ids: Fingerprints = field(default_factory=Fingerprints)
    prompts: Fingerprints = field(default_factory=Fingerprints)
    ads: Fingerprints = field(default_factory=Fingerprints)
    _last: tuple[str, int] = ("", 0)

    def learn(self, pair: HumanPair) -> None:
        self.pair_ids.add(fingerprint(pair.pair_id))
        self.moments.add(fingerprint(pair.moment_id))
        self.prompt_ids.add(fingerprint(pair.prompt_id))
        self.prompts.add(self._prompt(pair))
        for text_and_ad in _prompt_and_ads(pair):
            self.ads.add(text_and_ad)

    def check(self, pair: Pair, path: Path, row: int, problems: Problems) -> None:
        """Add each thing that a training pair shares with the test set to `problems`, the most telling one first."""
        shared = (
            (SHARED_PAIR, fingerprint(pair.pair_id) in self.pair_ids),
            (SHARED_MOMENT, fingerprint(pair.moment_id) in self.moments),
            (SHARED_PROMPT_ID, fingerprint(pair.prompt_id) in self.prompt_ids),
            (SHARED_PROMPT, self._prompt(pair) in self.prompts),
            (SHARED_AD, any(text_and_ad in self.ads for text_and_ad in _prompt_and_ads(pair))),
        )
        for kind, found in shared:
            if found:
                problems.add(path, kind, row, pair.pair_id)

    def _prompt(self, pair: Pair) -> int:
        # Pairs of a moment stand together, so the last prompt is asked for again and again.
        if pair.prompt != self._last[0]:
            self._last = (pair.prompt, fingerprint(normalised(pair.prompt)))
        return self._last[1]


def _prompt_and_ads(pair: Pair) -> tuple[int, int]:
    # The moment's text without its first line: the same moment may be prompted once per type.
    moment_text = normalised(pair.prompt.partition("\n")[2] or pair.prompt)
    return tuple(fingerprint(moment_text, normalised(side.ad)) for side in (pair.first, pair.second))  # type: ignore[return-value]
