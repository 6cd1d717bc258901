"""From a composed Hydra config to a checked one: every bad key named at once, with its closest matches."""

from difflib import get_close_matches
from typing import Any

from omegaconf import DictConfig, OmegaConf
from pydantic import BaseModel, ValidationError

from ad4edu_train.errors import ConfigError, UserError


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
