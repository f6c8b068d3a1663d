"""Sharing forecasters: folders with a card, and the Hugging Face hub. Needs ``cscnn[hub]``."""

from typing import Any

from cscnn.forecasting.hub.pretrained import Pretrained, push_folder

__all__ = ["About", "Pretrained", "model_card", "push_folder"]


def __getattr__(name: str) -> Any:
    """Cards are about runs, which need forecasters, which are `Pretrained`: imported when used."""
    if name in ("About", "model_card"):
        from cscnn.forecasting.hub import card

        return getattr(card, name)
    raise AttributeError(f"module 'cscnn.forecasting.hub' has no attribute {name!r}")
