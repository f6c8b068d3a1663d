"""Any metric, given as a function of coordinates: geodesics by integrating their equation.

Christoffel symbols come from automatic differentiation, the ordinary differential equations are
solved by torchdiffeq, and the logarithm is found by shooting: Newton's method on the end point of a
geodesic, with its derivative taken from neighbouring geodesics. All in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import vmap

from cscnn._util.optional import require
from cscnn.algebra.functions import doubled
from cscnn.geometry.clouds import radius_edges, square_limit
from cscnn.geometry.edges import Edges
from cscnn.geometry.orthonormal import (
    check_frames,
    components,
    flip,
    orthonormal_frames,
    time_index,
)

#: Newton steps of the shooting method.
SHOTS = 25
#: Relative error of the integration in the first shots.
ROUGH = 1e-7
#: A shot hits if it comes this close; one more step of Newton's method then leaves its square.
HIT = 1e-6
#: Smallest part of a Newton step to try.
SHORTEST = 1 / 16
#: A geodesic that leaves the domain within this part of its length ends.
BORDER = 1 / 20
#: Relative distance of the neighbouring geodesics from which derivatives are taken.
APART = 1e-6

Metric = Callable[[Tensor], Tensor]


class Chart:
    """A pseudo-Riemannian space in one chart.

    Args:
        metric: a function from coordinates (d,) to the symmetric matrix g_ij (d, d), made of torch
            operations.
        signs: signature of the metric, in the wanted order of the frame vectors.
        periods: for each coordinate its period (an angle: 2π), or None.
        domain: a function from coordinates (N, d) to booleans (N,); geodesics end where it is
            False, and points that only such geodesics join have no edge.
        tolerance: relative error of the integration.

    Example:
        >>> import torch
        >>> plane = Chart(lambda x: torch.eye(2, dtype=x.dtype), (1, 1))
        >>> plane.log(torch.zeros(1, 2), torch.ones(1, 2))[0]
        tensor([[1., 1.]])
    """

    def __init__(
        self,
        metric: Metric,
        signs: Sequence[int],
        *,
        periods: Sequence[float | None] | None = None,
        domain: Callable[[Tensor], Tensor] | None = None,
        tolerance: float = 1e-11,
    ):
        self.metric: tuple[int, ...] = tuple(signs)
        if not self.metric or any(s not in (1, -1) for s in self.metric):
            raise ValueError(f"signs must consist of ±1, got {signs}")
        self.dim: int = len(self.metric)
        self.periods: tuple[float | None, ...] = (
            tuple(periods) if periods is not None else (None,) * self.dim
        )
        if len(self.periods) != self.dim:
            raise ValueError(f"periods needs a value for each of {self.dim} axes, got {periods}")
        if not 0 < tolerance < 1e-2:
            raise ValueError(f"tolerance must be between 0 and 0.01, got {tolerance}")
        self._metric, self._domain, self.tolerance = metric, domain, tolerance

    # --- at points --------------------------------------------------------------------------------

    def form(self, x: Tensor) -> Tensor:
        """g_ij at points (N, d): (N, d, d)."""
        if not len(self._check(x)):
            return x.new_zeros(0, self.dim, self.dim)
        g = vmap(self._metric)(x)
        if g.shape != (len(x), self.dim, self.dim):
            raise ValueError(
                f"the metric must return a matrix of size {self.dim}, got {tuple(g.shape[1:])}"
            )
        return g

    def inside(self, x: Tensor) -> Tensor:
        """Whether points are finite and in the domain, (N,)."""
        finite = x.isfinite().all(-1)
        return finite if self._domain is None else finite & self._domain(x)

    def volume(self, x: Tensor) -> Tensor:
        """|det g|^(1/2): volume for unit volume of coordinates, (N,)."""
        return torch.linalg.det(self.form(x)).abs().sqrt()

    def frames(self, x: Tensor) -> Tensor:
        """An orthonormal frame at each point, by Gram-Schmidt of the coordinate axes: (N, d, d).

        Oriented like the coordinates. Where one sign occurs once, the frame vector of that axis
        points in the direction in which that coordinate grows: to the future, if it is time.
        """
        axes = torch.eye(self.dim, dtype=x.dtype, device=x.device).expand(len(x), -1, -1)
        frames = orthonormal_frames(axes, self.form(x), self.metric)
        time = time_index(self.metric)
        if time is not None:
            frames = flip(frames, time, frames[:, time, time] < 0)
        space = self.dim - 1 if time != self.dim - 1 else 0
        return flip(frames, space, torch.linalg.det(frames) < 0)

    def christoffel(self, x: Tensor) -> Tensor:
        """Γ^k_ij at points (N, d), as (N, k, i, j)."""
        count, d = self._check(x).shape
        if not count:
            return x.new_zeros(0, d, d, d)
        axes = torch.eye(d, dtype=x.dtype, device=x.device).repeat(count, 1)
        with forward_ad.dual_level():  # the derivatives along all axes at once
            points = forward_ad.make_dual(x.repeat_interleave(d, 0), axes)
            form, slope = forward_ad.unpack_dual(vmap(self._metric)(points))
        if slope is None:  # a constant metric
            return x.new_zeros(count, d, d, d)
        slope = slope.view(count, d, d, d).movedim(1, -1)  # [n, i, j, k] = ∂_k g_ij
        lowered = slope + slope.transpose(2, 3) - slope.permute(0, 3, 1, 2)
        return 0.5 * torch.linalg.solve(form[::d], lowered.flatten(2)).view_as(lowered)

    # --- along geodesics --------------------------------------------------------------------------

    def exp(self, x: Tensor, u: Tensor) -> Tensor:
        """Where the geodesic from x with velocity u is after unit time. Both (N, d).

        Geodesics that leave the domain stop near its border.
        """
        return self._integrate(x, u)[0].to(x)

    def transport(self, x: Tensor, u: Tensor, w: Tensor) -> Tensor:
        """Parallel transport of vectors w (N, k, d) at x along that geodesic to its end."""
        return self._integrate(x, u, w)[1].to(w)

    @torch.no_grad()
    def log(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Velocity u with exp(x, u) = y, and whether one was found. Both points (N, d).

        Of several geodesics the one near the straight line in coordinates (the short way around
        periods). Zero where there is none. No gradients reach the points.
        """
        start, end = doubled(self._check(x)), doubled(self._check(y))
        u = self._shortest(end - start)
        reached = self.inside(start) & self.inside(end)
        for tolerance in (ROUGH, self.tolerance):  # most shots need not be accurate
            todo = reached.nonzero().squeeze(-1)
            u[todo], reached[todo] = self._newton(start[todo], u[todo], end[todo], tolerance)
        return torch.where(reached.unsqueeze(-1), u, 0.0).to(x), reached.to(x.device)

    def _newton(
        self, start: Tensor, u: Tensor, end: Tensor, tolerance: float
    ) -> tuple[Tensor, Tensor]:
        """Better velocities, and whether their geodesics meet the end points, up to periods."""
        size = 1 + start.abs().amax(-1) + u.abs().amax(-1)
        error = torch.full_like(size, math.inf)
        step, jump = torch.ones_like(size), torch.zeros_like(u)
        best, u = u.clone(), u.clone()
        open_ = torch.ones_like(size, dtype=torch.bool)
        reached = ~open_
        for _ in range(SHOTS):
            todo = (open_ & ~reached).nonzero().squeeze(-1)
            if not len(todo):
                break
            there, jacobian, arrived = self._shoot_around(
                start[todo], u[todo], size[todo], tolerance
            )
            miss = self._shortest(there - end[todo])
            now = torch.where(arrived, miss.abs().amax(-1), math.inf)
            better = now < error[todo]
            good, bad = todo[better], todo[~better]
            best[good], error[good] = u[good], now[better]
            jump[good] = _solve(jacobian[better], miss[better])
            step[good] = 1.0
            reached[good] = error[good] <= HIT * size[good]
            step[bad] /= 2  # went too far: shorten the last jump, or the first guess
            best[bad[error[bad].isinf()]] /= 2
            open_[bad[step[bad] < SHORTEST]] = False
            u[todo] = best[todo] - step[todo, None] * jump[todo]
        return best - jump, reached  # the last jump costs nothing and doubles the digits

    def _shoot_around(
        self, x: Tensor, u: Tensor, size: Tensor, tolerance: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """End points (N, d), their derivatives by u (N, d, d), and whether all arrived (N,)."""
        eye = torch.eye(self.dim, dtype=torch.float64, device=x.device)
        apart = APART * size
        nearby = u.unsqueeze(1) + apart[:, None, None] * torch.cat([0 * eye[:1], eye])
        x = x.repeat_interleave(self.dim + 1, 0)
        ends, _, arrived = self._integrate(x, nearby.flatten(0, 1), tolerance=tolerance)
        ends, arrived = ends.view_as(nearby), arrived.view(len(u), -1)
        return ends[:, 0], (ends[:, 1:] - ends[:, :1]).mT / apart[:, None, None], arrived.all(-1)

    def _integrate(
        self, x: Tensor, u: Tensor, w: Tensor | None = None, tolerance: float | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """End points of geodesics, vectors w (N, k, d) transported there, and who arrived (N,)."""
        odeint = require("torchdiffeq", "the solver of geodesics", "geometry").odeint
        tolerance = tolerance or self.tolerance
        x = doubled(self._check(x))
        carried = x.new_zeros(len(x), 0, self.dim) if w is None else doubled(w)
        if not len(x):
            return x, carried, x.new_zeros(0, dtype=torch.bool)
        start = torch.cat([x.unsqueeze(1), doubled(u).unsqueeze(1), carried], 1)  # rows of vectors
        flow = _Flow(self, start)
        times = torch.tensor([0.0, 1.0], dtype=torch.float64, device=x.device)
        end = odeint(
            flow,
            start,
            times,
            rtol=tolerance,
            atol=tolerance / 100,
            method="dopri8",
            # A step ends at the end: interpolation inside a step would lose digits.
            options={"norm": flow.norm, "dtype": torch.float64, "step_t": times[1:]},
        )[-1]
        return end[:, 0], end[:, 2:], ~flow.ended

    # --- edges ------------------------------------------------------------------------------------

    @torch.no_grad()
    def edges(
        self,
        points: Tensor,
        coordinate_radius: float | Sequence[float],
        *,
        radius: float | None = None,
        frames: Tensor | None = None,
        receivers: Tensor | None = None,
        receiver_frames: Tensor | None = None,
        pairs: tuple[Tensor, Tensor] | None = None,
        weights: Tensor | None = None,
    ) -> Edges:
        """Edges along geodesics between points that are near in coordinates.

        Points that no geodesic (that was found) joins have no edge. No gradients reach the points.

        Args:
            points: (N, d) coordinates of the senders.
            coordinate_radius: largest difference of each coordinate, one for all or one each:
                the box in which neighbours are sought.
            radius: largest length |η(v, v)|^(1/2) of an edge.
            frames: (N, d, d), orthonormal, frame vectors as columns; by default those of `frames`.
            receivers, receiver_frames: by default the senders and their frames.
            pairs: receivers and senders of the edges, instead of those in the box.
            weights: (N,) share of each sender in an integral.
        """
        frames = self._checked_frames("points", points, frames)
        if receivers is not None:
            receiver_frames = self._checked_frames("receivers", receivers, receiver_frames)
        elif receiver_frames is not None:
            raise ValueError("receiver_frames goes with receivers")
        else:
            receivers, receiver_frames = points, frames
        if pairs is None:
            pairs = self._pairs(points, receivers, coordinate_radius)
        n, m = pairs
        u, joined = self.log(receivers[n], points[m])
        n, m, u = n[joined], m[joined], u[joined]
        position = components(receiver_frames[n], u, self.form(receivers[n]), self.metric)
        if radius is not None:
            near = self._near(position, receivers[n], points[m], receiver_frames[n], radius)
            n, m, u, position = n[near], m[near], u[near], position[near]
        moved = self.transport(receivers[n], u, receiver_frames[n].mT)
        # Rows of ``away`` are the images of the receiver's axes.
        away = components(frames[m], moved, self.form(points[m]), self.metric)
        form = torch.diag(torch.tensor(self.metric, dtype=u.dtype, device=u.device))
        edges = Edges(
            receiver=n,
            sender=m,
            position=position,
            transport=form @ away @ form,  # the inverse of an element of O(p, q), away^T
            n_receivers=len(receivers),
            n_senders=len(points),
        )
        return edges if weights is None else edges.weighted(weights)

    def _checked_frames(self, name: str, x: Tensor, frames: Tensor | None) -> Tensor:
        """The frames at points of the domain, by default those of `frames`."""
        self._check_inside(name, x)
        frames = self.frames(x) if frames is None else frames
        check_frames(frames, self.form(x), self.metric, len(x))
        return frames

    def _pairs(
        self, points: Tensor, receivers: Tensor, coordinate_radius: float | Sequence[float]
    ) -> tuple[Tensor, Tensor]:
        """Receivers and senders whose coordinates differ by at most a radius for each."""
        near = radius_edges(
            points.detach(), coordinate_radius, receivers=receivers.detach(), period=self.periods,
            shape="box",
        )  # fmt: skip
        return near.receiver, near.sender

    def _near(
        self, position: Tensor, x: Tensor, y: Tensor, frames: Tensor, radius: float
    ) -> Tensor:
        """Whether edges from y to x, seen at a position in the frames at x, are short enough."""
        signs = torch.tensor(self.metric, dtype=position.dtype, device=position.device)
        sizes = torch.maximum(x.abs(), y.abs())  # as vectors in the frames
        sizes = components(frames, sizes, self.form(x), self.metric).abs().amax(-1)
        return (position.square() @ signs).abs() <= square_limit(radius, position, sizes)

    def _shortest(self, difference: Tensor) -> Tensor:
        periods = torch.tensor([p or math.inf for p in self.periods], dtype=torch.float64)
        periods = periods.to(difference.device)
        turns = (difference / periods).round()
        return difference - torch.where(turns == 0, 0.0, turns * periods)

    def _check(self, x: Tensor) -> Tensor:
        if x.dim() != 2 or x.shape[1] != self.dim or not x.is_floating_point():
            raise ValueError(
                f"coordinates must be a floating tensor (number, {self.dim}), got {x.dtype} of "
                f"shape {tuple(x.shape)}"
            )
        return x

    def _check_inside(self, name: str, x: Tensor) -> None:
        outside = ~self.inside(self._check(x))
        if outside.any():
            index = int(outside.nonzero()[0, 0])
            raise ValueError(
                f"{name} must be in the domain; number {index} is at {x[index].tolist()}"
            )


class _Flow:
    """The equations of geodesics and parallel transport, for torchdiffeq.

    Geodesics that leave the domain end there. The solver must not chase the jump of their velocity
    to its last digit: once steps are short, they are taken out, and the others go on.

    Args:
        chart: the space.
        start: (N, 2 + k, d): points, velocities, carried vectors.
    """

    def __init__(self, chart: Chart, start: Tensor):
        self.chart, self.start = chart, start
        self.ended = torch.zeros(len(start), dtype=torch.bool, device=start.device)
        self.outside = self.ended
        self.step = math.inf

    def __call__(self, _: Tensor, z: Tensor) -> Tensor:
        inside = self.chart.inside(z[:, 0]) & ~self.ended
        z = torch.where(inside[:, None, None], z, self.start)
        speed = z[:, 1]
        turn = torch.einsum("nkij,ni->nkj", self.chart.christoffel(z[:, 0]), speed)
        change = torch.cat([speed.unsqueeze(1), -z[:, 1:] @ turn.mT], 1)
        inside = inside & change.isfinite().all(-1).all(-1)
        self.outside = self.outside | ~inside
        return torch.where(inside[:, None, None], change, torch.zeros_like(change))

    def callback_step(self, _: Tensor, __: Tensor, step: Tensor) -> None:
        """The solver is about to try a step."""
        self.outside, self.step = self.ended, float(step)

    def norm(self, x: Tensor) -> Tensor:
        """The largest number: every geodesic of a batch is as accurate as if it were alone.

        The solver accepts steps for which it is below 1.
        """
        if bool((self.outside & ~self.ended).any()) and self.step < math.inf:
            if self.step <= BORDER:
                self.ended = self.outside
            return x.new_tensor(1e9)  # again, with a shorter step or without them
        return x.masked_fill(self.ended[:, None, None], 0.0).abs().max()


def _solve(matrix: Tensor, vector: Tensor) -> Tensor:
    """Newton's jump; none where the derivative is singular (conjugate points)."""
    solution, info = torch.linalg.solve_ex(matrix, vector.unsqueeze(-1))
    usable = (info == 0) & solution.isfinite().all(-1).all(-1)
    return torch.where(usable[:, None], solution.squeeze(-1), torch.zeros_like(vector))
