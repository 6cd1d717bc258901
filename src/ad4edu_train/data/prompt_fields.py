"""The five labelled fields of a moment's text prompt."""

import re
from dataclasses import dataclass

LABELS = {
    "moment_type": "Moment type",
    "transcript": "Lecturer said",
    "ocr": "On-screen text (OCR)",
    "on_screen": "What is on screen",
    "pause": "Pause available",
}
_FIELD = re.compile(rf"^(?P<label>{'|'.join(map(re.escape, LABELS.values()))}):[ \t]?", re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NAMES = list(LABELS)
_ORDER = {label: order for order, label in enumerate(LABELS.values())}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFields:
    """What a prompt says about its moment. A field that the prompt lacks is None; an empty one is the empty string."""

    moment_type: str | None = None
    transcript: str | None = None
    ocr: str | None = None
    on_screen: str | None = None
    pause: str | None = None

    @property
    def pause_s(self) -> float | None:
        """Seconds available, None where the prompt gives no number."""
        number = _NUMBER.search(self.pause or "")
        return float(number.group()) if number else None


def parse_prompt(prompt: str) -> PromptFields:
    """Split a text prompt into its fields.

    A label counts where it opens a line. Values may run over several lines and may quote labels, so not every such line opens a
    field: the longest run of labels in the card's order is taken, the earliest line where several would do.
    """
    text = prompt.replace("\r\n", "\n")
    # chains[k]: the longest chain of label lines in order that ends with field k. Five fields, so one pass is linear.
    chains: list[tuple[re.Match[str], ...]] = [()] * len(_NAMES)
    for match in _FIELD.finditer(text):
        order = _ORDER[match["label"]]
        before = max(chains[:order], key=len, default=())
        if len(before) + 1 > len(chains[order]):
            chains[order] = (*before, match)
    chain = max(chains, key=len)
    ends = [match.start() for match in chain[1:]] + [len(text)]
    return PromptFields(
        **{_NAMES[_ORDER[match["label"]]]: text[match.end() : end].strip() for match, end in zip(chain, ends, strict=False)}
    )
