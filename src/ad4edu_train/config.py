"""The settings of a training run. The YAML files in configs/ hold every default; this module holds what is allowed.

Unknown keys at any depth, missing values, wrong types, numbers out of range and options that the chosen loss would ignore are
refused before anything is loaded.
"""

from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self

from omegaconf import DictConfig, OmegaConf
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ad4edu_train.errors import ConfigError, UserError

LOSSES = (
    "sigmoid", "hinge", "ipo", "exo_pair", "nca_pair", "robust", "bco_pair", "sppo_hard", "aot", "aot_unpaired", "apo_zero",
    "apo_down", "discopop", "sft", "sigmoid_norm",
)  # fmt: skip
SMOOTHED_LOSSES = {"robust", "exo_pair", "aot", "aot_unpaired"}
F_DIVERGENCE_LOSSES = {"sigmoid", "sigmoid_norm", "hinge", "ipo", "exo_pair", "robust", "discopop", "sft"}

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1)]


class Group(BaseModel):
    """A config group: keyword-only, frozen, strict types, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Model(Group):
    path: str
    revision: str | None
    adapter: str | None
    dtype: Literal["float32", "bfloat16"]
    attention: Literal["sdpa", "eager", "flash_attention_2"]
    quantization: Literal["none", "nf4"]
    thinking: bool


class Data(Group):
    root: str | None
    revision: str | None
    train: str | None
    test_human: str | None
    candidates: str | None
    prompts: str | None
    human_val: str | None
    gold: str | None
    cursor_capability: str | None
    subjects: str | None
    moment_order: str | None
    keyframes: str | None
    sft: str | None
    demo_moments: Count
    demo_seed: int
    prompt_view: Literal["text", "keyframe"]
    prefix_mismatch: Literal["refuse", "append"]
    on_bad_row: Literal["refuse", "drop"]
    exclude_subjects: list[str]
    validation_fraction: Share
    validation_by: Literal["moment", "lecture"]
    max_train_pairs: Count | None
    max_tokens: Count
    too_long: Literal["refuse", "drop"]

    @model_validator(mode="after")
    def _has_pairs(self) -> Self:
        if not self.root and not self.train:
            raise ValueError("needs data.root (a folder or a hub id) or data.train (a file)")
        return self


class Dpo(Group):
    loss: list[Literal[LOSSES]]  # type: ignore[valid-type]
    loss_weights: list[Positive] | None
    beta: Positive
    label_smoothing: Annotated[float, Field(ge=0, le=0.5)]
    ld_alpha: Annotated[float, Field(ge=0, le=1)] | None
    f_divergence: Literal["reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"]
    f_alpha: Positive | None
    discopop_tau: Positive | None
    weighting: bool

    @model_validator(mode="after")
    def _nothing_ignored(self) -> Self:
        losses = set(self.loss)
        if not losses:
            raise ValueError("needs at least one loss")
        if self.loss_weights is not None and len(self.loss_weights) != len(self.loss):
            raise ValueError(f"loss_weights has {len(self.loss_weights)} values for {len(self.loss)} losses")
        if self.label_smoothing and not losses & SMOOTHED_LOSSES:
            raise ValueError(
                f"label_smoothing={self.label_smoothing} would be ignored: loss {self.loss} has none. "
                f"Set it to 0, or use one of {', '.join(sorted(SMOOTHED_LOSSES))}"
            )
        if "robust" in losses and self.label_smoothing == 0.5:
            raise ValueError("label_smoothing=0.5 with loss robust divides by zero (1 - 2 x 0.5); use less than 0.5")
        if "exo_pair" in losses and self.label_smoothing == 0:
            raise ValueError("loss exo_pair needs label_smoothing above 0; its paper recommends 1e-3")
        if self.f_divergence != "reverse_kl" and not losses <= F_DIVERGENCE_LOSSES:
            raise ValueError(f"f_divergence={self.f_divergence} is not defined for {sorted(losses - F_DIVERGENCE_LOSSES)}")
        if (self.f_divergence == "alpha_divergence") != (self.f_alpha is not None):
            raise ValueError("f_alpha belongs to f_divergence=alpha_divergence: give both or neither")
        if ("discopop" in losses) != (self.discopop_tau is not None):
            raise ValueError("discopop_tau belongs to loss discopop: give both or neither")
        if self.weighting and losses & {"aot", "aot_unpaired"}:
            raise ValueError("weighting is not defined for aot and aot_unpaired, which sort the pairs")
        return self


class Lora(Group):
    r: Count
    alpha: Positive
    dropout: Share
    targets: list[str]
    dtype: Literal["float32", "bfloat16"]


class Trainer(Group):
    output_root: str
    seed: Annotated[int, Field(ge=0)]
    learning_rate: Positive
    scheduler: Literal["linear", "cosine", "constant", "constant_with_warmup"]
    warmup_steps: Annotated[int, Field(ge=0)]
    weight_decay: Annotated[float, Field(ge=0)]
    max_grad_norm: Positive
    epochs: Positive
    max_steps: Count | None
    batch_size: Count
    accumulation: Count
    precision: Literal["fp32", "bf16"]
    gradient_checkpointing: bool
    layout: Literal["moment_tree", "stock"]
    precompute_reference: bool
    disable_dropout: bool
    log_every: Count
    validate_every: Count | None
    save_every: Count
    keep_checkpoints: Count
    stall_steps: Count
    threads: Count | None


class Tracker(Group):
    name: Literal["none"]


class TrainConfig(Group):
    """Everything `train_dpo.py` reads, one group a concern."""

    experiment_name: str
    dry_run: bool
    model: Model
    data: Data
    dpo: Dpo
    lora: Lora
    trainer: Trainer
    tracker: Tracker

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.trainer.precompute_reference and (self.model.dtype, self.trainer.precision) != ("float32", "fp32"):
            raise ValueError(
                "trainer.precompute_reference=true needs model.dtype=float32 and trainer.precision=fp32: in bfloat16, log-probs computed "
                "beforehand differ from the policy's by up to half a nat a pair at step 0"
            )
        if self.trainer.layout == "moment_tree" and not self.trainer.precompute_reference:
            raise ValueError(
                "trainer.layout=moment_tree needs trainer.precompute_reference=true: the reference is looked up, not run"
            )
        if self.trainer.layout == "moment_tree" and not self.trainer.disable_dropout:
            raise ValueError(
                "trainer.layout=moment_tree needs trainer.disable_dropout=true: branches share one run of the prompt"
            )
        if self.lora.dropout and self.trainer.disable_dropout:
            raise ValueError(
                f"lora.dropout={self.lora.dropout} would be ignored: trainer.disable_dropout is true. Set one of them to 0 or false"
            )
        return self


class EvaluateConfig(Group):
    """Everything `eval/human_agreement.py` reads. `model` and `data` are those of training."""

    checkpoints: list[str]
    out: str | None
    model: Model
    data: Data
    seed: Annotated[int, Field(ge=0)]
    threads: Count | None


def to_plain(raw: DictConfig) -> dict[str, Any]:
    """Plain values of a composed config. Raises UserError that names each value still missing (`???`)."""
    missing = sorted(OmegaConf.missing_keys(raw))
    if missing:
        raise UserError("the settings lack values:\n" + "\n".join(f"  {key}: give it as {key}=..." for key in missing))
    return OmegaConf.to_container(raw, resolve=True)  # type: ignore[return-value]


def refuse_multirun(arguments: list[str]) -> None:
    """Hydra's --multirun would train one setting after another in one process; sweeps are separate jobs here."""
    if {"-m", "--multirun"} & set(arguments):
        raise UserError(
            "--multirun is off: one process per setting keeps memory, seeds and failures apart. Run one command a setting "
            "(`for beta in 0.05 0.1 0.3; do python train_dpo.py dpo.beta=$beta; done`), or submit them to a cluster as one sweep "
            "with slurm/submit.py (sweep: dpo.beta=0.05,0.1,0.3)."
        )


