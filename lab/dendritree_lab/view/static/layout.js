// The layout of a tree: the root in the middle, the synapses on the outer circle.

/** A branch is an edge of the tree: it leads from a synapse or a dendrite to the dendrite that sums it. */
export class Layout {
  constructor({ source, offsets, weight, bias }) {
    const edges = source.length, nodes = offsets.length - 1;
    Object.assign(this, { edges, nodes, source, offsets, weight, bias });
    this.parent = new Int32Array(edges); // node that an edge leads to
    this.edgeOf = new Int32Array(nodes).fill(-1); // edge that leaves a node; -1 for the root
    this.height = new Int32Array(nodes);
    this.leaves = new Int32Array(nodes);
    for (let node = 0; node < nodes; node++) {
      for (let edge = offsets[node]; edge < offsets[node + 1]; edge++) {
        const child = this.child(edge);
        this.parent[edge] = node;
        if (child >= 0) this.edgeOf[child] = edge;
        this.height[node] = Math.max(this.height[node], child < 0 ? 1 : this.height[child] + 1);
        this.leaves[node] += child < 0 ? 1 : this.leaves[child];
      }
    }
    this.root = nodes - 1;
    this.depth = this.height[this.root];
    this.place();
    this.heaviest = new Float64Array(this.depth); // of the edges that leave each height
    this.count = new Int32Array(this.depth);
    for (let edge = 0; edge < edges; edge++) {
      const height = this.below(edge);
      this.heaviest[height] = Math.max(this.heaviest[height], Math.abs(weight[edge]));
      this.count[height]++;
    }
  }

  /** The dendrite at the lower end of an edge; -1 for a synapse. */
  child(edge) { return this.source[edge] < 0 ? -1 - this.source[edge] : -1; }

  /** Height of the lower end of an edge: 0 for a synapse. */
  below(edge) { const child = this.child(edge); return child < 0 ? 0 : this.height[child]; }

  /** Angles: leaves one after another, with a gap between dendrites; a dendrite is above the middle of its leaves. */
  place() {
    const leafAngle = new Float64Array(this.edges), nodeAngle = new Float64Array(this.nodes);
    const gap = this.leaves[this.root] > 400 ? 0.5 : 0.9;
    let at = 0;
    const walk = (node) => {
      let first = null, last = 0;
      for (let edge = this.offsets[node]; edge < this.offsets[node + 1]; edge++) {
        const child = this.child(edge);
        if (child < 0) leafAngle[edge] = at++;
        else { walk(child); at += gap; }
        last = child < 0 ? leafAngle[edge] : nodeAngle[child];
        first ??= last;
      }
      nodeAngle[node] = (first + last) / 2;
    };
    walk(this.root);
    const turn = (2 * Math.PI) / Math.max(at, 1);
    const middle = at / 2;
    this.angle = leafAngle.map((value, edge) => {
      const child = this.child(edge);
      return ((child < 0 ? value : nodeAngle[child]) - middle) * turn + Math.PI / 2;
    });
    this.nodeAngle = nodeAngle.map((value) => (value - middle) * turn + Math.PI / 2);
  }

  radius(height, rim) {
    if (height >= this.depth) return 0;
    return rim * Math.pow(1 - height / this.depth, this.depth > 4 ? 0.85 : 1);
  }

  /** The curve of an edge from its parent (0) to its lower end (1): four Bezier points, for a radius and center. */
  curve(edge, rim, [x, y]) {
    const outer = this.radius(this.below(edge), rim), inner = this.radius(this.height[this.parent[edge]], rim);
    const to = this.angle[edge], from = inner ? this.nodeAngle[this.parent[edge]] : to, half = (inner + outer) / 2;
    const at = (radius, angle) => [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
    return [at(inner, from), at(half, from), at(half, to), at(outer, to)];
  }

  /** All edges below an edge, including itself; for the root (-1), all edges. */
  under(edge) {
    const found = new Uint8Array(this.edges);
    if (edge < 0) return found.fill(1);
    found[edge] = 1;
    for (let each = this.edges - 1; each >= 0; each--) { // parents come after their children
      const up = this.edgeOf[this.parent[each]];
      if (up >= 0 && found[up]) found[each] = 1;
    }
    return found;
  }

  /** The inputs that an edge reads, with the product of the weights on the path; inputs read twice are summed. */
  reads(edge) {
    const product = new Float64Array(this.edges), under = this.under(edge), inputs = new Map();
    for (let each = this.edges - 1; each >= 0; each--) {
      if (!under[each]) continue;
      const up = this.edgeOf[this.parent[each]];
      product[each] = each === edge || up < 0 || !under[up] ? (each === edge ? 1 : this.weight[each]) : product[up] * this.weight[each];
      if (this.source[each] >= 0) {
        const own = each === edge ? this.weight[each] : product[each];
        inputs.set(this.source[each], (inputs.get(this.source[each]) ?? 0) + own);
      }
    }
    return inputs;
  }
}
