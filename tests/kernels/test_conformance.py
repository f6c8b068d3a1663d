"""Our kernels pass the suite that `cscnn.testing.conformance` offers for those of others."""

from cscnn.kernels import Complete, CompleteKernel, Implicit, ImplicitKernel
from cscnn.testing import conformance


def complete(algebra, c_in, c_out, group="O"):
    return CompleteKernel(algebra, c_in, c_out, Complete(group=group, hidden_dim=4))


def rings(algebra, c_in, c_out):
    return CompleteKernel(algebra, c_in, c_out, Complete(radial="rings"))


def implicit(algebra, c_in, c_out):
    return ImplicitKernel(algebra, c_in, c_out, Implicit(num_layers=2, hidden_dim=4))


TestComplete = conformance.kernel(complete, groups=("O", "SO"))
TestRings = conformance.kernel(rings, metrics=((1, 1),), compiles=False)
TestImplicit = conformance.kernel(implicit, metrics=((1, 1), (1, -1)), compiles=False)
