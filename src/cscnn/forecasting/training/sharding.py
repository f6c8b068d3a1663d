"""How a run is spread over devices: whole models on each, or parameters split over all."""

from __future__ import annotations

import atexit
import inspect
import os
from typing import Any

import torch
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy
from torch import Tensor, distributed, nn
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from cscnn.forecasting.training.config import UNUSED
from cscnn.forecasting.training.launch import launcher_for


def strategy(name: str, world: int) -> Any:
    """What Lightning's trainer shall do with several devices.

    Args:
        name: one of `cscnn.forecasting.training.config.STRATEGIES`. Others of Lightning start
            processes in ways of their own, or split parameters such that `gathered` cannot join
            them.
        world: number of devices.
    """
    if name == "fsdp":
        return Sharded(world)
    if name == "auto" and world == 1:
        return name
    options = constant_buffers(nn.parallel.DistributedDataParallel)
    return Replicated(find_unused_parameters=name == UNUSED, **options)


def constant_buffers(replicate: Any) -> dict[str, Any]:
    """The option that spares sending buffers round in each step: those of our models are constants.

    Since torch 2.13 it is called so that they are still sent once, at first. Before, all processes
    drew the same ones from the same seed.
    """
    known = inspect.signature(replicate).parameters
    new = "forward_sync_buffers"
    return {new if new in known else "broadcast_buffers": False}


def connection_lost(error: BaseException) -> bool:
    """Whether an error says that another process of a run is gone.

    Before the processes are connected, gloo and NCCL complain about other things.
    """
    if isinstance(error, distributed.DistError):
        return True
    if not isinstance(error, RuntimeError) or isinstance(error, torch.OutOfMemoryError):
        return False
    named = any(word in str(error).lower() for word in ("gloo", "nccl"))
    return named and distributed.is_initialized()


def join_again(strategy: Any) -> None:
    """Connect the processes of a run that torchrun has started again.

    Its store still knows the addresses of those that died; without a part of the store for each
    attempt the living would call them.
    """
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if attempt == "0" or not shared or distributed.is_initialized():
        return
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = TCPStore(address, port, is_master=False, wait_for_workers=False)
    distributed.init_process_group(
        strategy._get_process_group_backend(),
        store=PrefixStore(f"attempt {attempt}", store),
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=strategy._timeout,
    )
    atexit.register(distributed.destroy_process_group)


class Replicated(DDPStrategy):
    """``--trainer.strategy ddp``: the whole model on each device."""

    def _configure_launcher(self) -> None:
        super()._configure_launcher()
        self._launcher = launcher_for(self)

    def setup_environment(self) -> None:
        join_again(self)
        super().setup_environment()


class Sharded(ModelParallelStrategy):
    """``--trainer.strategy fsdp``: torch's ``fully_shard`` on GPUs and on CPUs.

    States are gathered and written as one file, the same as those of other strategies.

    Args:
        world: number of devices.
    """

    def __init__(self, world: int):
        super().__init__(world, 1, save_distributed_checkpoint=False)

    def _configure_launcher(self) -> None:
        super()._configure_launcher()
        self._launcher = launcher_for(self)

    def setup_environment(self) -> None:
        join_again(self)
        super().setup_environment()

    def load_checkpoint(self, checkpoint_path: Any, weights_only: bool | None = None) -> Any:
        """Read a state, executing nothing in it."""
        return super().load_checkpoint(checkpoint_path, weights_only=True)


def shard_(model: nn.Module, mesh: DeviceMesh) -> None:
    """Split the parameters over the devices of a mesh, each block of the model by itself.

    Blocks are what the model's own lists of modules hold; deeper ones belong to kernels, whose
    layers are not called one by one. Whole parameters exist while their block computes.
    """
    dtypes = {p.dtype for p in model.parameters()}
    if len(dtypes) > 1:
        raise ValueError(
            f"trainer.strategy=fsdp splits parameters of one type, {type(model).__name__} has "
            f"{', '.join(sorted(map(str, dtypes)))}: use ddp"
        )
    for block in [*_blocks(model), model]:
        if not isinstance(block, FSDPModule) and any(True for _ in block.parameters()):
            fully_shard(block, mesh=mesh, reshard_after_forward=True)


def _blocks(model: nn.Module) -> list[nn.Module]:
    children = list(model.children())
    if len(children) == 1 and not isinstance(children[0], nn.ModuleList):  # a wrapper
        return _blocks(children[0])
    return [block for child in children if isinstance(child, nn.ModuleList) for block in child]


def gathered(tensor: Tensor) -> Tensor:
    """A tensor, gathered if it is split; then all devices have to ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def sharded_like(tensor: Tensor, other: Tensor) -> Tensor:
    """A whole tensor on the device of another one, and split like it."""
    if isinstance(other, DTensor):
        return distribute_tensor(tensor.to(other.device), other.device_mesh, other.placements)
    return tensor.to(other.device)
