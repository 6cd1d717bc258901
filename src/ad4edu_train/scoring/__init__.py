"""ADEduEval: how far an audio description keeps the standard for lecture descriptions. Compliance is not quality.

`score`, `score_many` and `score_sequence` are the library; `eval/adedueval.py` is the command.
"""

from ad4edu_train.scoring.moment import Moment, moment_from, moment_of_prompt
from ad4edu_train.scoring.scorer import Finding, Score, SequenceScore, score, score_many, score_sequence
from ad4edu_train.scoring.standard import Standard, load_standard

__all__ = [
    "Finding",
    "Moment",
    "Score",
    "SequenceScore",
    "Standard",
    "load_standard",
    "moment_from",
    "moment_of_prompt",
    "score",
    "score_many",
    "score_sequence",
]
