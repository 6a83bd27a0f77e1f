// Examples of the data set, ten at a time, as thumbnails or by name.

import { pixel } from "./paint.js";

const PER_ROUND = 10;

export class Samples {
  constructor(parts, chosen) {
    Object.assign(this, { ...parts, chosen, all: [], labels: [], current: null, round: 0, image: null });
    this.more.addEventListener("click", () => {
      this.round = (this.round + 1) % Math.ceil(this.all.length / PER_ROUND);
      this.render();
    });
  }

  /** `all` are pixels or rows; `pixels` describes the images, null for rows. */
  setup(all, labels, pixels) {
    Object.assign(this, { all, labels, image: pixels?.image ?? null, round: 0, current: null });
    for (const part of [this.title, this.list]) part.hidden = !all.length;
    this.more.hidden = all.length <= PER_ROUND;
    this.list.classList.toggle("words", !pixels);
    this.list.classList.toggle("wide", Boolean(pixels) && !pixels.centers);
    this.render();
  }

  mark(number) {
    this.current = number;
    for (const button of this.list.children) button.setAttribute("aria-pressed", Number(button.dataset.sample) === number);
  }

  render() {
    const first = this.round * PER_ROUND, [, height, width] = this.image ?? [];
    this.list.replaceChildren(...this.labels.slice(first, first + PER_ROUND).map((label, i) => {
      const button = Object.assign(document.createElement("button"), { type: "button" });
      button.dataset.sample = first + i;
      button.setAttribute("aria-label", `sample: ${label}`);
      button.addEventListener("click", () => this.chosen(first + i));
      button.append(this.image ? Object.assign(document.createElement("canvas"), { width, height }) : label);
      return button;
    }));
    this.paint();
    this.mark(this.current);
  }

  /** Draw the thumbnails in the colors of the page. The buttons stay: one that is pressed or focused must not go. */
  paint() {
    if (!this.image) return;
    const [, height, width] = this.image;
    for (const button of this.list.children) {
      const context = button.firstChild.getContext("2d"), values = this.all[button.dataset.sample];
      for (let i = 0; i < width * height; i++) {
        context.fillStyle = pixel(values, this.image, i);
        context.fillRect(i % width, Math.floor(i / width), 1, 1);
      }
    }
  }
}
