"""The real vLLM engine of the pinned set-up runs on this machine and agrees with transformers."""

import pytest

from ad4edu_train.demo.model import unpack_model

pytest.importorskip("vllm", reason="vLLM is not installed (make setup-test)")

PROMPT = (
    "Moment type: slide\nLecturer said: this one here\nOn-screen text (OCR): Training loss\nWhat is on screen: A falling curve."
)


@pytest.mark.slow
def test_greedy_text_of_vllm_is_that_of_transformers(monkeypatch):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    for name, value in {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "2"}.items():
        monkeypatch.setenv(name, value)
    from vllm import LLM, SamplingParams

    folder = str(unpack_model())
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPT}], add_generation_prompt=True, tokenize=True, return_dict=False
    )
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    expected = model.generate(torch.tensor([ids]), max_new_tokens=12, do_sample=False)[0, len(ids) :].tolist()
    engine = LLM(model=folder, dtype="float32", enforce_eager=True, max_model_len=1024, block_size=32)
    sampled = engine.generate({"prompt_token_ids": ids}, SamplingParams(temperature=0, max_tokens=12), use_tqdm=False)
    assert list(sampled[0].outputs[0].token_ids) == expected
