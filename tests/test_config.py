"""Configs: every key explained, every mistake refused by name (fault openmhc-14 and its kind)."""

import re
import subprocess
import sys

import pytest
import yaml

from ad4edu_train.config import EvaluateConfig, TrainConfig, keys_of, refuse_unknown_overrides
from ad4edu_train.errors import ConfigError, UserError
from tests.conftest import ROOT

GROUPS = ("model", "data", "dpo", "lora", "trainer", "distributed", "tracker")
EXPERIMENTS = sorted(path.stem for path in (ROOT / "configs" / "experiment").glob("*.yaml"))
FILES = [path for group in GROUPS for path in sorted((ROOT / "configs" / group).glob("*.yaml"))]


def script(name: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, name, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def flat(values: dict, prefix: str) -> set[str]:
    """Dotted keys of a config file, groups within it included."""
    keys = set()
    for key, value in values.items():
        keys |= {f"{prefix}.{key}"} | (flat(value, f"{prefix}.{key}") if isinstance(value, dict) else set())
    return keys


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_key_of_every_group_has_a_comment_and_is_in_the_schema(path):
    known = {key for key in keys_of(TrainConfig) if key.startswith(f"{path.parent.name}.")}
    values = yaml.safe_load(path.read_text())
    values.pop("defaults", None)
    assert flat(values, path.parent.name) <= known
    if "defaults:" not in path.read_text():
        assert flat(values, path.parent.name) == known
        for line in path.read_text().splitlines():
            assert not re.match(r"\s*[a-z_]+:", line) or re.search(r"\s# \S", line), line


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_composes_into_the_schema(compose, experiment):
    given = {
        "complete": ["model.adapter=sft", "data.sft=sft.parquet", "data.subjects=subjects.json"],
    }
    config = compose(TrainConfig, "train", f"experiment={experiment}", *given.get(experiment, []))
    assert config.experiment_name == experiment.replace("_", "-")


def test_presets_state_size_licence_and_memory():
    for name in EXPERIMENTS:
        if name not in ("demo", "debug", "debug_vlm"):
            text = (ROOT / "configs" / "experiment" / f"{name}.yaml").read_text()
            assert re.search(r"[\d.]+ B parameters, Apache-2.0; one \d+ GB GPU", text), name


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("dpo.beta=-1", r"dpo\.beta=-1: input should be greater than 0"),
        ("dpo.beta=no", r"dpo\.beta='no': input should be a valid number"),
        ("dpo.beta=nan", r"dpo\.beta=nan"),
        ("trainer.batch_size=2.5", r"trainer\.batch_size=2\.5"),
        ("trainer.batch_size=true", r"trainer\.batch_size=True"),
        ("data.validation_fraction=1", r"data\.validation_fraction=1"),
        ("data.root=null", r"data: needs data\.root"),
        ("dpo.loss=[sigmoid,sigmoyd]", r"dpo\.loss\.1='sigmoyd'"),
        ("dpo.loss=[]", r"at least one loss"),
        ("dpo.loss_weights=[1.0,2.0]", r"2 values for 1 losses"),
        ("dpo.label_smoothing=0.1", r"label_smoothing=0\.1 would be ignored"),
        ("dpo={loss:[robust],label_smoothing:0.5}", r"divides by zero"),
        ("dpo.loss=[exo_pair]", r"exo_pair needs label_smoothing above 0"),
        ("dpo.f_alpha=0.5", r"f_alpha belongs to"),
        ("dpo.discopop_tau=0.05", r"discopop_tau belongs to"),
        ("lora.dropout=0.1", r"lora\.dropout=0\.1 would be ignored"),
        ("trainer={precision: bf16, layout: stock}", r"needs model\.dtype=float32 and trainer\.precision=fp32"),
        ("+dpo.betta=0.3", r"dpo\.betta: unknown key\. Did you mean dpo\.beta"),
        ("+trainer.learing_rate=3e-5", r"trainer\.learing_rate: unknown key\. Did you mean trainer\.learning_rate"),
        ("+gradient_acumulation_steps=2", r"gradient_acumulation_steps: unknown key"),
        ("tracker.name=mlflow", r"tracker\.name='mlflow'"),
        ("tracker.name=wandb", r"project and mode belong to wandb"),
        ("hub.repo_id=lab/adapter", r"an upload needs both"),
    ],
)
def test_openmhc_14_a_bad_setting_is_refused_by_name(compose, override, named):
    with pytest.raises(UserError, match=named):
        compose(TrainConfig, "train", override)


def test_openmhc_14_mistyped_yaml_file_is_refused(tmp_path):
    (tmp_path / "mine.yaml").write_text("defaults: [train]\ntrainer: {gradient_acumulation_steps: 2}\n")
    run = script("train_dpo.py", "--config-dir", str(tmp_path), "--config-name", "mine")
    assert run.returncode != 0
    assert "gradient_acumulation_steps" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("argument", "suggestion"),
    [
        ("dpo.betta=0.3", "dpo.beta"),
        ("data.rooot=x", "data.root"),
        ("learning_rate=1", "trainer.learning_rate"),
        ("dpo=x", None),
    ],
)
def test_a_mistyped_key_gets_its_closest_match(argument, suggestion):
    if suggestion is None:
        refuse_unknown_overrides(TrainConfig, [argument])
    else:
        with pytest.raises(ConfigError, match=f"Did you mean .*{suggestion}"):
            refuse_unknown_overrides(TrainConfig, [argument])


def test_missing_values_are_named_together(compose):
    with pytest.raises(UserError, match=r"data\.sft=\.\.\.\n.*data\.subjects=\.\.\.\n.*model\.adapter=\.\.\."):
        compose(TrainConfig, "train", "experiment=complete")


@pytest.mark.parametrize("name", ["train_dpo.py", "eval/human_agreement.py"])
def test_help_and_refusals_start_without_torch(name):
    # -X importtime names every module that is imported.
    for arguments, code in ((["--help"], 0), (["seed_=1"], 2), (["model.path=/nowhere", "data.root=/nowhere"], 2), (["-m"], 2)):
        run = subprocess.run(
            [sys.executable, "-X", "importtime", name, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert run.returncode == code, run.stderr[-500:]
        imported = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if line.startswith("import time:")}
        assert "hydra" in imported or arguments == ["-m"]
        assert not imported & {"torch", "transformers", "trl", "sklearn"}
        assert "Traceback" not in run.stderr


def test_multirun_points_to_the_submitter():
    run = script("train_dpo.py", "--multirun", "dpo.beta=0.1,0.2")
    assert run.returncode == 2
    assert "slurm/submit.py" in run.stderr


def test_hydra_leaves_no_folder_of_its_own(tmp_path):
    run = subprocess.run(
        [sys.executable, ROOT / "train_dpo.py", "data.root=/nowhere", f"model.path={tmp_path}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_evaluate_config_composes(compose):
    assert compose(EvaluateConfig, "evaluate").data.root == "demo"
