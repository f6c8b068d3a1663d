"use strict";
// Multivector fields in closed form, so that they are known at every point, in every frame.
// A field is a function (p1, p2, out) that writes the four blades at a point into `out`.

globalThis.explorer ??= {};

explorer.fields = (() => {
  const { inverse, action } = explorer.algebra;

  // Each bump: centre 1, centre 2, width, multivector
  const BUMPS = [
    [-4.5, -3.5, 3.6, [1.0, 0.5, 0.9, 0.4]],
    [4.0, 0.5, 4.0, [-0.8, 0.9, -0.5, 0.9]],
    [-0.5, 5.0, 3.4, [0.5, -0.4, -0.8, -1.0]],
  ];

  const bumps = () => (p1, p2, out) => {
    out.fill(0);
    for (const [a, b, width, amplitude] of BUMPS) {
      const distance = (p1 - a) * (p1 - a) + (p2 - b) * (p2 - b);
      const height = Math.exp(-distance / (2 * width * width));
      for (let blade = 0; blade < 4; blade++) out[blade] += height * amplitude[blade];
    }
  };

  // A kink of the sine-Gordon equation at rest, φ = 4 arctan exp s with s along the second axis:
  // 1 - cos φ as scalar, ∇φ and the flow of energy as vector, sin φ as bivector.
  const KINK_WIDTH = 4;
  const kink = (metric) => (p1, p2, out) => {
    const s = p2 / KINK_WIDTH;
    const slope = 1 / Math.cosh(s);
    out[0] = out[1] = 2 * slope * slope;
    out[2] = metric[1] * 2 * slope;
    out[3] = -2 * slope * Math.tanh(s);
  };

  const KINDS = { bumps, kink };

  // The field moved by g: x -> ρ(g) f(g⁻¹ x)
  function moved(field, g) {
    const [a, b, c, d] = inverse(g);
    const rho = action(g);
    return (p1, p2, out) => {
      field(a * p1 + b * p2, c * p1 + d * p2, out);
      transform(rho, out);
    };
  }

  // A matrix times a multivector, in place.
  function transform(matrix, x) {
    const [x0, x1, x2, x3] = x;
    for (let i = 0; i < 4; i++) {
      const row = 4 * i;
      x[i] = matrix[row] * x0 + matrix[row + 1] * x1 + matrix[row + 2] * x2 + matrix[row + 3] * x3;
    }
  }

  // Values (size × size × 4) on grid points around the origin.
  function sample(field, size) {
    const values = new Float64Array(4 * size * size);
    const [out, middle] = [new Float64Array(4), (size - 1) / 2];
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) {
        field(i - middle, j - middle, out);
        values.set(out, 4 * (i * size + j));
      }
    }
    return values;
  }

  return { KINDS, moved, transform, sample };
})();
