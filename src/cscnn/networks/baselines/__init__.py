"""Networks to compare with. Those of components meet multivectors through `OnComponents`."""

from cscnn.networks.baselines.clifford import CliffordResNet
from cscnn.networks.baselines.fno import FNO
from cscnn.networks.baselines.gfno import GFNO
from cscnn.networks.baselines.residual import ResNet

__all__ = ["FNO", "GFNO", "CliffordResNet", "ResNet"]
