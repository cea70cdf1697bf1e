"""A callback for Lightning 2 and for PyTorch Lightning: Trainer(callbacks=[StallspanCallback()])."""

from __future__ import annotations

from typing import Any, Optional

from ._epochs import Epochs

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback


class StallspanCallback(Callback):
    """Announces each epoch of fit, with its validation. run names the training run; its epochs share a baseline."""

    def __init__(self, run: Optional[str] = None) -> None:
        super().__init__()
        self._epochs = Epochs(run)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin an epoch."""
        if trainer.local_rank == 0:
            self._epochs.begin(trainer.current_epoch)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """End the epoch."""
        self._epochs.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """End the epoch as failed."""
        self._epochs.end(failed=True)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """End the epoch as failed if it is still open."""
        self._epochs.end(failed=True)
