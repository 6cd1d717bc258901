"""A disk that takes no more: who says so, and what to do. torch, safetensors and tokenizers raise errors of their own for it."""

import errno
import os

MAKE_ROOM = "Make room (fewer trainer.keep_checkpoints, another trainer.output_root); the same command then goes on from there."
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TORCH_WRITES = ("PytorchStreamWriter", "unexpected pos", "iostream error")


def refusal(error: Exception) -> str | None:
    """The reason in words where the error says that a disk is full, else None."""
    if isinstance(error, OSError):
        return os.strerror(error.errno).lower() if error.errno in _FULL else None
    text = str(error).splitlines()[0] if str(error) else ""
    if isinstance(error, RuntimeError) and any(words in text for words in _TORCH_WRITES):
        return "no space left on device, or a limit on file sizes"  # torch.save does not tell
    return next((os.strerror(number).lower() for number in _FULL if f"(os error {number})" in text), None)  # Rust's wording
