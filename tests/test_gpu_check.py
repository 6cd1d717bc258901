"""benchmarks/gpu_check.sh with a tiny model: every line that a GPU will run, run here."""

import os
import subprocess
import sys

import pytest
import torch

from tests.conftest import ROOT

pytestmark = pytest.mark.slow


def check(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "benchmarks" / "gpu_check.sh", *arguments],
        env=os.environ | {"PYTHON": sys.executable, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def test_every_stage_passes_with_a_tiny_model():
    done = check("--small")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    for stage in (
        "float32",
        "bfloat16",
        "stock rows",
        "moment tree",
        "checkpointing off",
        "QLoRA",
        "continued from its checkpoint",
    ):
        assert stage in done.stdout
    assert "FAILED" not in done.stdout
    if not torch.cuda.is_available():
        assert "times and memory mean nothing" in done.stdout
        assert "two processes, ddp" in done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu_it_says_so():
    done = check()
    assert done.returncode == 2
    assert "No GPU is visible" in done.stderr
