// Inputs as cells: the pixels of an image, or neurons, overlaid with the weights of a branch.

import { color, fit, gray, show, signal, tint } from "./paint.js";

export class Grid {
  constructor(canvas) {
    Object.assign(this, { canvas, shape: null, values: [], weights: null });
  }

  setup(shape) { Object.assign(this, { shape, values: [], weights: null }); this.render(); }

  /** Values of all cells: 0 to 1 for pixels, otherwise any number. */
  update(values) { this.values = values; this.render(); }

  /** The weights of a branch, by input; null for none. */
  highlight(weights) { this.weights = weights; this.render(); }

  render() {
    const width = this.canvas.clientWidth;
    if (!this.shape || !width) return;
    const { tiles, height: rows, width: columns, of } = this.shape;
    const across = Math.ceil(Math.sqrt(tiles)), down = Math.ceil(tiles / across), gap = tiles > 1 ? 4 : 0;
    const size = Math.min((width - gap * (across - 1)) / (across * columns), 34);
    const left = (width - size * columns * across - gap * (across - 1)) / 2;
    const context = fit(this.canvas, width, size * rows * down + gap * (down - 1));
    const most = of === "pixels" ? 1 : this.values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-6);
    const heaviest = this.weights ? Math.max(1e-9, ...[...this.weights.values()].map(Math.abs)) : 1;
    const line = size > 5 ? 0.5 : 0;
    for (let input = 0; input < this.values.length; input++) {
      const tile = Math.floor(input / (rows * columns)), place = input % (rows * columns);
      const x = left + (tile % across) * (columns * size + gap) + (place % columns) * size;
      const y = Math.floor(tile / across) * (rows * size + gap) + Math.floor(place / columns) * size;
      const value = this.values[input] / most, weight = this.weights?.get(input);
      const dim = this.weights && weight === undefined ? 0.3 : 1;
      context.fillStyle = of === "pixels" ? gray(0.04 + 0.96 * Math.max(0, value) * dim) : signal(value * dim);
      context.fillRect(x, y, size - line, size - line);
      if (weight === undefined) continue;
      const share = weight / heaviest, inset = size > 5 ? Math.max(1, size * 0.18) : 0;
      context.fillStyle = tint(Math.sign(share) * (0.25 + 0.75 * Math.abs(share)));
      context.globalAlpha = 0.88;
      context.fillRect(x + inset, y + inset, size - line - 2 * inset, size - line - 2 * inset);
      context.globalAlpha = 1;
    }
  }
}

const LISTED = 12;

/** Inputs with names, such as the columns of a table: those with the largest weights, with weight and value. */
export class Named {
  constructor(list) { Object.assign(this, { list, names: [], values: [], weights: new Map() }); }

  setup(names) { Object.assign(this, { names, values: [] }); this.render(); }

  update(values) { this.values = values; this.render(); }

  highlight(weights) { this.weights = weights; this.render(); }

  render() {
    if (!this.names.length) return void this.list.replaceChildren();
    const order = [...this.weights].sort(([, one], [, other]) => Math.abs(other) - Math.abs(one));
    const heaviest = Math.max(1e-9, ...order.map(([, weight]) => Math.abs(weight)));
    const make = (kind, text) => Object.assign(document.createElement("span"), { className: kind, textContent: text });
    const rows = order.slice(0, LISTED).map(([input, weight]) => {
      const row = document.createElement("li"), bar = make(weight < 0 ? "bar minus" : "bar plus", "");
      bar.style.width = `${(100 * Math.abs(weight)) / heaviest}%`;
      row.append(make("name", this.names[input]), make("value", show(this.values[input] ?? NaN)), bar);
      return row;
    });
    const left = order.length - LISTED, text = `${left > 0 ? `and ${left} more; ` : ""}bars: weights; numbers: as the model reads them`;
    rows.push(Object.assign(document.createElement("li"), { className: "note", textContent: text }));
    this.list.replaceChildren(...rows);
  }
}

/** Draw weights as bars from a line in the middle, and what each sends as a darker bar in front of it. */
export function paintBars(canvas, weights, sent) {
  const width = canvas.clientWidth, height = 64;
  const context = fit(canvas, width, height);
  const heaviest = Math.max(1e-9, ...weights.map(Math.abs)), most = Math.max(1e-9, ...sent.map(Math.abs));
  const step = Math.min(width / weights.length, 26), gap = step > 4 ? 1.5 : 0, half = height / 2 - 1;
  weights.forEach((weight, i) => {
    const tall = (weight / heaviest) * half;
    context.fillStyle = color.idle;
    context.fillRect(i * step, half - Math.max(0, tall), step - gap, Math.max(1, Math.abs(tall)));
    const reach = (sent[i] / most) * half;
    context.fillStyle = signal(Math.sign(sent[i]));
    context.fillRect(i * step + step * 0.25, half - Math.max(0, reach), Math.max(1, step * 0.5 - gap / 2), Math.max(0.5, Math.abs(reach)));
  });
  context.fillStyle = color.quiet;
  context.fillRect(0, half, step * weights.length - gap, 0.7);
}

/** The neurons of a layer in a strip, colored by their output; one is selected with the pointer or keys. */
export class Strip {
  constructor(canvas, neurons, chosen) {
    Object.assign(this, { canvas, neurons, chosen, values: [], current: -1 });
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      const column = Math.floor((event.clientX - box.left) / this.size), row = Math.floor((event.clientY - box.top) / this.size);
      const neuron = row * this.columns + column;
      if (column < this.columns && neuron < neurons) chosen(neuron);
    });
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns }[event.key];
      if (!by) return;
      event.preventDefault();
      chosen(Math.max(0, Math.min(neurons - 1, Math.max(0, this.current) + by)));
    });
  }

  update(values, current) {
    Object.assign(this, { values, current });
    this.canvas.setAttribute("aria-valuenow", Math.max(0, current));
    this.canvas.setAttribute("aria-valuetext", current < 0 ? "not shown" : `neuron ${current}`);
    const width = this.canvas.clientWidth;
    if (!width) return;
    this.size = Math.max(9, Math.min(20, width / Math.min(this.neurons, 64)));
    this.columns = Math.max(1, Math.floor(width / this.size + 1e-6));
    const context = fit(this.canvas, width, Math.ceil(this.neurons / this.columns) * this.size);
    const most = values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-6);
    for (let neuron = 0; neuron < this.neurons; neuron++) {
      const x = (neuron % this.columns) * this.size, y = Math.floor(neuron / this.columns) * this.size;
      context.fillStyle = signal((values[neuron] ?? 0) / most);
      context.fillRect(x, y, this.size - 1.5, this.size - 1.5);
      if (neuron !== current) continue;
      context.lineWidth = 2;
      context.strokeStyle = color.ink;
      context.strokeRect(x + 1, y + 1, this.size - 3.5, this.size - 3.5);
    }
  }
}
