"""A callback for the Trainer of Hugging Face's transformers: Trainer(..., callbacks=[StallspanCallback()])."""

from __future__ import annotations

from typing import Any, Optional

from transformers import TrainerCallback

from ._epochs import Epochs


class StallspanCallback(TrainerCallback):
    """Announces each epoch of train. run names the training run; its epochs share a baseline."""

    def __init__(self, run: Optional[str] = None) -> None:
        super().__init__()
        self._epochs = Epochs(run)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin an epoch. state.epoch counts the epochs that are done, as a fraction."""
        if state.is_local_process_zero:
            self._epochs.begin(round(state.epoch or 0))

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End the epoch."""
        self._epochs.end()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End the epoch if it is still open."""
        self._epochs.end()
