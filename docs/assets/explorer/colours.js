"use strict";
// Colour maps with even steps of lightness, by interpolation in OKLab. Zero has the colour of the
// page, in light and in dark mode.

globalThis.explorer ??= {};

explorer.colours = (() => {
  // Anchors as [lightness, chroma, hue in degrees], from zero outwards.
  const SCHEMES = {
    light: {
      positive: [[1, 0, 0], [0.75, 0.15, 55], [0.45, 0.17, 28]],
      negative: [[1, 0, 0], [0.75, 0.11, 235], [0.42, 0.15, 262]],
      sequential: [[1, 0, 0], [0.87, 0.11, 90], [0.66, 0.18, 40], [0.36, 0.14, 355]],
      ink: "#22263a", faint: "#6a7087", accent: "#0b7a75",
    },
    dark: {
      positive: [[0.25, 0.02, 270], [0.58, 0.16, 35], [0.9, 0.12, 75]],
      negative: [[0.25, 0.02, 270], [0.56, 0.14, 258], [0.9, 0.08, 215]],
      sequential: [[0.25, 0.02, 270], [0.45, 0.14, 345], [0.66, 0.17, 40], [0.87, 0.13, 85]],
      ink: "#eceef5", faint: "#a4a9bd", accent: "#5fd4c8",
    },
  };

  function toLab([lightness, chroma, hue]) {
    const angle = (hue * Math.PI) / 180;
    return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
  }

  function toBytes([lightness, a, b]) {
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    const linear = [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ];
    return linear.map((x) => {
      const clipped = Math.min(1, Math.max(0, x));
      const encoded = clipped < 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
      return Math.round(255 * encoded);
    });
  }

  const STEPS = 128;
  function ramp(anchors) {
    const labs = anchors.map(toLab);
    return Array.from({ length: STEPS + 1 }, (_, step) => {
      const place = (step / STEPS) * (labs.length - 1);
      const from = Math.min(Math.floor(place), labs.length - 2);
      return toBytes(labs[from].map((x, i) => x + (place - from) * (labs[from + 1][i] - x)));
    });
  }

  function build({ positive, negative, sequential, ...inks }) {
    const [up, down, along] = [ramp(positive), ramp(negative), ramp(sequential)];
    const at = (table, x) => table[Math.round(STEPS * Math.min(1, Math.max(0, x)))];
    return {
      ...inks,
      // a number from -1 to 1, or from 0 to 1, as [red, green, blue]
      diverging: (x) => (x < 0 ? at(down, -x) : at(up, x)),
      sequential: (x) => at(along, x),
    };
  }

  const built = {};
  function current() {
    const dark = document.body.getAttribute("data-md-color-scheme") === "slate";
    const name = dark ? "dark" : "light";
    return (built[name] ??= build(SCHEMES[name]));
  }

  const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

  return { current, css };
})();
