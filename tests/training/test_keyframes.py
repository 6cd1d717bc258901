"""Training on keyframes with real architectures: pixels reach the model as TRL reads them (faults of kind 4)."""

import json
import shutil

import pytest
import torch

from ad4edu_train.data.keyframes import Keyframes
from ad4edu_train.data.rows import chat_prompt
from ad4edu_train.errors import ConfigError, DataError, UserError
from ad4edu_train.policy.chat import Chat, RenderError
from ad4edu_train.policy.load import load_base
from ad4edu_train.policy.log_probs import score_all
from ad4edu_train.training.batches import PairCollator
from ad4edu_train.training.pixels import prove_pixels
from ad4edu_train.training.run import train
from tests.conftest import read_jsonl
from tests.training.conftest import MAX_PIXELS

pytestmark = pytest.mark.slow


def test_tokens_and_pixels_are_those_of_the_image_processor(seen, seen_pairs, two_frames):
    _, chat, _, _ = seen
    item = seen_pairs[0]
    assert len(item.first.keyframes) >= 2
    from PIL import Image

    images = [Image.open(two_frames / name).convert("RGB") for name in item.first.keyframes]
    theirs = chat.vision.processor(images=images, return_tensors="pt")
    ours = chat.vision.inputs(item.first.keyframes)
    assert torch.equal(ours["pixel_values"], theirs["pixel_values"])
    assert torch.equal(ours["image_grid_thw"], theirs["image_grid_thw"])
    tokens = int(theirs["image_grid_thw"].prod(dim=1).sum()) // 4
    assert item.first.prompt_ids.count(chat.vision.image_token_id) == tokens
    assert tokens == sum(chat.vision.tokens(name) for name in item.first.keyframes)
    assert int(theirs["image_grid_thw"][0].prod()) * chat.vision.processor.patch_size**2 <= MAX_PIXELS


def test_each_keyframe_is_decoded_once_a_batch(seen, seen_pairs, monkeypatch):
    _, chat, _, _ = seen
    items = seen_pairs
    read, names = Keyframes.read, []
    monkeypatch.setattr(Keyframes, "read", lambda self, name: names.append(name) or read(self, name))
    batch = PairCollator(items, 0, chat.vision)([{"index": index} for index in range(len(items))])
    assert sorted(names) == sorted({name for item in items for name in item.first.keyframes})
    assert len(batch["image_grid_thw"]) == 2 * sum(len(item.first.keyframes) for item in items)


def test_log_probs_behind_a_shared_prompt_are_those_of_whole_sequences(seen, seen_pairs):
    config, chat, _, _ = seen
    model = load_base(config.model).eval()
    items = seen_pairs
    sides = [side for item in items for side in (item.first, item.second)]
    scores = score_all(model, sides, vision=chat.vision)
    for side in sides:
        ids = torch.tensor([side.prompt_ids + side.completion_ids])
        labels = ids.clone()
        labels[:, : len(side.prompt_ids)] = -100
        with torch.no_grad():
            inputs = chat.vision.inputs(side.keyframes) | {"mm_token_type_ids": chat.vision.token_types(ids)}
            loss = model(input_ids=ids, labels=labels, **inputs).loss
        assert scores[side].total == pytest.approx(-float(loss) * len(side.completion_ids), abs=2e-3)


def test_transformers_27535_another_frame_under_the_same_text_changes_the_log_probs(seen, seen_pairs):
    from dataclasses import replace

    config, chat, _, _ = seen
    model = load_base(config.model).eval()
    side = seen_pairs[0].first
    swapped = replace(side, keyframes=side.keyframes[::-1])
    assert chat.vision.tokens(side.keyframes[0]) == chat.vision.tokens(side.keyframes[1])
    scores = score_all(model, [side, swapped], vision=chat.vision)
    assert abs(scores[side].total - scores[swapped].total) > 1e-3


def test_a_run_on_keyframes_counts_what_it_saw(configured, monkeypatch):
    from ad4edu_train.training.trainer import PairTrainer

    made, trained = PairTrainer.__init__, []
    monkeypatch.setattr(
        PairTrainer, "__init__", lambda self, *, pairs, **more: trained.extend(pairs) or made(self, pairs=pairs, **more)
    )
    folder = train(configured("data.validation_fraction=0.2", "trainer.num_workers=1", "trainer.max_steps=3"))
    record = folder.record()
    assert record["status"] == "finished"
    assert set(record["trainable_parameters"]) == {"language model"}
    assert record["images_seen"] == sum(len(item.first.keyframes) for item in trained) >= 12
    assert record["keyframes"]["max_pixels"] == MAX_PIXELS
    losses = [row["loss"] for row in folder.rows("metrics.jsonl") if "loss" in row]
    assert len(losses) == 3


def test_reference_beforehand_gives_the_first_loss_of_trls_own(configured, tmp_path):
    losses = []
    for beforehand in ("true", "false"):
        folder = train(configured(f"trainer.precompute_reference={beforehand}", output_root=tmp_path / beforehand))
        losses.append([row["loss"] for row in folder.rows("metrics.jsonl") if "loss" in row])
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


def test_dry_run_prints_the_tokens_of_a_keyframe(configured, capsys):
    train(configured("dry_run=true"))
    shown = " ".join(capsys.readouterr().out.split())
    assert "keyframes" in shown
    assert "tokens each on average" in shown
    assert "50,176" in shown


