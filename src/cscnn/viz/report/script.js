"use strict";

// Fields: bytes in base64, one code per point, coloured here.
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const short = (x) => Number(x.toPrecision(3)).toString().replace("-", "−");
const missing = [128, 128, 128]; // what is not a number

function viewer(root) {
  const data = JSON.parse(root.querySelector("script").textContent);
  const blobs = data.blobs.map(bytes);
  const maps = Object.fromEntries(Object.entries(data.maps).map(([k, v]) => [k, bytes(v)]));
  const slider = root.querySelector("input[type=range]");
  const button = root.querySelector(".play");
  const when = root.querySelector(".when");
  const canvases = [...root.querySelectorAll("canvas")];
  let quantity = 0;
  let frame = 0;
  let timer = null;

  function paint(canvas) {
    const shown = data.quantities[quantity];
    const { run, part, name } = canvas.dataset;
    const codes = blobs[shown.runs[run][part]];
    const map = maps[part === "error" ? "error" : shown.map];
    const size = shown.width * shown.height;
    canvas.width = shown.width;
    canvas.height = shown.height;
    const context = canvas.getContext("2d");
    const image = context.createImageData(shown.width, shown.height);
    for (let i = 0; i < size; i++) {
      const code = codes[frame * size + i];
      for (let c = 0; c < 3; c++) {
        image.data[4 * i + c] = code === 255 ? missing[c] : map[3 * code + c];
      }
      image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    canvas.setAttribute("aria-label", `${part} of ${shown.label}, ${name}${moment(", ")}`);
  }

  function moment(before) {
    if (!slider) return "";
    return `${before}step ${data.steps[frame]}, t = ${short(data.times[frame])} ${data.unit}`.trimEnd();
  }

  function gradient(map) {
    const stops = [];
    for (let i = 0; i < 255; i += 12) {
      stops.push(`rgb(${map[3 * i]} ${map[3 * i + 1]} ${map[3 * i + 2]})`);
    }
    return `linear-gradient(90deg, ${stops.join(",")})`;
  }

  function draw() {
    const shown = data.quantities[quantity];
    canvases.forEach(paint);
    for (const label of root.querySelectorAll(".relative")) {
      const value = shown.runs[label.dataset.run].relative[frame];
      label.textContent = value === null ? "" : `relative error ${short(100 * value)} %`;
    }
    for (const scale of root.querySelectorAll(".scale")) {
      const error = scale.dataset.part === "error";
      const [low, high] = error ? [-shown.error, shown.error] : shown.limits;
      scale.querySelector(".low").textContent = short(low);
      scale.querySelector(".high").textContent = short(high);
      scale.querySelector("i").style.background = gradient(maps[error ? "error" : shown.map]);
    }
    if (slider) {
      slider.value = frame;
      slider.setAttribute("aria-valuetext", moment(""));
      when.textContent = moment("");
    }
    root.dataset.frame = frame;
    root.dataset.quantity = quantity;
  }

  function go(to) {
    frame = Math.max(0, Math.min(to, Math.max(data.steps.length, 1) - 1));
    draw();
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    if (button) button.textContent = "Play";
  }

  for (const input of root.querySelectorAll("input[type=radio]")) {
    input.addEventListener("change", () => {
      quantity = Number(input.value);
      draw();
    });
    if (input.checked) quantity = Number(input.value); // browsers remember
  }
  if (slider) {
    slider.addEventListener("input", () => {
      stop();
      go(Number(slider.value));
    });
    button.addEventListener("click", () => {
      if (timer !== null) return stop();
      button.textContent = "Pause";
      timer = setInterval(() => go((frame + 1) % data.steps.length), 250);
    });
  }
  // report.html#frame=3 opens the page at a frame.
  const wanted = /[#&]frame=(\d+)/.exec(location.hash);
  go(wanted ? Number(wanted[1]) : 0);
}

document.querySelectorAll(".viewer").forEach(viewer);
