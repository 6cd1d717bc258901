"""Settings: what is allowed (schema), and how a composed config is checked against it (reading)."""

from ad4edu_train.config.reading import keys_of, parse, refuse_multirun, refuse_unknown_overrides, to_plain
from ad4edu_train.config.schema import (
    Data,
    Distributed,
    Dpo,
    EvaluateConfig,
    Hub,
    LabelNoise,
    Lora,
    Model,
    Tracker,
    TrainConfig,
    Trainer,
)

__all__ = [
    "Data",
    "Distributed",
    "Dpo",
    "EvaluateConfig",
    "Hub",
    "LabelNoise",
    "Lora",
    "Model",
    "Tracker",
    "TrainConfig",
    "Trainer",
    "keys_of",
    "parse",
    "refuse_multirun",
    "refuse_unknown_overrides",
    "to_plain",
]
