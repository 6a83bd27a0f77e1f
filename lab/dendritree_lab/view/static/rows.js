// The columns of a table: a slider for every number and date, a select box for every category.

const DAY = 86400000;

const make = (tag, fields) => Object.assign(document.createElement(tag), fields);

export class Rows {
  constructor(list, changed) {
    Object.assign(this, { list, changed, columns: [], cells: [], parts: [] });
  }

  setup(columns) {
    this.columns = columns;
    this.cells = columns.map((column) => column.value);
    this.parts = columns.map((column, place) => this.row(column, place));
    this.list.replaceChildren(...this.parts.map((part) => part.row));
    this.render();
  }

  /** Set the cells of a row; those beyond the controls are kept but not shown. */
  place(cells) {
    this.cells = [...cells];
    this.render();
  }

  row(column, place) {
    const row = make("div", { className: "column" }), label = make("label", { htmlFor: `column-${place}`, textContent: column.name });
    const told = (cell) => { this.cells[place] = cell; this.render(); this.changed(); };
    if (column.kind === "category") {
      const input = make("select", { id: `column-${place}` });
      input.append(...column.options.map(([text], number) => new Option(text, number)));
      input.addEventListener("change", () => told(column.options[input.value][1]));
      row.append(label, input);
      return { row, input };
    }
    const input = make("input", { id: `column-${place}`, type: "range", min: column.low, max: column.high, step: "any" });
    input.addEventListener("input", () => told(this.rounded(column, input.valueAsNumber)));
    input.addEventListener("keydown", (event) => { // a range input without steps moves too far with the arrow keys
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const from = this.cells[place] ?? column.value;
      told(Math.max(column.low, Math.min(column.high, this.rounded(column, from + by * column.step))));
    });
    const value = make("output", { htmlFor: input.id });
    row.append(label, value, input);
    if (!column.missing) return { row, input, value };
    const missing = make("input", { type: "checkbox" }), check = make("label", { className: "check" });
    missing.addEventListener("change", () => told(missing.checked ? null : column.value));
    missing.setAttribute("aria-label", `${column.name} is missing`);
    check.append(missing, "missing");
    row.append(check);
    return { row, input, value, missing };
  }

  /** Round to whole steps from zero, so that numbers are round. */
  rounded({ step }, value) {
    return Number((Math.round(value / step) * step).toPrecision(12));
  }

  render() {
    this.columns.forEach((column, place) => {
      const { input, value, missing } = this.parts[place], cell = this.cells[place];
      if (column.kind === "category") return void (input.value = column.options.findIndex(([, each]) => each === cell));
      if (missing) missing.checked = cell === null;
      input.classList.toggle("idle", cell === null);
      if (cell !== null) input.value = cell;
      value.textContent = cell === null ? "–" : this.text(column, cell);
      input.setAttribute("aria-valuetext", cell === null ? "missing" : value.textContent);
    });
  }

  text({ kind, step }, cell) {
    if (kind === "date") return new Date(Math.floor(cell) * DAY).toISOString().slice(0, 10);
    const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step))));
    return Math.abs(cell) < 1e7 && step > 1e-7 ? cell.toLocaleString("en", { maximumFractionDigits: digits, useGrouping: Math.abs(cell) >= 1e4 }).replace("-", "−") : cell.toPrecision(3);
  }
}
