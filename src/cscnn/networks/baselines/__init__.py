"""Networks to compare with. Those of components meet multivectors through `OnComponents`."""

from cscnn.networks.baselines.clifford import CliffordResNet
from cscnn.networks.baselines.convnext_unet import ConvNeXtUNet
from cscnn.networks.baselines.fno import FNO
from cscnn.networks.baselines.gfno import GFNO
from cscnn.networks.baselines.residual import ResNet
from cscnn.networks.baselines.unet import UNet

__all__ = ["FNO", "GFNO", "CliffordResNet", "ConvNeXtUNet", "ResNet", "UNet"]
