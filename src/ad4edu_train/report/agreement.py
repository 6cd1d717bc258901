"""agreement.json as Markdown. Computes nothing but the printed form of counts."""

import json
from pathlib import Path
from typing import Any

from ad4edu_train.stats.intervals import on_card
from ad4edu_train.writing import write_text

COLUMNS = ("stratum", "predictor", "pairs", "moments", "directed", "ties", "agree on decided", "agree, ties = fail")
CHANCE = "chance (expected)"
SYNTHETIC = "**SYNTHETIC DATA with synthetic raters: no figure below speaks of people.**"
READING = (
    "Agreement with human_winner, the majority of the BLV raters who decided. Directed pairs have a winner; pairs without one are in no "
    "denominator. Ties and abstentions are the predictor's. Intervals are 95 % Wilson on pairs; pairs of a moment share their material, "
    "so they are somewhat too narrow. A base model's implicit reward is 0 by definition, so its log-prob stands for it. Shuffled "
    "prompts: each moment's ADs are asked under another moment's prompt. AD-only classifier: surface features, fitted on train_prefs, "
    "no prompt."
)


def write_markdown(folder: Path) -> None:
    """agreement.md beside the agreement.json of a folder."""
    write_text(folder / "agreement.md", markdown(json.loads((folder / "agreement.json").read_text())))


def markdown(result: dict[str, Any]) -> str:
    """The report: what is compared, then natural strata, controlled pairs by axis, moment types, and the mixture last."""
    lines = ["# Agreement with human labels", ""]
    if result["synthetic_data"]:
        lines += [SYNTHETIC, ""]
    lines += [
        f"Compared: {', '.join(result['checkpoints'])}, on {result['pairs']} pairs of {result['moments']} moments in "
        f"{result['lectures']} lectures; {result['labelled_pairs']} pairs have a human winner.",
        "",
        READING,
        "",
        *(f"- Note: {note}" for note in result["notes"]),
    ]
    for block in dict.fromkeys(row["block"] for row in result["rows"]):
        lines += ["", f"## {block[0].upper()}{block[1:]}", ""]
        lines += ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
        for stratum, rows in strata_of(result, block).items():
            lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
            lines += [f"| {stratum} | {CHANCE} | | | | | 50.0% | 50.0% |"]
    digests = "".join(f"\n- `{name}` {digest}" for name, digest in sorted(result["data_sha256"].items()))
    return "\n".join([*lines, "", f"## Data (sha256)\n{digests}", ""])


def strata_of(result: dict[str, Any], block: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of a block, by stratum, in the report's order."""
    strata: dict[str, list[dict[str, Any]]] = {}
    for row in result["rows"]:
        if row["block"] == block:
            strata.setdefault(row["stratum"], []).append(row)
    return strata


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table, every cell as text."""
    decided = row["directed"] - row["ties"] - row["abstained"]
    counts = (str(row[name]) for name in ("pairs", "moments", "directed", "ties"))
    return (row["stratum"], row["predictor"], *counts, on_card(row["agree"], decided), on_card(row["agree"], row["directed"]))
