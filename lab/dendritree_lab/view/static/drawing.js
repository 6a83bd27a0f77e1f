// A canvas to draw on, with mouse, finger, pen or keyboard. Strokes are stored as fractions of its shorter side.

import { color, fit, pixel } from "./paint.js";

export class Drawing {
  constructor(canvas, changed) {
    Object.assign(this, { canvas, changed, strokes: [], image: null, cursor: null, stroke: null, held: null });
    this.setup({ raster: [112, 112], image: [1, 28, 28], brush: 0.085 });
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => this.end());
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("keyup", (event) => this.keyUp(event));
    canvas.addEventListener("blur", () => { this.penUp(); this.cursor = null; this.render(); });
    canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) this.showCursor(); });
  }

  /** Switch to another model: the drawing stays, with the brush of the new model. */
  setup({ raster: [height, width], image, brush }) {
    Object.assign(this, { height, width, imageShape: image, brush, stroke: null, held: null });
    this.unit = Math.min(height, width);
    this.render();
  }

  get blank() { return !this.strokes.length && !this.image; }

  clear(tell = true) {
    Object.assign(this, { strokes: [], image: null, stroke: null, held: null });
    this.render();
    if (tell) this.changed("clear");
  }

  /** Show an image of the data set on the canvas: pixels from 0 to 255. */
  place(pixels) {
    Object.assign(this, { strokes: [], stroke: null });
    const shape = this.imageShape, [, height, width] = shape;
    this.image = { pixels, shape };
    this.image.values = Array.from({ length: height * width }, (_, place) => this.light(place));
    this.render();
  }

  // -------------------------------------------------------------------------------------------------------- pointers

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = Math.min(box.width / this.width, box.height / this.height) * this.unit;
    return [(event.clientX - box.left) / scale, (event.clientY - box.top) / scale];
  }

  begin(event) {
    if (event.button > 0) return;
    event.preventDefault();
    this.canvas.focus({ preventScroll: true, focusVisible: false });
    this.canvas.setPointerCapture(event.pointerId);
    this.cursor = null;
    this.lower(this.at(event));
  }

  move(event) {
    if (!this.stroke || this.cursor) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) this.stroke.push(this.at(each));
    this.render();
    this.changed("draw");
  }

  end() {
    if (!this.stroke || this.cursor) return;
    this.stroke = null;
    this.changed("lift");
  }

  lower(point) {
    this.stroke = [point];
    this.strokes.push(this.stroke);
    this.render();
    this.changed("draw");
  }

  // ------------------------------------------------------------------------------------------------------------ keys

  showCursor() {
    this.cursor ??= [this.width / this.unit / 2, this.height / this.unit / 2];
    this.render();
  }

  key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) {
      this.showCursor();
      const length = (event.shiftKey ? 4 : 1) / Math.min(28, Math.min(...this.imageShape.slice(1)) * 2);
      const reach = [this.width / this.unit, this.height / this.unit];
      this.cursor = this.cursor.map((value, i) => Math.max(0, Math.min(reach[i], value + step[i] * length)));
      if (this.stroke) {
        this.stroke.push([...this.cursor]);
        if (this.held !== null) this.held = true;
        this.changed("draw");
      }
      this.render();
    } else if (event.key === " ") {
      if (event.repeat) return event.preventDefault();
      this.showCursor();
      if (this.stroke) this.penUp();
      else {
        this.held = false;
        this.lower([...this.cursor]);
      }
    } else if (event.key === "Delete" || event.key === "Backspace" || event.key === "Escape") this.clear();
    else return;
    event.preventDefault();
  }

  /** Releasing space lifts the pen if it moved while space was held; a tap leaves it down until the next tap. */
  keyUp(event) {
    if (event.key !== " ") return;
    if (this.held) this.penUp();
    this.held = null;
  }

  penUp() {
    if (!this.stroke) return;
    this.stroke = null;
    this.render();
    this.changed("lift");
  }

  // -------------------------------------------------------------------------------------------------------- painting

  render() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const height = (width * this.height) / this.width;
    const context = fit(this.canvas, width, height);
    if (this.image) this.paintImage(context, width, height, (_, place) => pixel(this.image.pixels, this.image.shape, place), 0.5);
    const scale = (width / this.width) * this.unit;
    this.paintStrokes(context, scale, color.ink, this.brush);
    if (!this.cursor) return;
    context.lineWidth = 1.5;
    context.strokeStyle = context.fillStyle = this.stroke ? color.minus : color.tree;
    const [x, y] = this.cursor.map((value) => value * scale);
    context.beginPath();
    context.arc(x, y, Math.max(6, (this.brush * scale) / 2 + 3), 0, 7);
    context.stroke();
    context.beginPath();
    context.arc(x, y, 2, 0, 7);
    context.fill();
  }

  /** The mean of a pixel's channels. */
  light(place) {
    const [channels, height, width] = this.image.shape;
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) sum += this.image.pixels[channel * height * width + place];
    return Math.round(sum / channels);
  }

  /** Draw its pixels as squares, enlarged by `seam` so that no gaps show between them. */
  paintImage(context, width, height, paint, seam = 0) {
    const [, rows, columns] = this.image.shape;
    const [w, h] = [width / columns, height / rows];
    this.image.values.forEach((value, i) => {
      if (!value) return;
      context.fillStyle = paint(value, i);
      context.fillRect((i % columns) * w, Math.floor(i / columns) * h, w + seam, h + seam);
    });
  }

  paintStrokes(context, scale, ink, brush) {
    context.strokeStyle = context.fillStyle = ink;
    context.lineWidth = brush * scale;
    context.lineCap = context.lineJoin = "round";
    for (const stroke of this.strokes) {
      const points = stroke.map(([x, y]) => [x * scale, y * scale]);
      context.beginPath();
      if (points.length === 1) {
        context.arc(...points[0], (brush * scale) / 2, 0, 7);
        context.fill();
        continue;
      }
      context.moveTo(...points[0]);
      for (let i = 1; i < points.length - 1; i++) {
        const [a, b] = [points[i], points[i + 1]];
        context.quadraticCurveTo(...a, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
      }
      context.lineTo(...points[points.length - 1]);
      context.stroke();
    }
  }

  /** Whether it is a sample image of this shape, which needs no centering. */
  placed([, height, width]) {
    return Boolean(this.image) && this.image.shape[1] === height && this.image.shape[2] === width;
  }

  /** The drawing in the form that the server takes for a model: one byte per pixel, 255 is ink. */
  raster({ raster: [height, width], brush }) {
    const small = Object.assign(document.createElement("canvas"), { width, height });
    const context = small.getContext("2d", { willReadFrequently: true });
    context.fillStyle = "#000";
    context.fillRect(0, 0, width, height);
    if (this.image) this.paintImage(context, width, height, (value) => `rgb(${value} ${value} ${value})`);
    this.paintStrokes(context, Math.min(height, width), "#fff", brush);
    const { data } = context.getImageData(0, 0, width, height);
    return Uint8Array.from({ length: width * height }, (_, i) => data[4 * i]);
  }
}
