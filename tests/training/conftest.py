"""Rendered pairs of the synthetic corpus, and stock and own trainers on the tiny model."""

import pytest
import torch


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

    def built(pairs, *overrides):
        from ad4edu_train.policy.load import load_base
        from ad4edu_train.training.checkpoints import Checkpoints
        from ad4edu_train.training.lora import lora_config
        from ad4edu_train.training.trainer import PairTrainer, trl_arguments

        config = tiny_run(*overrides)
        base = load_base(config.model)
        made = PairTrainer(
            model=base,
            args=trl_arguments(config, tmp_path / "checkpoints", steps=None, layers=[], use_cpu=True),
            pairs=pairs,
            checkpoints=Checkpoints(tmp_path / "checkpoints", 2),
            layout=config.trainer.layout,
            processing_class=tokenizer,
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
        from ad4edu_train.training.validation import reference_scores

        if made.precompute_ref_logps:
            made.data_collator.reference = reference_scores(made.model, pairs)
        rows = [{"index": index} for index in range(len(pairs))]
        made.model.train()
        made.model.zero_grad()
        loss = made.compute_loss(made.model, made.data_collator(rows))
        loss.backward()
        gradients = {name: p.grad.clone() for name, p in made.model.named_parameters() if p.grad is not None}
        return loss.item(), gradients

    return computed
