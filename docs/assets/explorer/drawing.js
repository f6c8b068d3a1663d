"use strict";
// Pictures of multivector fields and of kernels. In spacetime the first axis, time, points up; in
// the plane the first axis points to the right.

globalThis.explorer ??= {};

explorer.drawing = (() => {
  const { GRADES, isSpacetime, apply, action, inverse, multiply } = explorer.algebra;

  const onScreen = (metric, v) => (isSpacetime(metric) ? [v[1], v[0]] : [v[0], v[1]]);
  const axisNames = (metric) => (isSpacetime(metric) ? ["t", "x"] : ["x", "y"]);
  function bladeName(metric, blade) {
    const [first, second] = axisNames(metric);
    return ["1", first, second, first + second][blade];
  }

  // A grade of values (size × size × 4): numbers as colours, vectors as arrows over their length.
  function drawField(panel, metric, values, size, grades, limit, palette) {
    const at = (i, j) => 4 * (i * size + j);
    const cell = (column, row) => at(...onScreen(metric, [column, row]));
    const length = (k) => Math.hypot(values[k + 1], values[k + 2]);
    panel.image(size, size, (column, row) => {
      const k = cell(column, row);
      if (grades.includes(0)) return palette.diverging((0.85 * values[k]) / limit);
      if (grades.includes(2)) return palette.diverging((0.85 * values[k + 3]) / limit);
      return palette.sequential((0.85 * length(k)) / limit);
    });
    if (!grades.includes(1)) return;
    const middle = (size - 1) / 2;
    for (let i = 2; i < size; i += 4) {
      for (let j = 2; j < size; j += 4) {
        const k = at(i, j);
        const v = [values[k + 1], values[k + 2]].map((x) => (4.6 * x) / limit);
        panel.arrow(onScreen(metric, [i - middle, j - middle]), onScreen(metric, v), palette.ink);
      }
    }
  }

  // The axes of the moved frame, and in spacetime the light cone, which no boost moves.
  function drawFrame(panel, metric, g, palette, reach) {
    if (isSpacetime(metric)) {
      for (const side of [1, -1]) {
        const end = [reach, side * reach];
        panel.path([end, end.map((x) => -x)], { colour: palette.faint, width: 1.2, dash: [4, 4] });
      }
    }
    axisNames(metric).forEach((name, axis) => {
      const tip = apply(g, [axis === 0 ? 1 : 0, axis === 1 ? 1 : 0]);
      const scale = (0.82 * reach) / Math.max(...tip.map(Math.abs));
      const end = onScreen(metric, tip.map((x) => scale * x));
      const label = onScreen(metric, tip.map((x) => 1.1 * scale * x));
      panel.path([end.map((x) => -x), end], { colour: palette.accent, width: 1.2 });
      panel.text(name, label, palette.accent);
    });
  }

  // Taps seen after g: each a cell at g v, coloured by what ρ(g) K(v) ρ(g)⁻¹ has for some blades.
  function drawTaps(panel, metric, g, taps, { middle, scale, curve, colour, arrow }, palette) {
    const place = (v) => {
      const p = onScreen(metric, apply(g, v));
      return [middle[0] + scale * p[0], middle[1] + scale * p[1]];
    };
    const square = (v, half) =>
      [[-1, -1], [-1, 1], [1, 1], [1, -1]].map(([a, b]) => place([v[0] + a * half, v[1] + b * half]));
    for (const { v, matrix } of taps) {
      panel.path(square(v, 0.52), { closed: true, fill: colour(matrix) });
    }
    for (const { v, matrix } of arrow ? taps : []) {
      panel.arrow(place(v), onScreen(metric, arrow(matrix)), palette.ink);
    }
    const edge = Math.max(...taps.map(({ v }) => v[0])) + 0.5;
    panel.path(square([0, 0], edge), { colour: palette.accent, width: 1.2, closed: true });
    for (const branch of curve ?? []) {
      const points = branch.map((v) => place(apply(inverse(g), v)));
      panel.path(points, { colour: palette.faint, width: 1, dash: [3, 3] });
    }
  }

  // Between a vector and a number: arrows. Otherwise a picture for each pair of blades, with the
  // output's in rows and the input's in columns.
  function drawKernel(panel, metric, g, taps, { input, output, curve }, palette) {
    const [rho, back] = [action(g), action(inverse(g))];
    const seen = taps.map(({ v, matrix }) => ({ v, matrix: multiply(rho, multiply(matrix, back)) }));
    const largest = Math.max(...taps.map(({ matrix }) => Math.max(...matrix.map(Math.abs))), 1e-300);
    const blades = (grade) => [0, 1, 2, 3].filter((blade) => GRADES[blade] === grade);
    const [rows, columns] = [blades(output), blades(input)];
    if (rows.length !== columns.length) {
      const both = rows.flatMap((c) => columns.map((b) => 4 * c + b));
      const pair = (matrix) => both.map((at) => matrix[at] / largest);
      const colour = (matrix) => palette.sequential(0.85 * Math.hypot(...pair(matrix)));
      const arrow = (matrix) => pair(matrix).map((x) => 2 * x);
      const all = { middle: [0, 0], scale: 1, curve, colour, arrow };
      drawTaps(panel, metric, g, seen, all, palette);
      return;
    }
    const scale = 1 / rows.length;
    rows.forEach((c, row) => columns.forEach((b, column) => {
      const middle = [
        panel.right * scale * (2 * column - columns.length + 1),
        -panel.up * scale * (2 * row - rows.length + 1),
      ];
      const colour = (matrix) => palette.diverging((0.95 * matrix[4 * c + b]) / largest);
      drawTaps(panel, metric, g, seen, { middle, scale, curve, colour }, palette);
      if (rows.length === 1) return;
      const words = `${bladeName(metric, b)} → ${bladeName(metric, c)}`;
      const left = [middle[0] - 0.92 * panel.right * scale, middle[1] + 0.86 * panel.up * scale];
      panel.text(words, left, palette.faint, "left");
    }));
  }

  // The orbit of a vector: a circle, or the two branches of a hyperbola.
  function orbit(metric, shell, reach) {
    const steps = Array.from({ length: 61 }, (_, k) => k / 30 - 1);
    if (!isSpacetime(metric)) {
      return [steps.map((s) => [shell * Math.cos(Math.PI * s), shell * Math.sin(Math.PI * s)])];
    }
    const largest = Math.asinh(reach / Math.max(Math.abs(shell), 0.05));
    return [1, -1].map((side) =>
      steps.map((s) => {
        const across = side * Math.abs(shell) * Math.cosh(s * largest);
        const along = Math.abs(shell) * Math.sinh(s * largest);
        return shell >= 0 ? [across, along] : [along, across];
      }),
    );
  }

  return { drawField, drawFrame, drawKernel, orbit };
})();
