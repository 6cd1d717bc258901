"""The mapping of other people's labels: a small YAML file that says which columns of a file of pairs hold what.

Every key but `file` and `raters` optional (docs/method.md has two whole ones):

    file: testset.json              # JSONL, JSON (an array of objects), CSV, TSV or Parquet; relative to the mapping
    pair_id: idx                    # column; without it the row number
    cluster: [instruction, input]   # pairs with equal values are one cluster; without it each pair is its own
    first: response1                # texts of the two sides, for length
    second: response2
    labels: {first: [1], second: [2], tie: [0], unparsed: [garbage]}
    raters: {annotator1: annotator1, annotator2: annotator2}
    judges:
      gpt-3.5: {file: gpt.json, column: gpt_result, labels: {first: ["1"], second: ["2"], tie: [Tie]}}
      gpt-4: {column: verdict, swapped: verdict_swapped, swapped_says: position}

A column is a key of the row, or a path into it with dots (`results.0.winner`).
"""

from collections import Counter
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ad4edu_train.data.rows import RowError, shown
from ad4edu_train.errors import DataError

Vote = Literal["first", "second", "tie", "unparsed"]


class Vocabulary(BaseModel):
    """Which values of a column mean what. Null and empty are no vote; any other value not listed here is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    first: list[str | int | float | bool] = Field(min_length=1)
    second: list[str | int | float | bool] = Field(min_length=1)
    tie: list[str | int | float | bool] = []
    unparsed: list[str | int | float | bool] = []

    @model_validator(mode="after")
    def _each_value_once(self) -> "Vocabulary":
        repeated = [name for name, times in Counter(label_text(value) for value in self._values()).items() if times > 1]
        if repeated:
            raise ValueError(f"{', '.join(map(repr, repeated))} stands in the vocabulary twice (1, 1.0 and '1' are one value)")
        return self

    def _values(self) -> list[Any]:
        return [*self.first, *self.second, *self.tie, *self.unparsed]

    def meanings(self) -> dict[str, Vote]:
        named: list[tuple[Vote, list[Any]]] = [
            ("first", self.first),
            ("second", self.second),
            ("tie", self.tie),
            ("unparsed", self.unparsed),
        ]
        return {label_text(value): vote for vote, values in named for value in values}


class Voter(BaseModel):
    """A rater or judge: the column of its verdicts, in a file of its own where `file` is given (joined on pair_id).

    `swapped` is the column of a second verdict, asked with the sides in the other order. Its values name the side itself
    (swapped_says: side), or the place it stood in then (swapped_says: position).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    column: str
    file: str | None = None
    pair_id: str | None = None
    labels: Vocabulary | None = None
    swapped: str | None = None
    swapped_says: Literal["side", "position"] = "side"


class Mapping(BaseModel):
    """The schema of a mapping file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    file: str
    pair_id: str | None = None
    cluster: list[str] = []
    first: str | None = None
    second: str | None = None
    labels: Vocabulary | None = None
    raters: dict[str, Voter] = Field(min_length=1)
    judges: dict[str, Voter] = {}

    @field_validator("cluster", mode="before")
    @classmethod
    def _one_column_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("raters", "judges", mode="before")
    @classmethod
    def _column_names_are_voters(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {str(name): {"column": voter} if isinstance(voter, str) else voter for name, voter in value.items()}

    @model_validator(mode="after")
    def _fits_together(self) -> "Mapping":
        both = sorted(set(self.raters) & set(self.judges))
        if both:
            raise ValueError(f"{', '.join(both)}: a rater and a judge need different names")
        if any(voter.swapped for voter in self.raters.values()):
            raise ValueError("a rater has a `swapped` column: only judges are asked in both orders")
        for name, voter in self.voters().items():
            if voter.labels is None and self.labels is None:
                raise ValueError(f"{name} has no `labels`, and there are none for all")
            if voter.file and not (voter.pair_id or self.pair_id):
                raise ValueError(f"{name} has a file of its own, so `pair_id` must name the column to join on")
        return self

    def voters(self) -> dict[str, Voter]:
        return self.raters | self.judges

    def meanings(self, voter: Voter) -> dict[str, Vote]:
        """Value (as `label_text`) -> vote, of the voter's own vocabulary or the one for all."""
        vocabulary = voter.labels or self.labels
        return vocabulary.meanings() if vocabulary else {}


def read_mapping(path: Path) -> Mapping:
    """The mapping of a YAML file. Raises DataError that names each key that is wrong."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(content, dict):
        raise DataError(f"{path} is no mapping of keys; it needs at least `file`, `labels` and `raters`.")
    try:
        return Mapping.model_validate(content)
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, one['loc'])) or 'mapping'}: {one['msg']}" for one in error.errors()]
        raise DataError(
            "\n".join([f"{path} is no mapping of labels:", *lines, "See docs/method.md for two examples."])
        ) from None


def label_text(value: Any) -> str:
    """A label or id as text, so that 1, 1.0 (an integer column with gaps) and "1" are one value; null is empty."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise RowError(f"{shown(value)} is neither text nor a number")
