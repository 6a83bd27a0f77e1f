// The classes and the probability of each; empty if there is no input yet.

import { show } from "./paint.js";

const FEW = 12, SHOWN = 10;

const percent = (chance) => `${(100 * chance).toFixed(chance >= 0.9995 ? 0 : 1)}%`;

export class Classes {
  constructor(list, answer, chosen) {
    Object.assign(this, { list, answer, chosen, names: [], rows: [], best: null });
  }

  /** `target` names the quantity of a model without classes. */
  setup(names, target) {
    Object.assign(this, { names, target });
    this.few = names.length <= FEW;
    this.list.replaceChildren();
    this.rows = names.slice(0, this.few ? names.length : SHOWN).map((_, place) => {
      const [item, button] = ["li", "button"].map((tag) => document.createElement(tag));
      const [name, track, fill, share] = ["name", "track", "fill", "share"].map((kind) =>
        Object.assign(document.createElement("span"), { className: kind }));
      track.append(fill);
      button.type = "button";
      button.append(name, track, share);
      button.addEventListener("click", () => this.chosen(Number(button.dataset.class)));
      item.append(button);
      this.list.append(item);
      const row = { button, name, fill, share };
      this.fill(row, place, NaN);
      return row;
    });
    this.best = null;
    this.say("");
  }

  fill(row, number, chance) {
    row.button.dataset.class = number;
    row.name.textContent = this.names[number];
    const known = Number.isFinite(chance); // NaN arrives as null; an empty drawing has no probabilities
    row.fill.style.transform = `scaleX(${known ? chance.toFixed(4) : 0})`;
    row.share.textContent = known ? percent(chance) : "–";
    row.button.setAttribute("aria-label", `class ${this.names[number]}, ${known ? `${(100 * chance).toFixed(0)} percent` : "no answer"}`);
  }

  update({ classes, output }, blank, shown) {
    if (!classes.length) return this.say(blank ? "" : `${this.target ? `${this.target}: ` : ""}${output.map(show).join(" · ")}`);
    if (!classes.every(Number.isFinite)) blank = true; // no class is the most probable
    const order = classes.map((_, number) => number);
    if (!this.few && !blank) order.sort((a, b) => classes[b] - classes[a]);
    this.best = blank ? null : classes.indexOf(Math.max(...classes));
    this.rows.forEach((row, place) => {
      this.fill(row, order[place], blank ? NaN : classes[order[place]]);
      row.button.classList.toggle("best", order[place] === this.best);
      row.button.setAttribute("aria-pressed", order[place] === shown);
    });
    this.say(blank ? "" : this.names[this.best], blank ? "" : percent(classes[this.best]));
  }

  say(text, share = "") {
    if (this.answer.dataset.answer !== text) {
      this.answer.dataset.answer = text;
      this.answer.replaceChildren(text, document.createElement("small"));
    }
    this.answer.querySelector("small").textContent = share;
  }
}
