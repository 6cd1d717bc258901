"""The two models of the local tier: natural language inference and a sentence encoder, batched, on a GPU where there is one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from ad4edu_train.errors import UserError

# Pinned: a rating must not change because a repository did.
NLI = "MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli@6f5cf0a2b59cabb106aca4c287eed12e357e90eb"
ENCODER = "sentence-transformers/all-MiniLM-L6-v2@c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
BATCH_TOKENS = 8192  # tokens of a batch, padding included
MAX_TOKENS = 512
ENCODER_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model is: a folder, or a repository at a revision."""

    path: str
    revision: str | None

    @property
    def name(self) -> str:
        return f"{Path(self.path).name}@{self.revision[:8]}" if self.revision else Path(self.path).name


def source(given: str, option: str) -> Source:
    """A folder, or `owner/name@revision`. Raises UserError for a repository without a revision."""
    if Path(given).expanduser().is_dir():
        return Source(str(Path(given).expanduser()), None)
    path, _, revision = given.partition("@")
    if not revision or path.count("/") != 1:
        raise UserError(
            f"{option} {given}: no such folder, and no owner/name@revision. The revision is a commit, so that "
            f"ratings can be repeated."
        )
    return Source(path, revision)


def label_order(id2label: dict[int, str], name: str) -> tuple[int, int]:
    """(index of entailment, index of contradiction) of a three-way NLI head, from its own labels.

    Raises UserError where the labels do not say which is which (LABEL_0), or are not those of NLI.
    """
    labels = {str(label).strip().lower(): int(index) for index, label in id2label.items()}
    if set(labels) != {"entailment", "neutral", "contradiction"}:
        raise UserError(
            f"--nli-model {name}: its labels are {', '.join(sorted(map(str, id2label.values())))}; "
            f"entailment, neutral and contradiction are needed.\n"
            "Models differ in the order of the three, so it is read from id2label and never guessed: a wrong "
            "order would turn support into contradiction."
        )
    return labels["entailment"], labels["contradiction"]


class Inference:
    """Probabilities that a premise entails or contradicts a hypothesis."""

    def __init__(self, where: Source) -> None:
        config = _load(AutoConfig, where)
        self.name = where.name
        self.entailment, self.contradiction = label_order(config.id2label, where.path)
        self.tokenizer = _load(AutoTokenizer, where)
        self.model = _ready(_load(AutoModelForSequenceClassification, where))

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """(premise, hypothesis) pairs -> (pairs, 2): entailment and contradiction. Long premises are cut, hypotheses never before them."""
        result = np.zeros((len(pairs), 2))
        if not pairs:
            return result
        encoded = self.tokenizer(
            [one for one, _ in pairs], [two for _, two in pairs], truncation="longest_first", max_length=MAX_TOKENS
        )
        for rows in _batches(encoded["input_ids"]):
            with torch.inference_mode():
                logits = self.model(**_padded(self.tokenizer, encoded, rows, self.model.device)).logits.float()
            chosen = torch.softmax(logits, dim=-1)[:, [self.entailment, self.contradiction]]
            result[rows] = chosen.double().cpu().numpy()
        return result

    def chunks(self, text: str, tokens: int) -> list[str]:
        """Pieces of a text of at most so many tokens, cut between words."""
        words = text.split()
        pieces: list[str] = []
        counts = [len(ids) for ids in self.tokenizer(words, add_special_tokens=False)["input_ids"]] if words else []
        begin = total = 0
        for k, count in enumerate(counts):
            if total + count > tokens and k > begin:
                pieces.append(" ".join(words[begin:k]))
                begin, total = k, 0
            total += count
        return [*pieces, " ".join(words[begin:])] if words else []


class Encoder:
    """Sentence vectors of length 1: mean over tokens, as all-MiniLM-L6-v2 is trained (Reimers and Gurevych 2019, s. 3)."""

    def __init__(self, where: Source) -> None:
        self.name = where.name
        self.tokenizer = _load(AutoTokenizer, where)
        self.model = _ready(_load(AutoModel, where))

    def vectors(self, sentences: Sequence[str]) -> NDArray[np.float64]:
        """(sentences,) -> (sentences, width)."""
        width = self.model.config.hidden_size
        result = np.zeros((len(sentences), width))
        if not sentences:
            return result
        encoded = self.tokenizer(list(sentences), truncation=True, max_length=ENCODER_TOKENS)
        for rows in _batches(encoded["input_ids"]):
            inputs = _padded(self.tokenizer, encoded, rows, self.model.device)
            with torch.inference_mode():
                states = self.model(**inputs).last_hidden_state.float()
            mask = inputs["attention_mask"].unsqueeze(-1).float()
            means = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
            result[rows] = torch.nn.functional.normalize(means, dim=-1).double().cpu().numpy()
        return result


def _load(kind: Any, where: Source) -> Any:
    try:
        return kind.from_pretrained(where.path, **({"revision": where.revision} if where.revision else {}))
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        fetch = (
            f" Fetch it where there is a network: hf download {where.path} --revision {where.revision}."
            if where.revision
            else ""
        )
        raise UserError(f"The local tier cannot load {where.path}: {reason}{fetch}") from None


def _ready(model: Any) -> Any:
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def _batches(ids: list[list[int]]) -> list[list[int]]:
    """Row numbers in batches of like length, each of at most BATCH_TOKENS with padding."""
    order = sorted(range(len(ids)), key=lambda row: -len(ids[row]))
    batches: list[list[int]] = []
    for row in order:
        if batches and (len(batches[-1]) + 1) * len(ids[batches[-1][0]]) <= BATCH_TOKENS:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def _padded(tokenizer: Any, encoded: Any, rows: list[int], device: Any) -> dict[str, torch.Tensor]:
    part = {name: [encoded[name][row] for row in rows] for name in encoded}
    padded: dict[str, torch.Tensor] = tokenizer.pad(part, return_tensors="pt").to(device)
    return dict(padded)
