"""Models too large for one device: parameters split over all, put together layer by layer."""

from __future__ import annotations

from typing import Any

from lightning.pytorch.strategies import ModelParallelStrategy
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor


class Sharded(ModelParallelStrategy):
    """``--trainer.strategy fsdp``: torch's ``fully_shard`` on GPUs and on CPUs.

    States are gathered and written as one file, the same as those of other strategies.

    Args:
        world: number of devices.
    """

    def __init__(self, world: int):
        super().__init__(world, 1, save_distributed_checkpoint=False)

    def load_checkpoint(self, checkpoint_path: Any, weights_only: bool | None = None) -> Any:
        """Read a state, executing nothing in it."""
        return super().load_checkpoint(checkpoint_path, weights_only=True)


def shard_(model: nn.Module, mesh: DeviceMesh) -> None:
    """Split the parameters over the devices of a mesh, each block of the model by itself.

    Blocks are what the model's own lists of modules hold; deeper ones belong to kernels, whose
    layers are not called one by one. Whole parameters exist while their block computes.
    """
    for block in [*_blocks(model), model]:
        if not isinstance(block, FSDPModule) and any(True for _ in block.parameters()):
            fully_shard(block, mesh=mesh, reshard_after_forward=True)


def _blocks(model: nn.Module) -> list[nn.Module]:
    children = list(model.children())
    if len(children) == 1 and not isinstance(children[0], nn.ModuleList):  # a wrapper
        return _blocks(children[0])
    return [block for child in children if isinstance(child, nn.ModuleList) for block in child]


def whole(tensor: Tensor) -> Tensor:
    """A tensor, gathered if it is split; then all devices have to ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def alike(tensor: Tensor, other: Tensor) -> Tensor:
    """A whole tensor on the device of another one, and split like it."""
    if isinstance(other, DTensor):
        return distribute_tensor(tensor.to(other.device), other.device_mesh, other.placements)
    return tensor.to(other.device)
