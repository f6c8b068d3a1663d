"use strict";
// The page of kernels: a field, three kernels, and both ways around the diagram of equivariance.

(() => {
  const root = document.getElementById("kernel-explorer");
  const { algebra, kernels, fields, convolve, colours, canvas, controls, drawing } = explorer;
  const { element, slider, menu, row, redrawing, percent, signed } = controls;

  const SIZE = 33; // grid points along each axis
  const BOX = 5; // the box of taps has 2 · 5 + 1 along each axis
  const DIFFERENCES = 4;
  const REACH = { spacetime: 12.5, plane: 8 }; // of the largest box that can be seen
  const FIELD_LIMITS = { bumps: 1.6, kink: 2.8 };
  const METRICS = { spacetime: [1, -1], plane: [1, 1] };
  const GRADE_NAMES = ["scalar", "vector", "bivector"];
  const TAPS = `${2 * BOX + 1} × ${2 * BOX + 1} taps`;

  const state = {
    space: "spacetime", rapidity: 0.4, angle: 35, field: "bumps",
    input: 0, output: 1, share: 0.5, shell: 1.5,
  };

  // What each kernel is called, its taps, and its formula for the chosen grades.
  const KERNELS = {
    steerable: {
      title: "Steerable kernel on a box",
      taps: (metric) => kernels.sample(kernels.steerable(metric, state), BOX),
      formula: () => `K(v) = ${formula("α(η) P", "β(η) v∧(v⌟P", "γ(η) v∧P", "δ(η) v⌟P")}, ${TAPS}`,
    },
    differential: {
      title: "Differential kernel",
      taps: (metric) => kernels.differential(metric, { ...state, radius: DIFFERENCES }),
      formula: () => `L = ${formula("□P", "∇∧(∇⌟P", "∇∧P", "∇⌟P")}, by central differences`,
    },
    control: {
      title: "Control: not steerable",
      taps: (metric) => kernels.sample(kernels.control(metric, state), BOX),
      formula: () => `one matrix for all directions, under an oblique bump, ${TAPS}`,
    },
  };

  function formula(project, stretch, wedge, contract) {
    const names = { project, stretch, wedge, contract };
    const grade = "₀₁₂"[state.input];
    const parts = kernels.families(state.input, state.output).map(
      (kind) => names[kind] + grade + (kind === "stretch" ? ")" : ""),
    );
    return parts.join(" + ");
  }

  // --- controls -------------------------------------------------------------------------------

  const bar = element("div", { parent: root, class: "explorer-controls" });
  const set = (name) => (value) => {
    state[name] = value;
    update();
  };
  menu(bar, "Space", {
    name: "space", value: state.space, change: set("space"),
    options: [["spacetime", "spacetime (+, −)"], ["plane", "plane (+, +)"]],
  });
  menu(bar, "Field", {
    name: "field", value: state.field, change: set("field"),
    options: [["bumps", "three bumps"], ["kink", "a kink at rest"]],
  });
  const grades = GRADE_NAMES.map((name, grade) => [grade, name]);
  menu(bar, "Input grade", {
    name: "input", value: state.input, options: grades, change: (x) => set("input")(Number(x)),
  });
  const output = menu(bar, "Output grade", {
    name: "output", value: state.output, options: grades, change: (x) => set("output")(Number(x)),
  });
  const shell = slider(bar, "Orbit of the kernel, √|η|", {
    name: "shell", min: -2.5, max: 2.5, step: 0.1, value: state.shell,
    words: (x) => `${Math.abs(x).toFixed(1)} points${side(x)}`, change: set("shell"),
  });
  const share = slider(bar, "Share of β", {
    name: "share", min: 0, max: 1, step: 0.05, value: state.share,
    words: (x) => `${Math.round(100 * x)} %`, change: set("share"),
  });

  const main = element("div", { parent: root, class: "explorer-controls explorer-main" });
  const rapidity = slider(main, "Rapidity of the boost", {
    name: "rapidity", min: -0.8, max: 0.8, step: 0.01, value: state.rapidity,
    words: (x) => `${signed(x, 2)}, velocity ${signed(Math.tanh(x), 2)} c`, change: set("rapidity"),
  });
  const angle = slider(main, "Angle of the rotation", {
    name: "angle", min: -180, max: 180, step: 1, value: state.angle,
    words: (x) => `${signed(x, 0)}°`, change: set("angle"),
  });

  function side(x) {
    if (state.space === "plane") return "";
    return x === 0 ? ", the light cone" : x > 0 ? ", time-like" : ", space-like";
  }

  // --- panels ---------------------------------------------------------------------------------

  const rowOf = (title, captions) =>
    row(root, title, captions, (made) => new canvas.Panel(made, SIZE / 2));
  const fieldRow = rowOf("Field", ["scalar, vector", "bivector", "moved: scalar, vector",
    "moved: bivector"]);
  const kernelRows = Object.fromEntries(Object.entries(KERNELS).map(([name, { title }]) => {
    const captions = ["kernel, moved", "transform, then convolve", "convolve, then transform",
      "difference"];
    const made = rowOf(title, captions);
    made.error.dataset.kernel = name;
    return [name, made];
  }));

  // --- drawing --------------------------------------------------------------------------------

  function drawFields(metric, g, field, palette) {
    const { panels } = fieldRow;
    [[1, 0, 0, 1], g].forEach((frame, number) => {
      const values = fields.sample(fields.moved(field, frame), SIZE);
      [[0, 1], [2]].forEach((shown, half) => {
        const own = panels[2 * number + half];
        own.clear();
        const limit = FIELD_LIMITS[state.field];
        drawing.drawField(own, metric, values, SIZE, shown, limit, palette);
        drawing.drawFrame(own, metric, frame, palette, SIZE / 2);
      });
    });
  }

  function drawRow(name, metric, g, field, palette) {
    const { panels, error, note } = kernelRows[name];
    const taps = KERNELS[name].taps(metric);
    const way = convolve.diagram(field, g, taps, SIZE);
    const reach = REACH[state.space];
    const curve = name === "steerable" ? drawing.orbit(metric, state.shell, reach * 0.8) : null;
    panels[0].right = panels[0].up = reach;
    panels.forEach((own) => own.clear());
    drawing.drawKernel(panels[0], metric, g, taps, { ...state, curve }, palette);
    const limit = convolve.largest(way.second);
    [way.first, way.second, way.difference].forEach((values, number) => {
      drawing.drawField(panels[1 + number], metric, values, SIZE, [state.output], limit, palette);
    });
    error.textContent = `difference ${percent(way.error)}`;
    error.dataset.error = way.error;
    note.textContent = KERNELS[name].formula();
  }

  function draw() {
    const metric = METRICS[state.space];
    const spacetime = state.space === "spacetime";
    const amount = spacetime ? state.rapidity : (state.angle * Math.PI) / 180;
    const g = algebra.element(metric, amount);
    const field = fields.KINDS[state.field](metric);
    const palette = colours.current();
    drawFields(metric, g, field, palette);
    for (const name of Object.keys(KERNELS)) drawRow(name, metric, g, field, palette);
    fieldRow.note.textContent = spacetime
      ? "time points up; dashed: the light cone; green: the axes of the frame"
      : "green: the axes of the frame";
    root.dataset.drawn = Number(root.dataset.drawn ?? 0) + 1;
  }

  // Show what belongs to the choices: grades that a steerable kernel joins, and their sliders.
  function settle() {
    const spacetime = state.space === "spacetime";
    [rapidity.box.hidden, angle.box.hidden] = [!spacetime, spacetime];
    for (const option of output.select.options) {
      const none = kernels.families(state.input, Number(option.value)).length === 0;
      option.disabled = none;
      option.textContent = GRADE_NAMES[option.value] + (none ? " (no steerable kernel)" : "");
    }
    if (output.select.selectedOptions[0].disabled) {
      state.output = 1;
      output.select.value = 1;
    }
    share.box.hidden = kernels.families(state.input, state.output).length < 2;
    shell.input.min = spacetime ? -2.5 : 0;
    shell.tell();
    state.shell = Number(shell.input.value);
  }

  settle();
  const request = redrawing(root, draw);
  function update() {
    settle();
    request();
  }
})();
