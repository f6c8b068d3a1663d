"use strict";
// Kernels K(v) from one grade to another: a steerable one, a differential one, and a control.
// Each is a list of taps {v, matrix}. Distances are in grid points.

globalThis.explorer ??= {};

explorer.kernels = (() => {
  const { wedge, contract, project, multiply, add, eta, GRADES } = explorer.algebra;

  // The families of O(p, q)-steerable kernels that map a grade to a grade: all there are.
  function families(input, output) {
    if (output === input + 1) return ["wedge"];
    if (output === input - 1) return ["contract"];
    if (output !== input) return [];
    return input === 1 ? ["project", "stretch"] : ["project"];
  }

  // How much of each family: `share` is that of the second one, where there are two.
  function weights(input, output, share) {
    const kinds = families(input, output);
    return kinds.map((kind, i) => [kind, kinds.length === 1 ? 1 : i ? share : 1 - share]);
  }

  // v∧ and v⌟ of a vector
  const byVector = (part, metric, v) =>
    add(add(new Float64Array(16), part(metric, 0), v[0]), part(metric, 1), v[1]);

  // A basis kernel at v: P, v∧(v⌟P), v∧P or v⌟P on one grade.
  function basis(metric, kind, grade, v) {
    const onGrade = project(grade);
    if (kind === "project") return onGrade;
    const last = byVector(kind === "wedge" ? wedge : contract, metric, v);
    if (kind !== "stretch") return multiply(last, onGrade);
    return multiply(byVector(wedge, metric, v), multiply(last, onGrade));
  }

  // A function of the orbit: a smooth ring, or a hyperbola, where η(v, v) is that of the shell.
  const profile = (value, shell, width) =>
    Math.exp(-((value - shell * Math.abs(shell)) ** 2) / (2 * width * width));

  // K(v) = sum of share · profile(η) · basis kernel / length^degree
  function steerable(metric, { input, output, share, shell, width = 4, length = 2 }) {
    return (v) => {
      const matrix = new Float64Array(16);
      for (const [kind, weight] of weights(input, output, share)) {
        const degree = { project: 0, stretch: 2 }[kind] ?? 1;
        const factor = (weight * profile(eta(metric, v), shell, width)) / length ** degree;
        add(matrix, basis(metric, kind, input, v), factor);
      }
      return matrix;
    };
  }

  // No steerable kernel: fixed numbers for all directions, under an oblique bump off the centre.
  const FIXED = [1, 0.7, -0.4, 1, 1, 1, 0.6, -0.4, -0.3, 0.2, -0.8, 1, 1, 0.4, 1, 1];
  function control(metric, { input, output }) {
    const mixing = Float64Array.from(FIXED, (number, at) =>
      GRADES[at >> 2] === output && GRADES[at & 3] === input ? number : 0);
    return (v) => {
      const [a, b] = [v[0] - 1, v[1] + 1];
      const [along, across] = [0.8 * a + 0.6 * b, 0.8 * b - 0.6 * a];
      const height = Math.exp(-(along * along) / 9 - across * across);
      return mixing.map((entry) => entry * height);
    };
  }

  // A kernel on a box of taps.
  function sample(kernel, radius) {
    const taps = [];
    for (let i = -radius; i <= radius; i++) {
      for (let j = -radius; j <= radius; j++) taps.push({ v: [i, j], matrix: kernel([i, j]) });
    }
    return taps;
  }

  // Central differences: weights of f(-r), ..., f(r) in the derivative at 0. They are `order`! times
  // the coefficients of x^order in the polynomials that are 1 at one point and 0 at the others.
  function difference(order, radius) {
    const points = Array.from({ length: 2 * radius + 1 }, (_, i) => i - radius);
    return points.map((own) => {
      let polynomial = [1];
      for (const other of points) {
        if (other === own) continue;
        const raised = [0, ...polynomial];
        polynomial.push(0);
        polynomial = raised.map((x, k) => (x - other * polynomial[k]) / (own - other));
      }
      let factorial = 1;
      for (let k = 2; k <= order; k++) factorial *= k;
      return factorial * polynomial[order];
    });
  }

  // The differential operator of a family: v becomes ∇ = sum η_i e_i ∂_i, and the first family has
  // □ = sum η_i ∂_i² in front. Derivatives become central differences.
  function differential(metric, { input, output, share, radius }) {
    const stencils = [0, 1, 2].map((order) => difference(order, radius));
    const along = (matrix, orders, factor) => ({ matrix, orders, factor });
    const unit = (axis) => [axis === 0 ? 1 : 0, axis === 1 ? 1 : 0];
    const terms = [];
    for (const [kind, weight] of weights(input, output, share)) {
      for (const i of [0, 1]) {
        if (kind === "project") {
          terms.push(along(project(input), unit(i).map((n) => 2 * n), weight * metric[i]));
        } else if (kind !== "stretch") {
          terms.push(along(basis(metric, kind, input, unit(i)), unit(i), weight * metric[i]));
        } else {
          for (const j of [0, 1]) {
            const lowered = multiply(contract(metric, j), project(input));
            const orders = unit(i).map((n, axis) => n + unit(j)[axis]);
            const factor = weight * metric[i] * metric[j];
            terms.push(along(multiply(wedge(metric, i), lowered), orders, factor));
          }
        }
      }
    }
    return sample(([a, b]) => {
      const total = new Float64Array(16);
      for (const { matrix, orders, factor } of terms) {
        const tap = stencils[orders[0]][a + radius] * stencils[orders[1]][b + radius];
        add(total, matrix, factor * tap);
      }
      return total;
    }, radius);
  }

  return { families, basis, profile, steerable, control, sample, difference, differential };
})();