def parse(schema: type[BaseModel], raw: dict[str, Any]) -> Any:
    """A checked config from plain values. Raises UserError that names every bad key at once."""
    try:
        return schema.model_validate(raw)
    except ValidationError as error:
        lines = [_sentence(schema, problem) for problem in error.errors()]
        raise UserError("the settings cannot be used:\n  " + "\n  ".join(lines)) from None


def refuse_unknown_overrides(schema: type[BaseModel], arguments: list[str]) -> None:
    """Name a mistyped key of the command line with its closest matches, before Hydra composes anything."""
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if argument.startswith("-") or not equals:
            continue
        bare = key.lstrip("+~")
        if bare.startswith("hydra") or bare == "experiment" or _knows(schema, bare):
            continue
        raise ConfigError(bare, value, f"a known key. {_suggest(schema, bare)}")


def keys_of(schema: type[BaseModel], prefix: str = "") -> list[str]:
    """Every dotted key of a schema, groups included."""
    keys = []
    for name, field in schema.model_fields.items():
        keys.append(prefix + name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += keys_of(field.annotation, f"{prefix}{name}.")
    return keys


def _knows(schema: type[BaseModel], key: str) -> bool:
    return key in keys_of(schema)


def _suggest(schema: type[BaseModel], key: str) -> str:
    keys = keys_of(schema)
    last = key.rpartition(".")[2]
    close = get_close_matches(key, keys, n=3, cutoff=0.6)
    close += [
        known for known in keys if get_close_matches(last, [known.rpartition(".")[2]], cutoff=0.75) and known not in close
    ]
    return f"Did you mean {' or '.join(close[:3])}?" if close else "See `python train_dpo.py --cfg job` for all keys"


def _sentence(schema: type[BaseModel], problem: Any) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"{key}: unknown key. {_suggest(schema, key)}"
    if problem["type"] == "missing":
        return f"{key}: missing"
    if problem["type"] == "value_error":
        return f"{key}: {message}" if key else message
    return f"{key}={problem['input']!r}: {message[0].lower()}{message[1:]}"
