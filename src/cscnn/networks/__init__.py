"""Networks: plain modules from multivectors to multivectors, on grids and on point sets."""

from cscnn.networks import baselines
from cscnn.networks.blocks import CSBlock, ProductGate, recompute_blocks
from cscnn.networks.budget import count_parameters, fit_budget
from cscnn.networks.calibrate import Calibrated, calibrate_
from cscnn.networks.compiled import compile_blocks
from cscnn.networks.components import OnComponents
from cscnn.networks.entries import Sizes, register
from cscnn.networks.export import plain_convolutions
from cscnn.networks.fieldtype import FieldType
from cscnn.networks.files import load, save
from cscnn.networks.grid import Grid
from cscnn.networks.pointnet import CSPointNet, Neighbourhood, noise_edges
from cscnn.networks.recipe import Recipe
from cscnn.networks.registry import build, names
from cscnn.networks.resnet import CSResNet, SteerableResNet
from cscnn.networks.unet import CSUNet

__all__ = [
    "CSBlock",
    "CSPointNet",
    "CSResNet",
    "CSUNet",
    "Calibrated",
    "FieldType",
    "Grid",
    "Neighbourhood",
    "OnComponents",
    "ProductGate",
    "Recipe",
    "Sizes",
    "SteerableResNet",
    "baselines",
    "build",
    "calibrate_",
    "compile_blocks",
    "count_parameters",
    "fit_budget",
    "load",
    "names",
    "noise_edges",
    "plain_convolutions",
    "recompute_blocks",
    "register",
    "save",
]
