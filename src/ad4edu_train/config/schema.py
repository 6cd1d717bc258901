"""The settings of every step. The YAML files in configs/ hold every default; this module holds what is allowed.

Unknown keys at any depth, missing values, wrong types, numbers out of range and options that the chosen loss would ignore are
refused before anything is loaded.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

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
    quantization_storage: Literal["uint8", "bfloat16", "float32"]
    thinking: bool

    @model_validator(mode="after")
    def _merge_is_exact(self) -> Self:
        if self.adapter and self.quantization != "none":
            raise ValueError(
                "adapter cannot be merged into 4-bit weights without loss. Give it as lora.start (training goes on from it, "
                "dpo.reference=start keeps a frozen copy as the reference), or set quantization=none"
            )
        return self


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
    max_pixels: Count
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


class LabelNoise(Group):
    method: Literal["none", "cdpo", "rdpo"]
    construction: Annotated[float, Field(ge=0, lt=0.5)]
    judge: Annotated[float, Field(ge=0, lt=0.5)]


class Dpo(Group):
    loss: list[Literal[LOSSES]]  # type: ignore[valid-type]
    loss_weights: list[Positive] | None
    beta: Positive
    reference: Literal["start", "base"]
    label_smoothing: Annotated[float, Field(ge=0, le=0.5)]
    ld_alpha: Annotated[float, Field(ge=0, le=1)] | None
    f_divergence: Literal["reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"]
    f_alpha: Positive | None
    discopop_tau: Positive | None
    weighting: bool
    label_noise: LabelNoise

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
        if self.label_noise.method != "none" and self.loss != ["sigmoid"]:
            raise ValueError(
                f"label_noise.method={self.label_noise.method} is defined for loss [sigmoid] alone, not {self.loss}"
            )
        if self.label_noise.method != "none" and (self.ld_alpha is not None or self.f_divergence != "reverse_kl"):
            raise ValueError(f"label_noise.method={self.label_noise.method} needs ld_alpha=null and f_divergence=reverse_kl")
        if self.weighting and losses & {"aot", "aot_unpaired"}:
            raise ValueError("weighting is not defined for aot and aot_unpaired, which sort the pairs")
        return self


class Lora(Group):
    r: Count
    alpha: Positive
    dropout: Share
    targets: list[str]
    vision_targets: list[str]
    start: str | None
    dtype: Literal["float32", "bfloat16"]


class Trainer(Group):
    output_root: str
    seed: Annotated[int, Field(ge=0)]
    optimizer: Literal["adamw", "adamw_8bit", "paged_adamw_8bit"]
    learning_rate: Positive
    scheduler: Literal["linear", "cosine", "constant", "constant_with_warmup"]
    warmup_steps: Annotated[int, Field(ge=0)]
    weight_decay: Annotated[float, Field(ge=0)]
    max_grad_norm: Positive
    epochs: Positive
    max_steps: Count | None
    extend_to: Count | None
    batch_size: Count
    accumulation: Count
    precision: Literal["fp32", "bf16"]
    gradient_checkpointing: bool
    layout: Literal["moment_tree", "stock"]
    layout_check: bool
    max_batch_tokens: Count | None
    precompute_reference: bool
    disable_dropout: bool
    log_every: Count
    validate_every: Count | None
    save_every: Count
    keep_checkpoints: Count
    stall_steps: Count
    threads: Count | None
    num_workers: Annotated[int, Field(ge=0)]


class Distributed(Group):
    kind: Literal["none", "ddp", "fsdp2", "deepspeed"]
    wrap: list[str] | None
    offload: bool
    zero_stage: Literal[2, 3] | None

    @model_validator(mode="after")
    def _nothing_ignored(self) -> Self:
        if (self.kind == "deepspeed") != (self.zero_stage is not None):
            raise ValueError("zero_stage belongs to kind=deepspeed: give both or neither")
        if self.wrap is not None and self.kind != "fsdp2":
            raise ValueError(f"wrap would be ignored: only kind=fsdp2 wraps layers, not {self.kind}")
        if self.offload and self.kind in ("none", "ddp"):
            raise ValueError(f"offload would be ignored: kind={self.kind} keeps every weight on its device")
        return self


class Tracker(Group):
    name: Literal["none", "tensorboard", "wandb"]
    project: Annotated[str, Field(pattern=r"^[\w.-]{1,128}$")] | None
    mode: Literal["offline", "online"] | None

    @model_validator(mode="after")
    def _belongs_to_wandb(self) -> Self:
        if {self.name == "wandb"} != {self.project is not None, self.mode is not None}:
            raise ValueError("project and mode belong to wandb, which needs both: choose it with tracker=wandb")
        return self


class Hub(Group):
    repo_id: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")] | None
    i_accept_that_this_uploads_weights: bool

    @model_validator(mode="after")
    def _is_accepted(self) -> Self:
        if (self.repo_id is not None) != self.i_accept_that_this_uploads_weights:
            raise ValueError(
                "an upload needs both repo_id=OWNER/NAME and i_accept_that_this_uploads_weights=true: the adapter is sent to a private "
                "repository of the hub, and the data set's card forbids redistribution of what derives from the data"
            )
        return self


class TrainConfig(Group):
    """Everything `train_dpo.py` reads, one group a concern."""

    experiment_name: str
    dry_run: bool
    model: Model
    data: Data
    dpo: Dpo
    lora: Lora
    trainer: Trainer
    distributed: Distributed
    tracker: Tracker
    hub: Hub

    @model_validator(mode="after")
    def _reference_is_one(self) -> Self:
        if self.dpo.reference == "base" and self.lora.start is None:
            raise ValueError(
                "dpo.reference=base needs lora.start: without a starting adapter the model training starts from is the base already. "
                "Use dpo.reference=start"
            )
        return self

    @model_validator(mode="after")
    def _sharding_works(self) -> Self:
        sharded = self.distributed.kind in ("fsdp2", "deepspeed")
        if sharded and self.lora.start is not None and self.dpo.reference == "start":
            raise ValueError(
                f"lora.start with dpo.reference=start does not go with distributed.kind={self.distributed.kind}: a run that is stopped "
                "would go on from the frozen copy in place of what was trained. Merge the adapter (model.adapter), or use distributed=ddp"
            )
        if (
            self.distributed.kind == "fsdp2"
            and self.model.quantization == "nf4"
            and self.model.quantization_storage != self.model.dtype
        ):
            raise ValueError(
                f"model.quantization_storage={self.model.quantization_storage} is not sharded by FSDP2: give it the type of model.dtype "
                f"({self.model.dtype}), then 4-bit weights are packed in it and sharded like all others"
            )
        return self

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        whole = (self.model.dtype, self.trainer.precision) == ("float32", "fp32")
        if self.trainer.precompute_reference and self.trainer.layout == "stock" and not whole:
            raise ValueError(
                "trainer.precompute_reference=true with trainer.layout=stock needs model.dtype=float32 and trainer.precision=fp32: in "
                "bfloat16, log-probs computed beforehand in another layout differ from the policy's by up to half a nat a pair at step 0"
            )
        if self.dpo.label_noise.method != "none" and not self.trainer.precompute_reference:
            raise ValueError("dpo.label_noise needs trainer.precompute_reference=true: its term reads the reference log-probs")
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
