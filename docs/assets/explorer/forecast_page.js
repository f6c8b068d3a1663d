"use strict";
// The page of forecasts: diagrams of spacetime at rest and in motion, and the field at one time.

(() => {
  const root = document.getElementById("forecast-explorer");
  const data = globalThis.forecastData;
  const { colours, canvas, controls } = explorer;
  const { element, slider, menu, row, redrawing, percent, signed } = controls;

  const RIGHT = (data.points * data.spacing) / 2;
  const UP = (data.frames * data.spacing) / 2;
  const ERROR_LIMIT = 1; // the field goes from 0 to 2
  const FRAME_TIME = 120; // milliseconds

  const state = { frame: 0, observer: 2, network: 0 };

  // Two bytes for each number, the smaller first.
  function decode(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const [low, high] = data.limits;
    return Float64Array.from({ length: bytes.length / 2 }, (_, i) =>
      low + ((high - low) * view.getUint16(2 * i, true)) / 65535);
  }
  const truths = data.truths.map(decode);
  const forecasts = data.networks.map(({ forecasts: all }) => all.map(decode));

  const timeOf = (frame) => (frame - (data.frames - 1) / 2) * data.spacing;
  const rowOf = (values, frame) =>
    values.subarray(frame * data.points, (frame + 1) * data.points);
  const size = (values) => Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length);

  // --- controls -------------------------------------------------------------------------------

  const bar = element("div", { parent: root, class: "explorer-controls" });
  slider(bar, "Rapidity of the second observer", {
    name: "observer", min: 0, max: data.rapidities.length - 1, step: 1, value: state.observer,
    words: (number) => {
      const rapidity = data.rapidities[number];
      return `${rapidity.toFixed(2)}, velocity ${Math.tanh(rapidity).toFixed(2)} c`;
    },
    change: (number) => {
      state.observer = number;
      request();
    },
  });
  menu(bar, "Network", {
    name: "network", value: state.network,
    options: data.networks.map(({ label }, number) => [number, label]),
    change: (number) => {
      state.network = Number(number);
      request();
    },
  });
  const main = element("div", { parent: root, class: "explorer-controls explorer-main" });
  const time = slider(main, "Time of the observers", {
    name: "time", min: 0, max: data.frames - 1, step: 1, value: state.frame,
    words: (frame) => `t = ${signed(timeOf(frame), 1)}`,
    change: (frame) => {
      stop();
      go(frame);
    },
  });
  const play = element("button", { parent: main, type: "button", class: "explorer-play" });

  let timer = null;
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶ Play";
  }
  play.addEventListener("click", () => {
    if (timer !== null) return stop();
    play.textContent = "❚❚ Pause";
    timer = setInterval(() => go((state.frame + 1) % data.frames), FRAME_TIME);
  });
  stop();

  function go(frame) {
    state.frame = frame;
    time.set(frame);
    request();
  }

  // --- panels ---------------------------------------------------------------------------------

  const CAPTIONS = ["truth", "forecast", "error", "now (dashed: forecast)"];
  const rows = ["At rest, as in training", "In motion"].map((title) =>
    row(root, title, CAPTIONS, (made) => new canvas.Panel(made, RIGHT, UP)));

  // --- drawing --------------------------------------------------------------------------------

  function drawDiagram(own, values, colour, palette) {
    own.clear();
    own.image(data.points, data.frames, (column, line) =>
      colour(values[line * data.points + column]));
    const now = timeOf(state.frame);
    const [left, right] = [-RIGHT, RIGHT];
    const later = [[left, now], [right, now], [right, UP], [left, UP]];
    own.path(later, { closed: true, fill: palette.sequential(0), alpha: 0.7 });
    for (const side of [1, -1]) {
      const cone = [[-side * UP, -UP], [side * UP, UP]];
      own.path(cone, { colour: palette.faint, width: 1, dash: [4, 4] });
    }
    own.path([[left, now], [right, now]], { colour: palette.accent, width: 1.5 });
  }

  // The field along space, from 0 at the bottom line to 2 at the top line.
  function drawCurves(own, truth, forecast, palette) {
    own.clear();
    const height = (value) => 0.8 * UP * (value - 1);
    for (const level of [0, 1, 2]) {
      const line = [[-RIGHT, height(level)], [RIGHT, height(level)]];
      own.path(line, { colour: palette.faint, width: 0.6, dash: level === 1 ? [2, 4] : [] });
      own.text(String(level), [-0.94 * RIGHT, height(level) + 0.05 * UP], palette.faint);
    }
    const points = (values) => [...rowOf(values, state.frame)].map((value, i) => [
      (i - (data.points - 1) / 2) * data.spacing, height(value)]);
    own.path(points(truth), { colour: palette.ink, width: 2 });
    own.path(points(forecast), { colour: palette.accent, width: 2, dash: [5, 3] });
  }

  function draw() {
    const palette = colours.current();
    rows.forEach(({ note, error, panels }, number) => {
      const observer = number === 0 ? 0 : state.observer;
      const rapidity = data.rapidities[observer];
      const [truth, forecast] = [truths[observer], forecasts[state.network][observer]];
      const difference = forecast.map((x, i) => x - truth[i]);
      const field = (x) => palette.sequential(x / 2);
      drawDiagram(panels[0], truth, field, palette);
      drawDiagram(panels[1], forecast, field, palette);
      drawDiagram(panels[2], difference, (x) => palette.diverging(x / ERROR_LIMIT), palette);
      drawCurves(panels[3], truth, forecast, palette);
      const [all, now] = [size(difference), size(rowOf(difference, state.frame))];
      const { parameters } = data.networks[state.network];
      note.textContent = number === 0
        ? `${parameters.toLocaleString("en")} parameters, forecasts ${data.ahead} ahead`
        : `rapidity ${rapidity}`;
      error.textContent =
        `error now ${percent(now / size(truth))}, of all times ${percent(all / size(truth))}`;
      error.dataset.error = all / size(truth);
    });
    root.dataset.frame = state.frame;
    root.dataset.drawn = Number(root.dataset.drawn ?? 0) + 1;
  }

  state.frame = Math.round(0.6 * data.frames);
  time.set(state.frame);
  const request = redrawing(root, draw);
})();
