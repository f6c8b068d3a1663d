"use strict";
// Labelled inputs of the browser itself, so that the keyboard and screen readers know them.

globalThis.explorer ??= {};

explorer.controls = (() => {
  let count = 0;

  function element(tag, { parent, text, ...attributes } = {}) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  function labelled(parent, label, kind) {
    const id = `explorer-${++count}`;
    const box = element("div", { parent, class: `explorer-control explorer-${kind}` });
    element("label", { parent: box, for: id, text: label });
    return { box, id };
  }

  // A slider that tells its value in words.
  function slider(parent, label, { min, max, step, value, words, change, name }) {
    const { box, id } = labelled(parent, label, "slider");
    const input = element("input", { parent: box, id, type: "range", min, max, step, name });
    input.value = value;
    const shown = element("output", { parent: box, for: id });
    const tell = () => {
      shown.textContent = words(Number(input.value));
      input.setAttribute("aria-valuetext", shown.textContent);
    };
    input.addEventListener("input", () => {
      tell();
      change(Number(input.value));
    });
    tell();
    return {
      box, input, tell,
      set(number) {
        input.value = number;
        tell();
      },
    };
  }

  // A menu; options are [value, text] pairs.
  function menu(parent, label, { options, value, change, name }) {
    const { box, id } = labelled(parent, label, "menu");
    const select = element("select", { parent: box, id, name });
    for (const [own, text] of options) element("option", { parent: select, value: own, text });
    select.value = value;
    select.addEventListener("change", () => change(select.value));
    return { box, select };
  }

  // A canvas with a caption above it.
  function panel(parent, caption, description) {
    const figure = element("figure", { parent, class: "explorer-panel" });
    element("figcaption", { parent: figure, text: caption });
    return element("canvas", { parent: figure, role: "img", "aria-label": description });
  }

  // A titled row of panels with a note and an error; make(canvas) gives what draws on a panel.
  function row(parent, title, captions, make) {
    const section = element("section", { parent, class: "explorer-row" });
    const head = element("div", { parent: section, class: "explorer-head" });
    element("strong", { parent: head, text: title });
    const note = element("span", { parent: head, class: "explorer-note" });
    const error = element("output", { parent: head, class: "explorer-error" });
    const strip = element("div", { parent: section, class: "explorer-panels" });
    const panels = captions.map((text) => make(panel(strip, text, `${title}: ${text}`)));
    return { note, error, panels };
  }

  // Draw at most once per picture of the screen; again when the page is resized or recoloured.
  function redrawing(root, draw) {
    let waiting = false;
    const request = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        draw();
      });
    };
    let width = root.clientWidth;
    new ResizeObserver(() => {
      if (root.clientWidth === width) return;
      width = root.clientWidth;
      request();
    }).observe(root);
    const scheme = { attributes: true, attributeFilter: ["data-md-color-scheme"] };
    new MutationObserver(request).observe(document.body, scheme);
    draw();
    return request;
  }

  // 0.000123 -> "0.012 %"
  function percent(x) {
    const value = 100 * x;
    if (value === 0) return "0 %";
    if (value < 1e-4) return "below 0.0001 %";
    return `${value >= 10 ? value.toFixed(0) : Number(value.toPrecision(2))} %`;
  }

  const signed = (x, digits) => (x < 0 ? "−" : "") + Math.abs(x).toFixed(digits);

  return { element, slider, menu, row, redrawing, percent, signed };
})();
