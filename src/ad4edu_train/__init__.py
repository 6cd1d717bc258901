"""DPO training and evaluation for audio descriptions (AD) of slide lectures."""

__version__ = "0.1.0"
