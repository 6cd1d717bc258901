"""The rating columns of a demo corpus: what the project's scorer gives the finished texts. Nothing else here knows the scorer."""

from ad4edu_train.demo.corpus import Corpus
from ad4edu_train.scoring import load_standard, moment_of_prompt, score
from ad4edu_train.scoring.scorer import scorer_id
from ad4edu_train.scoring.shipped import COLUMN


def rate(corpus: Corpus) -> None:
    """Fills the rating columns as the card does: the mechanical tier on each side by itself.

    Reads what a user of the folder reads (prompt, description, cursor capability) and none of the generator's facts.
    """
    for row in (*corpus.train, *corpus.test, *corpus.candidates):
        moment = moment_of_prompt(row["prompt"], cursor=corpus.cursor[row["lecture"]])
        for side in ("option_a", "option_b") if "option_a" in row else ("chosen", "rejected"):
            rated = score(row[side][-1]["content"], moment)
            row[f"{side}-rating"], row[f"{side}-components"] = rated.rating, rated.components


def provenance() -> dict[str, str]:
    """Metadata of a Parquet file that ships these ratings."""
    standard = load_standard()
    return {COLUMN: scorer_id(standard, "mech"), "rules_sha256": standard.sha256}
