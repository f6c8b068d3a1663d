"use strict";
// Drawing on a canvas in coordinates (right, up) around the middle of a panel.

globalThis.explorer ??= {};

explorer.canvas = (() => {
  const { css } = explorer.colours;

  // A panel that shows [-right, right] × [-up, up].
  class Panel {
    constructor(canvas, right, up = right) {
      [this.canvas, this.right, this.up] = [canvas, right, up];
      canvas.style.aspectRatio = `${right} / ${up}`;
    }

    // Fit the canvas to its place on the page, and wipe it.
    clear() {
      const width = this.canvas.clientWidth || 200;
      const ratio = globalThis.devicePixelRatio || 1;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round((this.canvas.width * this.up) / this.right);
      this.context = this.canvas.getContext("2d");
      this.unit = this.canvas.width / (2 * this.right);
      this.line = ratio;
    }

    place([x, y]) {
      return [(x + this.right) * this.unit, (this.up - y) * this.unit];
    }

    // Pixels of colour(column, row), rows from below.
    image(columns, rows, colour) {
      const small = document.createElement("canvas");
      [small.width, small.height] = [columns, rows];
      const context = small.getContext("2d");
      const pixels = context.createImageData(columns, rows);
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
          const at = 4 * ((rows - 1 - row) * columns + column);
          pixels.data.set([...colour(column, row), 255], at);
        }
      }
      context.putImageData(pixels, 0, 0);
      this.context.imageSmoothingEnabled = false;
      this.context.drawImage(small, 0, 0, this.canvas.width, this.canvas.height);
    }

    path(points, { colour, width = 1, dash = [], closed = false, fill = null, alpha = 1 }) {
      const context = this.context;
      context.save();
      context.beginPath();
      points.forEach((p, i) => context[i ? "lineTo" : "moveTo"](...this.place(p)));
      if (closed) context.closePath();
      context.globalAlpha = alpha;
      if (fill) {
        context.fillStyle = css(fill);
        context.fill();
      }
      if (colour) {
        context.strokeStyle = colour;
        context.lineWidth = width * this.line;
        context.setLineDash(dash.map((d) => d * this.line));
        context.stroke();
      }
      context.restore();
    }

    // An arrow with its middle at p; v is its length and direction.
    arrow(p, v, colour) {
      const length = Math.hypot(...v);
      if (length * this.unit < 1.5 * this.line) return;
      const tail = [p[0] - v[0] / 2, p[1] - v[1] / 2];
      const tip = [p[0] + v[0] / 2, p[1] + v[1] / 2];
      const wing = (side) => [
        tip[0] - 0.35 * v[0] + side * 0.2 * v[1],
        tip[1] - 0.35 * v[1] - side * 0.2 * v[0],
      ];
      this.path([tail, tip], { colour, width: 1.2 });
      this.path([wing(1), tip, wing(-1)], { colour, width: 1.2 });
    }

    text(words, p, colour, align = "center") {
      const context = this.context;
      context.font = `${Math.round(11 * this.line)}px system-ui, sans-serif`;
      context.fillStyle = colour;
      context.textAlign = align;
      context.textBaseline = "middle";
      context.fillText(words, ...this.place(p));
    }
  }

  return { Panel };
})();
