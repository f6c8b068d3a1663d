"use strict";
// Clifford algebras of a plane. A metric is a pair of signs: [1, 1] or [1, -1].
// Blades are 1, e1, e2, e12; the bits of a blade's number are its axes.
// Linear maps of multivectors are 4 × 4 matrices, row by row.

globalThis.explorer ??= {};

explorer.algebra = (() => {
  const GRADES = [0, 1, 1, 2];

  // e_A e_B = sign · e_(A xor B): one swap if e2 meets e1, and the metric of shared axes.
  function productSign(metric, a, b) {
    let sign = a & 2 && b & 1 ? -1 : 1;
    for (const axis of [0, 1]) if (a & b & (1 << axis)) sign *= metric[axis];
    return sign;
  }

  function product(metric, x, y) {
    const result = [0, 0, 0, 0];
    for (let a = 0; a < 4; a++) {
      for (let b = 0; b < 4; b++) result[a ^ b] += productSign(metric, a, b) * x[a] * y[b];
    }
    return result;
  }

  // The part of left multiplication by e_axis that raises the grade (∧), or lowers it (⌟).
  function leftPart(metric, axis, raises) {
    const matrix = new Float64Array(16);
    for (let blade = 0; blade < 4; blade++) {
      const bit = 1 << axis;
      if (!(blade & bit) === raises) {
        matrix[4 * (blade ^ bit) + blade] = productSign(metric, bit, blade);
      }
    }
    return matrix;
  }
  const wedge = (metric, axis) => leftPart(metric, axis, true);
  const contract = (metric, axis) => leftPart(metric, axis, false);

  function project(grade) {
    const matrix = new Float64Array(16);
    GRADES.forEach((own, blade) => (matrix[5 * blade] = own === grade ? 1 : 0));
    return matrix;
  }

  function multiply(a, b) {
    const result = new Float64Array(16);
    for (let i = 0; i < 4; i++) {
      for (let j = 0; j < 4; j++) {
        for (let k = 0; k < 4; k++) result[4 * i + j] += a[4 * i + k] * b[4 * k + j];
      }
    }
    return result;
  }

  // a + factor · b, in place
  function add(a, b, factor = 1) {
    for (let i = 0; i < 16; i++) a[i] += factor * b[i];
    return a;
  }

  const isSpacetime = (metric) => metric[0] !== metric[1];
  const eta = (metric, v) => metric[0] * v[0] * v[0] + metric[1] * v[1] * v[1];

  // The boost by a rapidity, or the rotation by an angle: [g11, g12, g21, g22].
  function element(metric, amount) {
    if (isSpacetime(metric)) {
      const [c, s] = [Math.cosh(amount), Math.sinh(amount)];
      return [c, s, s, c];
    }
    const [c, s] = [Math.cos(amount), Math.sin(amount)];
    return [c, -s, s, c];
  }

  const determinant = (g) => g[0] * g[3] - g[1] * g[2];
  const inverse = (g) => [g[3], -g[1], -g[2], g[0]].map((x) => x / determinant(g));
  const apply = (g, v) => [g[0] * v[0] + g[1] * v[1], g[2] * v[0] + g[3] * v[1]];

  // ρ(g): scalars stay, vectors move by g, bivectors by its determinant.
  function action(g) {
    const matrix = new Float64Array(16);
    matrix[0] = 1;
    [matrix[5], matrix[6], matrix[9], matrix[10]] = g;
    matrix[15] = determinant(g);
    return matrix;
  }

  return {
    GRADES, product, wedge, contract, project, multiply, add,
    isSpacetime, eta, element, inverse, apply, action,
  };
})();
