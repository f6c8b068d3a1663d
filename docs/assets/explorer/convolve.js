"use strict";
// Both ways around the diagram of equivariance, in double precision:
//   transform, then convolve: taps meet the moved field on the grid;
//   convolve, then transform: taps meet the field itself, at the points that g moves to the grid.
// Fields are known everywhere, so neither interpolates, and no border is near.

globalThis.explorer ??= {};

explorer.convolve = (() => {
  const { sample, moved } = explorer.fields;

  // Taps that are not zero, and of these the entries: [v1, v2, [[output, input, value], ...]]
  function sparse(taps) {
    const rows = taps.map(({ v, matrix }) => [
      v[0], v[1],
      [...matrix].map((value, at) => [at >> 2, at & 3, value]).filter(([, , value]) => value !== 0),
    ]);
    return rows.filter(([, , entries]) => entries.length);
  }

  const radiusOf = (taps) => Math.max(...taps.map(({ v }) => Math.abs(v[0])));

  // sum over v of K(v) f(x + v), where all taps are on the grid: (size - 2 radius)² × 4
  function onGrid(values, size, taps) {
    const radius = radiusOf(taps);
    const inner = size - 2 * radius;
    const result = new Float64Array(4 * inner * inner);
    for (const [a, b, entries] of sparse(taps)) {
      for (const [output, input, value] of entries) {
        for (let i = 0; i < inner; i++) {
          const from = 4 * ((i + radius + a) * size + radius + b) + input;
          const to = 4 * i * inner + output;
          for (let j = 0; j < inner; j++) result[to + 4 * j] += value * values[from + 4 * j];
        }
      }
    }
    return result;
  }

  // The same sum as a field: it can be asked for at any point.
  function everywhere(field, taps) {
    const rows = sparse(taps);
    const x = new Float64Array(4);
    return (p1, p2, out) => {
      out.fill(0);
      for (const [a, b, entries] of rows) {
        field(p1 + a, p2 + b, x);
        for (const [output, input, value] of entries) out[output] += value * x[input];
      }
    };
  }

  // Both ways, their difference, and its size: largest difference by largest value.
  function diagram(field, g, taps, size) {
    const outer = size + 2 * radiusOf(taps);
    const first = onGrid(sample(moved(field, g), outer), outer, taps);
    const second = sample(moved(everywhere(field, taps), g), size);
    const difference = first.map((x, i) => x - second[i]);
    return { first, second, difference, error: largest(difference) / largest(second) };
  }

  const largest = (values) => values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);

  return { onGrid, everywhere, diagram, largest };
})();
