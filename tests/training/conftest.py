"""Rendered pairs of the synthetic corpus, and stock and own trainers on the tiny model."""

import json
import shutil

import pytest
import torch

from tests.conftest import read_jsonl

FAMILIES = ("qwen2_5_vl", "qwen3_vl")
MAX_PIXELS = 50176


@pytest.fixture
def rendered(demo_folder, tokenizer):
    """Eight rendered training pairs that stand on few moments."""
    from ad4edu_train.data.files import read_records
    from ad4edu_train.data.rows import preference_pair
    from ad4edu_train.data.views import Prompts
    from ad4edu_train.policy.chat import Chat
    from ad4edu_train.training.preflight import render_pairs

    records = read_records(demo_folder / "data" / "train_prefs-00000-of-00001.parquet")
    pairs = sorted((preference_pair(record.values) for record in records), key=lambda pair: pair.moment_id)[:8]
    return render_pairs(pairs, Prompts("text", []), Chat(tokenizer, thinking=False), max_tokens=4096, too_long="refuse").pairs


@pytest.fixture
def trainer(tiny_run, tiny_model, tokenizer, tmp_path):
    """trainer(pairs, *overrides) -> PairTrainer on the tiny model with an adapter that is not the identity."""

    def built(pairs, *overrides, vision=None):
        from ad4edu_train.policy.load import load_base, load_tokenizer
        from ad4edu_train.training.checkpoints import Checkpoints
        from ad4edu_train.training.lora import lora_config
        from ad4edu_train.training.trainer import PairTrainer, trl_arguments

        config = tiny_run(*overrides)
        base = load_base(config.model)
        vision_tokenizer = load_tokenizer(config.model) if vision else None
        made = PairTrainer(
            model=base,
            args=trl_arguments(config, tmp_path / "checkpoints", steps=None, layers=[], use_cpu=True),
            pairs=pairs,
            checkpoints=Checkpoints(tmp_path / "checkpoints", 2),
            layout=config.trainer.layout,
            label_noise=config.dpo.label_noise,
            vision=vision,
            processing_class=vision_tokenizer or tokenizer,
            peft_config=lora_config(base, config.lora),
        )
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for name, parameter in made.model.named_parameters():
                if "lora_" in name:
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
        return made

    return built


@pytest.fixture
def loss_and_gradients(trainer):
    """loss_and_gradients(trainer, pairs) -> (loss, {name: gradient}) of one batch through TRL's own loss."""

    def computed(made, pairs):
        from ad4edu_train.training.validation import reference_scores, sides_of

        if made.precompute_ref_logps:
            made.collator.reference = reference_scores(made.model, sides_of(pairs), vision=made.collator.vision)
        rows = [{"index": index} for index in range(len(pairs))]
        made.model.train()
        made.model.zero_grad()
        loss = made.compute_loss(made.model, made.data_collator(rows))
        loss.backward()
        gradients = {name: p.grad.clone() for name, p in made.model.named_parameters() if p.grad is not None}
        return loss.item(), gradients

    return computed


@pytest.fixture(scope="session", params=FAMILIES)
def vlm(request, tmp_path_factory):
    from ad4edu_train.demo.random_vlm import tiny_vlm

    return tiny_vlm(request.param, tmp_path_factory.mktemp("vlm") / request.param)


@pytest.fixture(scope="session")
def two_frames(demo_folder, tmp_path_factory):
    """The synthetic corpus with a system turn and a second keyframe, another moment's, in every prompt."""
    folder = tmp_path_factory.mktemp("frames") / "corpus"
    shutil.copytree(demo_folder, folder)
    rows = read_jsonl(folder / "dpo_prompts.jsonl")
    for row, other in zip(rows, rows[1:] + rows[:1], strict=True):
        blocks = row["messages"][-1]["content"]
        image = next(block for block in other["messages"][-1]["content"] if block["type"] == "image")
        row["messages"] = [
            {"role": "system", "content": [{"type": "text", "text": "You describe lectures."}]},
            {"role": "user", "content": [*blocks, {"type": "image", "image": image["image"]}]},
        ]
    (folder / "dpo_prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def configured(tiny_run, vlm, two_frames):
    def run(*overrides, root=two_frames, **more):
        return tiny_run(
            f"model.path={vlm}",
            "data.prompt_view=keyframe",
            f"data.max_pixels={MAX_PIXELS}",
            "trainer.layout=stock",
            "trainer.batch_size=2",
            "data.max_train_pairs=6",
            *overrides,
            root=root,
            **more,
        )

    return run


@pytest.fixture
def seen(configured, two_frames):
    """(config, chat, prompts, six pairs of few moments)."""
    from ad4edu_train.data.files import read_records
    from ad4edu_train.data.keyframes import Keyframes
    from ad4edu_train.data.rows import chat_prompt, preference_pair
    from ad4edu_train.data.views import Prompts
    from ad4edu_train.policy.chat import Chat
    from ad4edu_train.policy.load import load_tokenizer
    from ad4edu_train.policy.vision import load_vision

    config = configured()
    records = read_records(two_frames / "data" / "train_prefs-00000-of-00001.parquet")
    pairs = sorted((preference_pair(record.values) for record in records), key=lambda pair: pair.moment_id)[:6]
    prompts = Prompts("keyframe", [chat_prompt(row) for row in read_jsonl(two_frames / "dpo_prompts.jsonl")])
    vision = load_vision(config.model, Keyframes(two_frames), MAX_PIXELS)
    return config, Chat(load_tokenizer(config.model), thinking=False, vision=vision), prompts, pairs


@pytest.fixture
def seen_pairs(seen):
    """The pairs of `seen`, rendered with their keyframes."""
    from ad4edu_train.training.preflight import render_pairs

    _, chat, prompts, pairs = seen
    return render_pairs(pairs, prompts, chat, max_tokens=4096, too_long="refuse").pairs
