"""A logger of somebody else's, for tests."""

import json
from pathlib import Path

from lightning.pytorch.loggers import Logger


class Recorder(Logger):
    """Appends what it is told to a file.

    Args:
        save_dir: where.
        version: of the log; one by one if it is not given.
        note: written with every line.
    """

    def __init__(self, save_dir, version=None, note=""):
        super().__init__()
        self.folder, self.note = Path(save_dir), note
        self._version = version or len(list(self.folder.glob("recorded_*"))) + 1
        self._write("opened")

    @property
    def name(self):
        return "recorder"

    @property
    def version(self):
        return self._version

    def _write(self, *entry):
        with (self.folder / f"recorded_{self.version}").open("a") as file:
            file.write(json.dumps([*entry, self.note]) + "\n")

    def log_metrics(self, metrics, step=None):
        self._write("metrics", sorted(metrics), step)

    def log_hyperparams(self, params, *args, **kwargs):
        self._write("hyperparams", params["seed"])
