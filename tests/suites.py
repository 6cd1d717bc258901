"""`make test`: every suite with its time and budget. In CI a skipped engine test is a failure."""

import os
import subprocess
import sys
import time

# (name, pytest arguments, budget in minutes). The budgets sum to what .ci/run may take.
SUITES = (
    ("main", ["tests", "--ignore=tests/vllm"], 15),
    ("vllm", ["tests/vllm"], 8),
)
NOTHING_COLLECTED = 5


def main() -> int:
    lines, failed = [], False
    for name, arguments, budget in SUITES:
        started = time.monotonic()
        strict = ["-p", "tests.no_skips"] if os.environ.get("CI") and name == "vllm" else []
        status = subprocess.run([sys.executable, "-m", "pytest", "--durations=5", *strict, *arguments], check=False).returncode
        minutes = (time.monotonic() - started) / 60
        failed |= status != 0
        lines.append(f"{name:8} {'passed' if status == 0 else 'FAILED':8} {minutes:5.1f} min of {budget}")
    print("\n".join(["", "suite    result   time and budget", *lines]))
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
