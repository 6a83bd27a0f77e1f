// A second model on the same drawing or row: its answer, and the tree of the neuron that gives it.

import { ask, Newest } from "./api.js";
import { tonesOf, Tree } from "./tree.js";

/** Whether two models take the same inputs. */
export function alike(one, other) {
  if (one.pixels || other.pixels) return Boolean(one.pixels && other.pixels);
  const names = ({ columns }) => JSON.stringify(columns.map(({ name, kind, options }) => [name, kind, options]));
  return one.columns.length > 0 && names(one) === names(other);
}

export class Beside {
  /** `page` provides what both models share: `question(about, samples)`, `blank()`, `follows()`, `trouble(error)`. */
  constructor(parts, classes, page) {
    Object.assign(this, { ...parts, classes, page, about: null, samples: [], neuron: 0, asked: 0, wish: 0, wave: false });
    this.tree = new Tree(this.canvas, () => {}, () => {});
    this.activity = new Newest((question) => this.send(question), (found) => this.received(found), page.trouble);
  }

  get on() { return this.about !== null; }

  /** Open a model; null closes it. `first` is the description of the model that it is compared with. */
  async open(number, first) {
    const asked = ++this.asked;
    if (number === null) return void (this.about = null);
    const about = await ask(`/api/models/${number}`), layer = about.layers.length - 1;
    if (!alike(first, about)) throw new Error(`Two models must take the same inputs to be compared: ${about.name} takes different ones.`);
    const samples = about.samples.length ? await ask(`/api/models/${number}/samples`) : [];
    const found = await ask(`/api/models/${number}/tree?layer=${layer}&neuron=0`);
    if (asked !== this.asked) return; // another model was chosen in the meantime
    Object.assign(this, { about, samples, number, layer });
    this.classes.setup(about.classes, about.target);
    this.show(found, 0);
  }

  show(found, neuron) {
    const { about, layer } = this, named = about.classes.length === about.layers[layer].neurons;
    this.neuron = neuron;
    this.caption.textContent = `${about.name}: ${named ? `class ${about.classes[neuron]}` : `neuron ${neuron}`}, ${found.text}`;
    this.tree.show(found, named ? about.classes[neuron] : about.target || String(neuron));
  }

  /** Request its activity for the input. */
  refresh(wave) {
    if (!this.on) return;
    if (wave) this.wave = true;
    this.activity.push(() => {
      const { about, number, layer, neuron } = this, { query, body } = this.page.question(about, this.samples);
      query.set("layer", layer);
      query.set("neuron", neuron);
      return { about, number, neuron, query, body };
    });
  }

  async send({ number, query, body, ...rest }) {
    return { answer: await ask(`/api/models/${number}/activity?${query}`, { method: "POST", body }), ...rest };
  }

  received({ answer, about, neuron }) {
    if (about !== this.about || neuron !== this.neuron) return; // for a neuron that is no longer shown
    const { layer } = this, { grid, neurons } = about.layers[layer];
    this.classes.update(answer, this.page.blank(), neuron);
    if (this.page.follows() && neurons === about.classes.length && (this.classes.best ?? neuron) !== neuron) return void this.go(this.classes.best);
    this.tree.update(answer.reads, answer.dendrites, tonesOf(grid.of, answer), this.wave);
    this.wave = false;
  }

  /** Show the neuron of a class. */
  async go(wanted) {
    const { about, number, layer } = this, neuron = Math.min(wanted, about.layers[layer].neurons - 1);
    const wish = ++this.wish; // the last request counts, whichever response arrives first
    try {
      const found = await ask(`/api/models/${number}/tree?layer=${layer}&neuron=${neuron}`);
      if (about !== this.about || wish !== this.wish) return;
      this.show(found, neuron);
      this.refresh(true);
    } catch (error) {
      this.page.trouble(error);
    }
  }
}
