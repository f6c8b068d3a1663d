"""A Clifford network on spacetime beside an ordinary MLP: who notices a change of frame?

Both networks map 4 multivectors of Cl(1, 3) (for instance events, momenta, field tensors) to 4
others. We look at the input from another inertial frame and compare f(g x) with g f(x). For the
Clifford network the two agree to rounding error, before any training; the MLP has to learn it.
"""

import torch
from torch import nn

from cscnn import CliffordAlgebra
from cscnn.nn import CGENN
from cscnn.testing import equivariance_errors

LABELS = {
    "rotation": "rotation of space",
    "boost": "boost, rapidity <= 2",
    "reflection": "reflection",
    "any": "all of them composed",
}


class MLP(nn.Module):
    """Fully connected on the flattened blades, of about the same size."""

    def __init__(self, channels: int, blades: int, hidden: int = 48):
        super().__init__()
        width = channels * blades
        self.net = nn.Sequential(
            nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
            nn.Linear(hidden, width),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x.flatten(1)).reshape(x.shape)


def main() -> None:
    torch.manual_seed(0)
    algebra = CliffordAlgebra((1, -1, -1, -1))
    models = {"CGENN": CGENN(algebra, c_in=4, c_out=4, hidden_dim=8), "MLP": MLP(4, 16)}
    sizes = {name: sum(p.numel() for p in model.parameters()) for name, model in models.items()}

    print("Two networks on spacetime Cl(1, 3) look at the same input from two frames.")
    print("max |f(gx) - g f(x)| / max |g f(x)| in float64; zero up to rounding is equivariant.\n")
    print(f"{'transformation':<24}" + "".join(f"{f'{n} ({sizes[n]:,})':>18}" for n in models))
    errors = {
        name: equivariance_errors(
            model, algebra, shape=(64, 4), samples=5, rapidity=2.0, gradients=False
        )
        for name, model in models.items()
    }
    for kind in algebra.kinds():
        row = "".join(f"{errors[name][kind]:>18.1e}" for name in models)
        print(f"{LABELS[kind]:<24}{row}")
    print("\nIn parentheses: number of parameters. Neither network has been trained.")


if __name__ == "__main__":
    main()
