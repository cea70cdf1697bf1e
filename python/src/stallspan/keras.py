"""A callback for Keras: model.fit(..., callbacks=[StallspanCallback()])."""

from __future__ import annotations

from typing import Any, Optional

try:
    from keras.callbacks import Callback
except ImportError:
    from tensorflow.keras.callbacks import Callback

from ._epochs import Epochs


class StallspanCallback(Callback):
    """Announces each epoch of fit, with its validation. run names the training run; its epochs share a baseline."""

    def __init__(self, run: Optional[str] = None) -> None:
        super().__init__()
        self._epochs = Epochs(run)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Begin an epoch. It has the number that Keras prints: the first one is 1."""
        self._epochs.begin(epoch + 1)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """End the epoch."""
        self._epochs.end()

    def on_train_end(self, logs: Any = None) -> None:
        """End the epoch if it is still open."""
        self._epochs.end()
