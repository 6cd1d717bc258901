import pytest
import torch
from transformers import AutoModelForCausalLM

from ad4edu_train.policy.chat import Chat
from ad4edu_train.policy.log_probs import score_all
from tests.conftest import user

PROMPTS = ("Moment type: slide\nLecturer said: this one here", "Moment type: chart\nLecturer said: it rises, as you see")
ADS = ("A line rises.", "The red curve falls until epoch 20, then rises again.", "x")


@pytest.fixture
def model(tiny_model):
    return AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32).eval()


def by_one_forward(model, rendered) -> float:
    """The model's own loss over the completion tokens of the whole, unshared sequence."""
    ids = torch.tensor([rendered.prompt_ids + rendered.completion_ids])
    labels = ids.clone()
    labels[:, : len(rendered.prompt_ids)] = -100
    with torch.no_grad():
        return -float(model(input_ids=ids, labels=labels).loss) * len(rendered.completion_ids)


def test_shared_prompt_gives_the_log_probs_of_whole_sequences(model, tokenizer):
    chat = Chat(tokenizer, thinking=False)
    rendered = [chat.render(user(prompt), ad) for prompt in PROMPTS for ad in ADS]
    scores = score_all(model, rendered)
    for item in rendered:
        assert scores[item].total == pytest.approx(by_one_forward(model, item), abs=1e-4)
        assert scores[item].tokens == len(item.completion_ids)


def test_what_else_is_scored_beside_an_ad_changes_nothing(model, tokenizer):
    chat = Chat(tokenizer, thinking=False)
    rendered = [chat.render(user(PROMPTS[0]), ad) for ad in ADS]
    together = score_all(model, rendered)
    for item in rendered:
        assert score_all(model, [item])[item].total == pytest.approx(together[item].total, abs=1e-4)


def test_each_distinct_ad_is_scored_once_and_each_prompt_run_once(model, tokenizer, monkeypatch):
    chat = Chat(tokenizer, thinking=False)
    rendered = [chat.render(user(prompt), ad) for prompt in PROMPTS for ad in (*ADS, ADS[0])]
    calls = []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda **inputs: calls.append(inputs["input_ids"].shape) or forward(**inputs))
    assert len(score_all(model, rendered)) == 6
    assert [shape[0] for shape in calls] == [1, 3, 1, 3]
