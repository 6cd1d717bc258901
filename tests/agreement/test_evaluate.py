"""The agreement step on a run of the tiny model: files, an independent recount, refusals."""

import json
import os
import re

import pytest

from ad4edu_train.agreement.evaluate import evaluate
from ad4edu_train.config import EvaluateConfig
from ad4edu_train.errors import UserError
from ad4edu_train.report.agreement import write_markdown
from ad4edu_train.stats.intervals import on_card
from ad4edu_train.training.run import train
from tests.conftest import read_jsonl, user

pytestmark = pytest.mark.slow


@pytest.fixture
def evaluate_tiny(compose, tiny_model, demo_folder):
    def run(checkpoints, *overrides, root=demo_folder):
        listed = ",".join(map(str, checkpoints))
        folder = evaluate(
            compose(
                EvaluateConfig,
                "evaluate",
                f"checkpoints=[{listed}]",
                f"model.path={tiny_model}",
                f"data.root={root}",
                *overrides,
            )
        )

        write_markdown(folder)
        return folder

    return run


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return tmp_path_factory.mktemp("evaluate")


@pytest.fixture
def run(tiny_run, shared):
    return train(tiny_run(output_root=shared)).path


@pytest.fixture
def result(run, evaluate_tiny):
    if not (run / "agreement" / "agreement.json").is_file():
        evaluate_tiny([run])
    return run / "agreement"


def test_every_number_follows_from_pairs_jsonl(result):
    report, pairs = json.loads((result / "agreement.json").read_text()), read_jsonl(result / "pairs.jsonl")
    assert report["synthetic_data"] is True
    assert len(pairs) == report["pairs"]
    for row in report["rows"]:
        kept = [
            pair for pair in pairs
            if row["stratum"] in (pair["stratum"], pair["axis"], pair["type"])
            or row["block"] == "aggregate"
            or (row["stratum"] == "controlled, all axes" and pair["stratum"] == "controlled")
        ]  # fmt: skip
        directed = [pair for pair in kept if pair["human_winner"]]
        values = [pair["preferences"][row["predictor"]] for pair in directed]
        right = sum(
            bool(value) and (value > 0) == (pair["human_winner"] == "option_a")
            for value, pair in zip(values, directed, strict=True)
        )
        assert (row["pairs"], row["directed"], row["ties"], row["agree"]) == (len(kept), len(directed), values.count(0), right)


def test_report_names_synthetic_data_and_puts_the_mixture_last(result):
    text = (result / "agreement.md").read_text()
    assert "SYNTHETIC DATA" in text
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "Natural pairs"
    assert headings[-2:] == ["Aggregate", "Data (sha256)"]
    assert "a designed mixture" in text
    report = json.loads((result / "agreement.json").read_text())
    row = report["rows"][0]
    assert on_card(row["agree"], row["directed"]) in text


def test_all_controls_stand_beside_the_checkpoint(result, run):
    predictors = list(read_jsonl(result / "pairs.jsonl")[0]["preferences"])
    assert predictors == [
        f"{run.name}, implicit reward",
        f"{run.name}, shuffled prompts",
        f"{run.name}, log-prob per token",
        "base, log-prob per token",
        "base, log-prob summed",
        "longer side",
        "AD-only classifier",
    ]


def test_per_pair_file_is_the_users_alone(result):
    assert os.stat(result / "pairs.jsonl").st_mode & 0o077 == 0


def test_implicit_reward_is_that_of_two_plain_forwards(result, run, tiny_model, demo_folder, tokenizer):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from ad4edu_train.policy.chat import Chat
    from tests.policy.test_log_probs import by_one_forward

    row = read_jsonl(demo_folder / "human_val_400.jsonl")[0]
    chat = Chat(tokenizer, thinking=False)
    base = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32).eval()
    sides = [chat.render(user(row["prompt"]), row[side][1]["content"]) for side in ("option_a", "option_b")]
    before = [by_one_forward(base, side) for side in sides]
    policy = PeftModel.from_pretrained(base, run / "adapter").eval()
    after = [by_one_forward(policy, side) for side in sides]
    expected = (after[0] - before[0]) - (after[1] - before[1])
    found = next(pair for pair in read_jsonl(result / "pairs.jsonl") if pair["pair_id"] == row["pair_id"])
    assert found["preferences"][f"{run.name}, implicit reward"] == pytest.approx(expected, abs=2e-3)


def test_null_labels_and_other_files_are_noted(run, evaluate_tiny, tmp_path):
    from ad4edu_train.demo.corpus import Settings
    from ad4edu_train.demo.write import write_corpus

    write_corpus(tmp_path / "other", Settings(moments=12, seed=9))
    folder = evaluate_tiny([run], f"out={tmp_path / 'out'}", root=tmp_path / "other")
    assert "was trained on other files" in (folder / "agreement.md").read_text()


def test_what_cannot_be_compared_is_refused(run, evaluate_tiny, tmp_path):
    with pytest.raises(UserError, match="at least one run folder"):
        evaluate_tiny([])
    with pytest.raises(UserError, match="folders that exist"):
        evaluate_tiny([tmp_path / "none"])
    with pytest.raises(UserError, match="each checkpoint once"):
        evaluate_tiny([run, run])
    with pytest.raises(UserError, match="holds no adapter"):
        evaluate_tiny([tmp_path])


def test_an_adapter_of_another_architecture_is_refused(run, tmp_path, tiny_model):
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import AutoModelForCausalLM

    from ad4edu_train.policy.load import lay_adapter

    tensors = {
        name.replace("layers.0", "layers.7"): t for name, t in load_file(run / "adapter" / "adapter_model.safetensors").items()
    }
    save_file(tensors, tmp_path / "adapter_model.safetensors")
    (tmp_path / "adapter_config.json").write_text((run / "adapter" / "adapter_config.json").read_text())
    base = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    with pytest.raises(UserError, match="have no place in the base model"):
        lay_adapter(base, tmp_path)
