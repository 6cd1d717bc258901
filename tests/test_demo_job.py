"""The main job as a user types it, on the bundled language model."""

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


def run(*command: str) -> str:
    # The language model earns a second thread, where the tiny ones of the other tests do not.
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_debug_run_trains_the_bundled_model_and_is_compared_with_labels(tmp_path):
    shown = run("train_dpo.py", "experiment=debug", f"trainer.output_root={tmp_path}")
    assert "SYNTHETIC DATA" in shown
    folder = (tmp_path / "debug-latest").resolve()
    record = json.loads((folder / "run.json").read_text())
    assert (record["status"], record["model"]) == ("finished", "smollm2-135m-instruct")
    shown = run("eval/human_agreement.py", f"checkpoints=[{tmp_path}/debug-latest]", "data.demo_moments=12")
    assert "SYNTHETIC DATA" in shown
    assert "base, log-prob per token" in (folder / "agreement" / "agreement.md").read_text()
