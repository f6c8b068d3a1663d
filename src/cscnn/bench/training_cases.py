"""What the training framework adds to a bare loop of forward, backward and optimiser."""

from __future__ import annotations

import importlib.util
import logging
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from cscnn.bench.registry import Case, benchmark
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import create
from cscnn.models import build

STEPS = 24


@benchmark("training", f"{STEPS} training steps on smoke of 32², data loading included")
def training() -> Iterator[Case]:
    if importlib.util.find_spec("lightning") is None:
        return
    import lightning

    from cscnn.training.config import DataConfig
    from cscnn.training.datamodule import GlobalBatches, WindowData
    from cscnn.training.module import Forecast

    for name in ("lightning.pytorch", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        (plan,) = plans(create("navier_stokes", "small"), Path(folder), {"train": 20})
        generate([plan])
        data = WindowData(DataConfig(train=str(plan.path), coarsen=2), steps=STEPS)
        model = build("cs_resnet", data.task, params=30_000, blocks=4, kernel_size=5)
        module = Forecast(model)
        windows = data.train_windows()
        batches = [[windows[i] for i in batch] for batch in GlobalBatches(windows, 8, 0)][:STEPS]
        ready = [tuple(map(torch.stack, zip(*batch, strict=True))) for batch in batches]

        def bare() -> Sequence[Tensor]:
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
            for x, y, background in ready:
                optimizer.zero_grad()
                loss = (model(x, background) - y)[..., :3].square().mean()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            return [loss]

        def ours() -> Sequence[Tensor]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trainer = lightning.Trainer(
                    max_epochs=1, accelerator="cpu", gradient_clip_val=1.0, logger=False,
                    enable_checkpointing=False, enable_model_summary=False,
                    enable_progress_bar=False, use_distributed_sampler=False,
                    num_sanity_val_steps=0,
                )  # fmt: skip
                trainer.fit(module, datamodule=data)
            return [torch.empty(0)]

        yield Case(
            "cs_resnet, 30k parameters",
            {"cscnn.training": ours, "bare loop, data in memory": bare},
            reference="bare loop, data in memory",
            speedup=1 / 1.05,
            repeats=3,
        )
        data.source.close()