def test_transformers_27535_pixels_that_change_nothing_are_refused(seen, seen_pairs):
    config, chat, _, _ = seen
    model = load_base(config.model).eval()
    collator = PairCollator(seen_pairs, 0, chat.vision)
    prove_pixels(model, collator)
    blind = lambda self, names: {  # noqa: E731
        key: value * 0 if key == "pixel_values" else value
        for key, value in type(chat.vision).inputs(chat.vision, names).items()
    }
    collator.vision = type("Blind", (), {"inputs": blind, "token_types": chat.vision.token_types})()
    with pytest.raises(UserError, match="does not see them"):
        prove_pixels(model, collator)
    collator.vision = None
    with pytest.raises(UserError, match=r"its batch holds 0 images, [46] are due"):
        prove_pixels(model, collator)


def test_transformers_27535_prompts_without_images_or_rows_are_refused_before_any_model(configured, two_frames, tmp_path):
    folder = tmp_path / "corpus"
    shutil.copytree(two_frames, folder)
    rows = read_jsonl(folder / "dpo_prompts.jsonl")
    for row in rows:
        row["messages"][-1]["content"] = [block for block in row["messages"][-1]["content"] if block["type"] == "text"]
    (folder / "dpo_prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"pairs have no keyframe.*would train on text alone"):
        train(configured(root=folder))
    (folder / "dpo_prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:1]))
    with pytest.raises(DataError, match=r"no row"):
        train(configured(root=folder))


def test_missing_and_broken_keyframes_are_listed_before_any_model(configured, two_frames, tmp_path):
    folder = tmp_path / "corpus"
    shutil.copytree(two_frames, folder)
    frames = sorted((folder / "keyframes").rglob("*.jpg"))
    for frame in frames[::2]:
        frame.unlink()
    frames[1].write_bytes(frames[1].read_bytes()[:400])
    with pytest.raises(DataError, match=r"keyframes"):
        train(configured("model.path=owner/never-loaded", "data.max_train_pairs=null", root=folder))


def test_trl_5927_a_pair_over_the_budget_is_refused_by_pair_id_with_its_image_tokens(configured):
    with pytest.raises(DataError, match=r"pair_id \S+: \d+ tokens, \d+ of them of [23] keyframes[\s\S]*data\.max_pixels"):
        train(configured("data.max_tokens=600"))


def test_twinkle_131_templates_that_lose_text_or_add_images_are_refused(seen):
    _, chat, prompts, pairs = seen
    messages = prompts.of(pairs[0])
    tokenizer = chat.tokenizer
    template = tokenizer.chat_template
    # Tests for the presence of a key, as some templates do: a null key that Arrow added makes an image of a text.
    tokenizer.chat_template = template.replace("block['type'] == 'image'", "'image' in block")
    assert chat.prompt(messages).ids.count(chat.vision.image_token_id) > 0
    nulled = [{**message, "content": [{"image": None, **block} for block in message["content"]]} for message in messages]
    with pytest.raises(RenderError, match=r"sets [45] image placeholders for [23] images"):
        Chat(tokenizer, thinking=False, vision=chat.vision).prompt(nulled)
    tokenizer.chat_template = template.replace("{{ block['text'] }}", "")
    with pytest.raises(RenderError, match="drops a text of the prompt"):
        Chat(tokenizer, thinking=False, vision=chat.vision).prompt(messages)


def test_twinkle_131_null_keys_of_arrow_are_taken_out_on_reading(two_frames):
    row = read_jsonl(two_frames / "dpo_prompts.jsonl")[0]
    for message in row["messages"]:
        message["content"] = [{"type": None, "text": None, "image": None} | block for block in message["content"]]
    assert all(None not in block.values() for message in chat_prompt(row).messages for block in message["content"])


def test_models_without_eyes_are_refused(configured, tiny_model):
    with pytest.raises(UserError, match="no vision-language model"):
        train(configured(f"model.path={tiny_model}"))


def test_max_pixels_below_what_the_model_takes_is_refused(configured):
    with pytest.raises(ConfigError, match=r"data\.max_pixels=100: "):
        train(configured("data.max_pixels=100"))


def test_llava_1380_the_vision_tower_is_adapted_only_where_that_is_asked_for(configured, vlm):
    target = "qkv" if "qwen" in vlm.name else None
    folder = train(configured(f"lora.vision_targets=[{target}]", "trainer.max_steps=2", "trainer.stall_steps=20"))
    parts = folder.record()["trainable_parameters"]
    assert set(parts) == {"language model", "vision tower"}


def test_agreement_sees_the_keyframes_too(configured, vlm, two_frames, compose, tmp_path):
    from ad4edu_train.agreement.evaluate import evaluate
    from ad4edu_train.config import EvaluateConfig

    run = train(configured())
    config = compose(
        EvaluateConfig,
        "evaluate",
        f"checkpoints=[{run.path}]",
        f"model.path={vlm}",
        f"data.root={two_frames}",
        "data.prompt_view=keyframe",
        f"data.max_pixels={MAX_PIXELS}",
        f"out={tmp_path / 'agreement'}",
    )
    rows = read_jsonl(evaluate(config) / "pairs.jsonl")
    rewards = [row["preferences"][f"{run.path.name}, implicit reward"] for row in rows]
    assert all(reward is not None for reward in rewards)
    assert len(set(rewards)) > 1
