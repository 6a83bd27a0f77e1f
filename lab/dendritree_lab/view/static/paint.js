// Colors from the style sheet, and canvases at the resolution of the screen.

const names = ["ink", "quiet", "rule", "paper", "idle", "plus", "minus", "tree"];
export const color = {};
const steps = 32;
let ramps = {};

export function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of names) color[name] = style.getPropertyValue(`--${name}`).trim();
  ramps = {
    plus: ramp(color.idle, color.plus), minus: ramp(color.idle, color.minus), ink: ramp(color.paper, color.ink),
    faintPlus: ramp(color.paper, color.plus), faintMinus: ramp(color.paper, color.minus),
  };
}

function ramp(from, to) {
  const [a, b] = [from, to].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Array.from({ length: steps + 1 }, (_, i) =>
    `rgb(${a.map((value, k) => Math.round(value + (b[k] - value) * (i / steps))).join(" ")})`);
}

const pick = (list, share) => list[Math.max(0, Math.min(steps, Math.round(share * steps)))];

/** From idle to full: `value` in -1 ... 1 with the color of its sign. */
export const signal = (value) => pick(value < 0 ? ramps.minus : ramps.plus, Math.abs(value));
/** The same, starting from paper. */
export const tint = (value) => pick(value < 0 ? ramps.faintMinus : ramps.faintPlus, Math.abs(value));
/** From paper (0) to ink (1). */
export const gray = (value) => pick(ramps.ink, value);

/** The color of a pixel of an image, channel by channel in 0 ... 255: its own color, or from paper to ink. */
export function pixel(values, [channels, height, width], place) {
  if (channels !== 3) return gray(values[place] / 255);
  return `rgb(${[0, 1, 2].map((channel) => values[channel * height * width + place]).join(" ")})`;
}

/** Match a canvas to the resolution of the screen; return its context, in CSS pixels. */
export function fit(canvas, width, height) {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Format a number for display. */
export function show(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value), digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace(/^-(?=.*[1-9])/, "−").replace("-", "");
}
