"""Convolution with differential kernels: differentiate once, then mix channels and blades."""
