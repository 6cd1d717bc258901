"""Validation pair by pair: log-probs of both sides under policy and reference, the same for any batch size."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ad4edu_train.policy.chat import Rendered
from ad4edu_train.policy.log_probs import LogProb, score_all
from ad4edu_train.training import processes
from ad4edu_train.training.preflight import RenderedPair
from ad4edu_train.training.reference import as_reference

if TYPE_CHECKING:
    from ad4edu_train.policy.vision import Vision


@dataclass(frozen=True, kw_only=True)
class ValidationRow:
    """A row of validation.jsonl. Log-probs are sums in nats, end token included; `margin` is the reward margin beta x (...)."""

    step: int
    pair_id: str
    moment_id: str
    axis: str
    label_source: str | None
    chosen_log_prob: float
    rejected_log_prob: float
    reference_chosen_log_prob: float
    reference_rejected_log_prob: float
    chosen_tokens: int
    rejected_tokens: int
    margin: float


@dataclass(frozen=True, kw_only=True)
class ValidationSummary:
    """Means over pairs of one axis or label source. Ties (margin exactly 0) are neither right nor wrong."""

    pairs: int
    right: int
    ties: int
    margin: float
    chosen_log_prob_change: float


def reference_scores(
    model: Any,
    sides: list[Rendered],
    tick: Callable[[int], object] = lambda done: None,
    *,
    vision: "Vision | None" = None,
) -> dict[Rendered, LogProb]:
    """Log-probs under the reference: the model with its adapter switched off, or with the one it started from."""
    with _evaluating(model), as_reference(model):
        return _scores(model, sides, tick, vision)


def sides_of(pairs: list[RenderedPair]) -> list[Rendered]:
    return [side for item in pairs for side in (item.first, item.second)]


def validate(
    model: Any,
    pairs: list[RenderedPair],
    reference: dict[Rendered, LogProb],
    *,
    beta: float,
    step: int,
    tick: Callable[[int], object] = lambda done: None,
    vision: "Vision | None" = None,
) -> list[ValidationRow]:
    """One row a pair, whatever the batch size and the number of processes."""
    with _evaluating(model):
        policy = _scores(model, sides_of(pairs), tick, vision)
    rows = []
    for item in pairs:
        chosen, rejected = policy[item.first], policy[item.second]
        ref_chosen, ref_rejected = reference[item.first], reference[item.second]
        rows.append(
            ValidationRow(
                step=step,
                pair_id=item.pair.pair_id,
                moment_id=item.pair.moment_id,
                axis=item.pair.axis,
                label_source=item.pair.label_source,
                chosen_log_prob=chosen.total,
                rejected_log_prob=rejected.total,
                reference_chosen_log_prob=ref_chosen.total,
                reference_rejected_log_prob=ref_rejected.total,
                chosen_tokens=chosen.tokens,
                rejected_tokens=rejected.tokens,
                margin=beta * ((chosen.total - ref_chosen.total) - (rejected.total - ref_rejected.total)),
            )
        )
    return rows


def summarise(rows: list[ValidationRow]) -> dict[str, ValidationSummary]:
    """By axis, then by label source, then all. A falling chosen log-prob is likelihood displacement (Razin et al. 2024)."""
    groups: dict[str, list[ValidationRow]] = {}
    for row in rows:
        groups.setdefault(f"axis {row.axis}", []).append(row)
    for row in rows:
        groups.setdefault(f"label source {row.label_source}", []).append(row)
    groups["all"] = rows
    return {name: _summary(members) for name, members in groups.items() if members}


def as_rows(rows: list[ValidationRow]) -> list[dict]:
    return [asdict(row) for row in rows]


def _summary(rows: list[ValidationRow]) -> ValidationSummary:
    return ValidationSummary(
        pairs=len(rows),
        right=sum(row.margin > 0 for row in rows),
        ties=sum(row.margin == 0 for row in rows),
        margin=sum(row.margin for row in rows) / len(rows),
        chosen_log_prob_change=sum(row.chosen_log_prob - row.reference_chosen_log_prob for row in rows) / len(rows),
    )


def _scores(
    model: Any, sides: list[Rendered], tick: Callable[[int], object], vision: "Vision | None"
) -> dict[Rendered, LogProb]:
    return score_all(model, sides, tick, vision=vision, rank=processes.rank(), ranks=processes.ranks())


@contextlib.contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """The model in evaluation mode, and back in the mode it was in."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
