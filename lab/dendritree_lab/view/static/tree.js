// A drawing of a neuron: branches colored by the signals they send, with width by weight; signals are animated.

import { Layout } from "./layout.js";
import { calm, color, fit, gray, signal } from "./paint.js";

/** The color of each input's dot: from paper to ink for pixels, by its sign for others. */
export function tonesOf(kind, { image, reads }) {
  const most = reads.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-6);
  return kind === "pixels" ? (input) => image[input] : (input) => ({ sign: reads[input] / most });
}

const ROOT = -1, NOTHING = null, REACH = 16;

export class Tree {
  constructor(canvas, chosen, followed) {
    Object.assign(this, { canvas, chosen, followed, layout: null, selected: NOTHING, front: Infinity, label: "" });
    canvas.addEventListener("pointermove", (event) => this.pick(this.near(event)));
    canvas.addEventListener("pointerdown", (event) => {
      const branch = this.near(event);
      this.armed = event.pointerType !== "touch" || branch === this.selected; // with touch, the first tap selects, the second follows
      this.pick(branch);
    });
    canvas.addEventListener("pointerleave", (event) => { // lifting a finger also fires this: keep its selection
      if (event.pointerType === "mouse" && document.activeElement !== canvas) this.pick(NOTHING);
    });
    canvas.addEventListener("click", () => { if (this.armed && this.selected !== NOTHING) followed(this.selected); });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.pick(NOTHING));
  }

  show(tree, label) {
    this.layout = new Layout(tree);
    this.label = label;
    const { edges, nodes } = this.layout;
    Object.assign(this, { sent: new Float64Array(edges), goal: new Float64Array(edges), value: new Float64Array(edges) });
    Object.assign(this, { dendrites: new Float64Array(nodes), tones: null, selected: NOTHING, lit: null });
    this.scale = new Float64Array(this.layout.depth).fill(1);
    this.resize();
  }

  /** New activity: `reads` of the layer's inputs, `dendrites` of the nodes, and the color of each input's dot. */
  update(reads, dendrites, tones, pulse) {
    const { layout } = this;
    this.dendrites = dendrites;
    this.tones = tones;
    this.scale.fill(1e-6);
    for (let edge = 0; edge < layout.edges; edge++) {
      const child = layout.child(edge), height = layout.below(edge);
      this.value[edge] = child < 0 ? reads[layout.source[edge]] : dendrites[child];
      this.goal[edge] = this.value[edge] * layout.weight[edge];
      this.scale[height] = Math.max(this.scale[height], Math.abs(this.goal[edge]));
    }
    for (let edge = 0; edge < layout.edges; edge++) this.goal[edge] /= this.scale[layout.below(edge)];
    if (pulse && this.front > layout.depth + 1) this.front = 0;
    this.run();
  }

  resize() {
    const { canvas, layout } = this;
    if (!layout || !canvas.clientWidth) return;
    this.size = canvas.clientWidth;
    this.rim = this.size / 2 - 14;
    this.middle = [this.size / 2, this.size / 2];
    this.curves = Array.from({ length: layout.edges }, (_, edge) => layout.curve(edge, this.rim, this.middle));
    this.paths = this.curves.map(([a, b, c, d]) => {
      const path = new Path2D();
      path.moveTo(...a);
      path.bezierCurveTo(...b, ...c, ...d);
      return path;
    });
    const pitch = (height) => (2 * Math.PI * layout.radius(height, this.rim)) / layout.count[height];
    this.room = Array.from({ length: layout.depth }, (_, height) => pitch(height));
    this.widths = Float64Array.from({ length: layout.edges }, (_, edge) => {
      const height = layout.below(edge), share = Math.abs(layout.weight[edge]) / (layout.heaviest[height] || 1);
      return Math.max(0.5, share * Math.max(1, Math.min(7, this.room[height] * 0.55)));
    });
    this.render();
  }

  // --------------------------------------------------------------------------------------------------------- movement

  run() {
    if (this.running || !this.layout) return;
    this.running = true;
    let before = performance.now();
    const frame = (now) => {
      const passed = Math.min(60, now - before);
      before = now;
      const moving = this.step(passed);
      this.render();
      if (moving) requestAnimationFrame(frame);
      else this.running = false;
    };
    requestAnimationFrame(frame);
  }

  /** Branches near the outer circle respond immediately, those near the root a little later. */
  step(passed) {
    const { layout, sent, goal } = this, still = calm();
    const share = Array.from({ length: layout.depth }, (_, h) => (still ? 1 : 1 - Math.exp(-passed / (45 + (90 * h) / layout.depth))));
    let far = 0;
    for (let edge = 0; edge < layout.edges; edge++) {
      const gap = goal[edge] - sent[edge];
      sent[edge] += gap * share[layout.below(edge)];
      far = Math.max(far, Math.abs(gap));
    }
    this.front = still ? Infinity : this.front + (passed / 1000) * (layout.depth + 1) * 1.25;
    if (far < 0.004) sent.set(goal);
    return far >= 0.004 || this.front < layout.depth + 1;
  }

  // --------------------------------------------------------------------------------------------------------- painting

  render() {
    const { layout, size } = this;
    if (!layout || !size) return;
    const context = fit(this.canvas, size, size);
    context.lineCap = "round";
    const faded = this.selected !== NOTHING;
    const shelves = Array.from({ length: 10 }, () => []); // weak signals first, strong ones on top
    for (let edge = 0; edge < layout.edges; edge++) {
      const strength = Math.abs(this.sent[edge]) || 0; // nothing has arrived yet
      shelves[faded && this.lit[edge] ? 9 : Math.min(8, Math.floor(strength * 9))].push(edge);
    }
    for (const shelf of shelves) for (const edge of shelf) {
      const lit = !faded || this.lit[edge];
      context.lineWidth = this.widths[edge] + (faded && lit ? 0.6 : 0);
      context.strokeStyle = signal(this.sent[edge] * (lit ? 1 : 0.12) + (faded && lit ? Math.sign(this.sent[edge]) * 0.12 : 0));
      context.stroke(this.paths[edge]);
    }
    this.paintEnds(context, faded);
    if (this.front < layout.depth + 1) this.paintPulse(context);
    this.paintRoot(context);
    if (this.selected !== NOTHING && this.selected !== ROOT) this.paintRing(context, this.curves[this.selected][3]);
  }

  paintEnds(context, faded) {
    const { layout } = this;
    for (let edge = 0; edge < layout.edges; edge++) {
      const child = layout.child(edge), [x, y] = this.curves[edge][3], room = this.room[layout.below(edge)];
      const radius = Math.max(0.9, Math.min(child < 0 ? 4 : 7, room * (child < 0 ? 0.42 : 0.3)));
      const dim = faded && !this.lit[edge];
      context.beginPath();
      context.arc(x, y, radius, 0, 7);
      if (child < 0) {
        const tone = this.tones ? this.tones(layout.source[edge]) : 0;
        context.fillStyle = typeof tone === "number" ? gray(0.14 + 0.86 * tone * (dim ? 0.3 : 1)) : signal(tone.sign * (dim ? 0.3 : 1));
      } else context.fillStyle = signal(this.sent[edge] * (dim ? 0.15 : 1));
      context.fill();
      if (child >= 0 && radius > 2) {
        context.lineWidth = 1.5;
        context.strokeStyle = color.paper;
        context.stroke();
      }
    }
  }

  /** Draw beads that run from the synapses to the root along branches that send a signal. */
  paintPulse(context) {
    const { layout } = this;
    for (let edge = 0; edge < layout.edges; edge++) {
      const along = this.front - layout.below(edge), strength = Math.abs(this.sent[edge]);
      if (along <= 0 || along >= 1 || strength < 0.2) continue;
      const [a, b, c, d] = this.curves[edge], t = 1 - along, s = 1 - t;
      const at = (k) => s * s * s * a[k] + 3 * s * s * t * b[k] + 3 * s * t * t * c[k] + t * t * t * d[k];
      context.beginPath();
      context.arc(at(0), at(1), 1.2 + Math.min(2.6, this.widths[edge]) * strength, 0, 7);
      context.fillStyle = this.sent[edge] < 0 ? color.minus : color.plus;
      context.fill();
    }
  }

  paintRoot(context) {
    const { layout } = this, out = this.dendrites[layout.root] ?? 0;
    const radius = Math.min(22, Math.max(13, this.size / 26)), wide = this.label.length > 2;
    context.beginPath();
    context.arc(...this.middle, radius, 0, 7);
    context.fillStyle = color.paper;
    context.fill();
    context.lineWidth = 2.5;
    context.strokeStyle = out < 0 ? color.minus : color.plus;
    context.stroke();
    context.fillStyle = color.ink;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const [x, y] = [this.middle[0], this.middle[1] + (wide ? radius + 10 : 1)]; // a long name stands below the root
    context.font = `600 ${wide ? 13 : radius}px ${getComputedStyle(document.body).fontFamily}`;
    context.lineWidth = 4;
    context.strokeStyle = color.paper;
    if (wide) context.strokeText(this.label, x, y, this.size / 2);
    context.fillText(this.label, x, y, this.size / 2);
    if (this.selected === ROOT) this.paintRing(context, this.middle, radius + 5);
  }

  paintRing(context, [x, y], radius = 8) {
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    context.lineWidth = 2;
    context.strokeStyle = color.ink;
    context.stroke();
  }

  // -------------------------------------------------------------------------------------------------------- selecting

  near(event) {
    if (!this.layout) return NOTHING;
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    if (Math.hypot(x - this.middle[0], y - this.middle[1]) < 20) return ROOT;
    let best = REACH, found = NOTHING;
    this.curves.forEach(([a, b, c, d], edge) => {
      for (const t of [1, 0.8, 0.6]) { // only the outer part of a branch belongs to it alone
        const s = 1 - t;
        const at = (k) => s * s * s * a[k] + 3 * s * s * t * b[k] + 3 * s * t * t * c[k] + t * t * t * d[k];
        const distance = Math.hypot(at(0) - x, at(1) - y) + (1 - t);
        if (distance < best) [best, found] = [distance, edge];
      }
    });
    return found;
  }

  pick(branch) {
    if (branch === this.selected || !this.layout) return;
    this.selected = branch;
    this.lit = branch === NOTHING ? null : this.layout.under(branch);
    if (branch !== NOTHING && branch !== ROOT) { // and its path to the root
      for (let edge = branch; edge >= 0; edge = this.layout.edgeOf[this.layout.parent[edge]]) this.lit[edge] = 1;
    }
    if (!this.running) this.render();
    this.chosen(branch);
  }

  key(event) {
    const { layout, selected } = this;
    if (!layout) return;
    const node = selected === NOTHING || selected === ROOT ? layout.root : layout.child(selected);
    const parent = selected === NOTHING || selected === ROOT ? -1 : layout.parent[selected];
    const turn = (by) => {
      if (parent < 0) return selected ?? ROOT;
      const first = layout.offsets[parent], count = layout.offsets[parent + 1] - first;
      return first + ((selected - first + by + count) % count);
    };
    let next = selected;
    if (event.key === "ArrowUp") next = parent < 0 ? ROOT : layout.edgeOf[parent];
    else if (event.key === "ArrowDown") next = selected === NOTHING ? ROOT : node < 0 ? selected : layout.offsets[node];
    else if (event.key === "ArrowLeft") next = turn(-1);
    else if (event.key === "ArrowRight") next = turn(1);
    else if (event.key === "Home") next = ROOT;
    else if (event.key === "Escape") next = NOTHING;
    else if (event.key === "Enter" && selected !== NOTHING) this.followed(selected);
    else return;
    event.preventDefault();
    this.pick(next);
  }
}
