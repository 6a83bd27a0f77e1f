// The page: its state, and which parts are updated when something changes.

import { ask, Newest } from "./api.js";
import { alike, Beside } from "./beside.js";
import { Classes } from "./classes.js";
import { Drawing } from "./drawing.js";
import { Grid, Named, paintBars, Strip } from "./grid.js";
import { readColors, show } from "./paint.js";
import { Rows } from "./rows.js";
import { Samples } from "./samples.js";
import { tonesOf, Tree } from "./tree.js";

const $ = (id) => document.getElementById(id);
const state = { model: 0, layer: 0, neuron: 0, sample: null, about: null, activity: null, wave: false, asked: 0, opened: 0, playing: false };
const OPENED_FOR_MENU = 12; // models
const EPOCH_MILLISECONDS = 500; // minimum per epoch while training is played

const CELLS = { pixels: "a pixel", features: "an input", neurons: "a neuron of the layer before", maps: "an average of a last map" };

readColors();
const drawing = new Drawing($("drawing"), drawn);
const tree = new Tree($("tree"), describe, follow);
const grid = new Grid($("grid"));
const named = new Named($("named"));
const image = new Grid($("image"));
const why = new Grid($("why"));
const classes = new Classes($("classes"), $("answer"), (number) => {
  const last = state.about.layers.length - 1;
  choose(last, Math.min(number, state.about.layers[last].neurons - 1));
});
const rows = new Rows($("columns"), () => {
  state.sample = null;
  samples.mark(null);
  refresh();
});
const samples = new Samples({ title: $("samples-title"), list: $("samples"), more: $("more") }, chooseSample);
const beside = new Beside(
  { canvas: $("beside-tree"), caption: $("beside-caption") },
  new Classes($("beside-classes"), $("beside-answer"), (number) => {
    $("follow").checked = false;
    beside.go(number);
  }),
  { question, blank: () => blank(), follows: () => $("follow").checked, trouble });
const activity = new Newest(send, received, trouble);
const known = new Map();
let strips = [], maps = [];

const count = (number, one) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;
const same = (one, other) => one !== undefined && JSON.stringify(one) === JSON.stringify(other);
const blank = () => Boolean(state.about.pixels) && drawing.blank;

// ---------------------------------------------------------------------------------------------------------------- models

async function start() {
  const { title, models, training } = await ask("/api/models");
  $("title").textContent = title;
  document.title = `${title} · dendritree`;
  $("model").replaceChildren(...models.map((name, number) => new Option(name, number)));
  $("beside").replaceChildren(new Option("none", ""), ...models.map((name, number) => new Option(name, number)));
  for (const part of document.querySelectorAll(".for-many")) part.hidden = models.length < 2;
  $("play").hidden = !training;
  $("model").value = training ? models.length - 1 : 0;
  await showModel(Number($("model").value));
}

/** Show one epoch after another on the same input, until the last one or until the user stops it. */
async function play() {
  if (state.playing) return void (state.playing = false);
  state.playing = true;
  $("play").textContent = "Stop";
  const last = $("model").options.length - 1, first = state.model === last ? 0 : state.model + 1;
  try {
    for (let number = first; state.playing && number <= last; number++) {
      const shown = new Promise((done) => setTimeout(done, EPOCH_MILLISECONDS));
      $("model").value = number;
      await showModel(number, state);
      await shown;
    }
  } finally {
    state.playing = false;
    $("play").textContent = "Play training";
  }
}

/** The description of a model, requested once. */
async function aboutOf(number) {
  if (!known.has(number)) known.set(number, await ask(`/api/models/${number}`));
  return known.get(number);
}

/** In the menu of second models, disable the one that is shown and those known to take other inputs. */
function markMenu() {
  for (const option of [...$("beside").options].slice(1)) {
    const number = Number(option.value), about = known.get(number);
    option.disabled = number === state.model || (about !== undefined && !alike(state.about, about));
  }
}

/** Before a second model is chosen, learn which inputs the models take. */
async function readMenu() {
  const last = Math.min($("beside").options.length - 1, OPENED_FOR_MENU);
  for (let number = 0; number < last; number++) {
    await aboutOf(number).catch(() => {}); // a model that cannot be opened says so when it is chosen
    markMenu();
  }
}

/** Show a model for the current drawing or row, if it takes the same inputs. */
async function showModel(number, { layer, neuron } = { layer: null, neuron: 0 }) {
  const opened = ++state.opened;
  document.body.setAttribute("aria-busy", "true");
  $("about").textContent = "opening …";
  const about = await aboutOf(number);
  const found = about.samples.length ? await ask(`/api/models/${number}/samples`) : [];
  if (opened !== state.opened) return; // another model was chosen in the meantime
  const before = state.about, kept = before !== null && alike(before, about), { cells } = rows;
  const sample = kept && state.sample !== null && same(found[state.sample], samples.all[state.sample]) ? state.sample : null;
  Object.assign(state, { model: number, about, sample, activity: null });
  $("about").textContent = [`${count(about.parameters, "parameter")}.`, ...about.notes].join(" ");
  $("layer").replaceChildren(...about.layers.map((layer, i) => new Option(layerName(i), i)));
  $("layer-label").hidden = about.layers.length === 1;
  $("follow-label").hidden = readOut(0) === null;
  $("draw-title").textContent = about.pixels ? "Draw" : "Input";
  for (const part of document.querySelectorAll(".for-images")) part.hidden = !about.pixels;
  $("columns").hidden = !about.columns.length;
  if (about.pixels) {
    drawing.setup(about.pixels);
    document.querySelector(".sheet").classList.toggle("busy", !drawing.blank);
    const [tiles, height, width] = about.pixels.shape;
    image.setup({ of: "pixels", tiles, height, width });
    $("image-text").textContent = about.pixels.text;
    $("center").disabled = !about.pixels.centers;
    $("center").checked = about.pixels.centers;
  }
  rows.setup(about.columns);
  if (kept) rows.place(cells);
  samples.setup(found, about.samples, about.pixels);
  samples.mark(sample);
  classes.setup(about.classes, about.target);
  makeStages();
  makeStrips();
  markMenu();
  if (beside.on && beside.number === number) await compare(null);
  if (beside.on && !alike(about, beside.about)) await compare(null);
  nameBoth();
  await showNeuron(layer ?? (about.pixels ? 0 : about.layers.length - 1), neuron); // of a row, first what gives the answer
  document.body.removeAttribute("aria-busy");
  if (!about.pixels && !kept && found.length) chooseSample(0);
}

/** The neuron of the last layer that represents a class; null if there is none. */
function readOut(number) {
  const { layers, classes: names } = state.about;
  return names.length && layers[layers.length - 1].neurons === names.length ? number : null;
}

function layerName(number) {
  const { layers } = state.about, layer = layers[number];
  const size = count(layer.neurons, layer.dendritic ? "tree" : "linear unit");
  if (number === layers.length - 1) return layers.length > 1 ? `read-out, ${size}` : size;
  return `${layers.length > 2 ? `hidden ${number + 1}` : "hidden"}, ${size}`;
}

/** Show a second model next to the first; null for none. */
async function compare(number) {
  try {
    await beside.open(number, state.about);
  } catch (error) {
    await beside.open(null);
    trouble(error);
  }
  if (!beside.on) $("beside").value = "";
  document.body.classList.toggle("two", beside.on);
  for (const part of document.querySelectorAll(".for-two")) part.hidden = !beside.on;
  nameBoth();
  tree.resize();
  beside.tree.resize();
  if (beside.on) refresh("wave");
}

function nameBoth() {
  $("class-title").textContent = beside.on ? state.about.name : "Answer";
  $("beside-name").textContent = beside.about?.name ?? "";
}

/** Keep a neuron that the user has chosen. */
function choose(layer, neuron) {
  $("follow").checked = false;
  return showNeuron(layer, neuron);
}

async function showNeuron(layer, neuron) {
  const asked = ++state.asked;
  const found = await ask(`/api/models/${state.model}/tree?layer=${layer}&neuron=${neuron}`);
  if (asked !== state.asked) return; // another neuron was chosen in the meantime
  const about = state.about.layers[layer], last = layer === state.about.layers.length - 1;
  Object.assign(state, { layer, neuron, activity: null }); // the activity of another tree must not be painted on this one
  const name = last && state.about.classes.length === about.neurons ? state.about.classes[neuron] : "";
  const target = last && about.neurons === 1 ? state.about.target : "";
  $("tree-title").textContent = name ? `Neuron of class ${name}` : target ? `Neuron of ${target}` : `Neuron ${neuron}`;
  const inputs = { pixels: "pixels", features: "features", neurons: "the neurons of the layer before", maps: "averages of the last maps" }[about.grid.of];
  $("tree-text").textContent = found.offsets.length > 2 ? `${found.text}; reads ${inputs}`
    : `${found.text}; reads ${inputs}, and every synapse leads directly to the sum`;
  $("layer").value = layer;
  $("neuron").max = about.neurons - 1;
  $("neuron").value = neuron;
  $("tree-caption").textContent = `${state.about.name}: ${name ? `class ${name}` : `neuron ${neuron}`}, ${found.text}`;
  tree.show(found, name || target || String(neuron));
  const listed = about.grid.of === "features" && state.about.features.length > 0;
  $("grid").hidden = $("grid-text").hidden = listed;
  $("grid-text").textContent = `Each cell is ${CELLS[about.grid.of]}${about.grid.of === "pixels" ? "" : ", colored by its value"}.`;
  $("named").hidden = !listed;
  grid.setup(about.grid);
  named.setup(listed ? state.about.features : []);
  describe(null);
  refresh("wave");
}

// -------------------------------------------------------------------------------------------------------------- activity

function drawn(what) {
  state.sample = null;
  document.querySelector(".sheet").classList.toggle("busy", !drawing.blank);
  samples.mark(null);
  refresh(what === "draw" ? "" : "wave");
}

/** Request the activity for the input, once the server has responded to the previous request. */
function refresh(wave) {
  if (wave) state.wave = true;
  activity.push(() => {
    const { model, layer, neuron } = state, { query, body } = question(state.about, samples.all);
    query.set("layer", layer);
    query.set("neuron", neuron);
    return { model, layer, neuron, query, body };
  });
  beside.refresh(wave);
}

/** The current drawing, row or sample in the form that a model takes; a sample only if it is one of the model's. */
function question(about, own) {
  const query = new URLSearchParams();
  if (state.sample !== null && same(own[state.sample], samples.all[state.sample])) {
    query.set("sample", state.sample);
    return { query };
  }
  if (!about.pixels) return { query, body: about.columns.length ? JSON.stringify(rows.cells) : undefined };
  if ($("center").checked && !drawing.placed(about.pixels.image)) query.set("centered", 1);
  return { query, body: drawing.raster(about.pixels) };
}

async function send({ model, layer, neuron, query, body }) {
  const path = `/api/models/${model}/activity?${query}`;
  const answer = await ask(path, { method: "POST", body, headers: { "Content-Type": "application/octet-stream" } });
  return { model, layer, neuron, answer };
}

function received({ model, layer, neuron, answer }) {
  $("trouble").hidden = true;
  if (model !== state.model || layer !== state.layer || neuron !== state.neuron) return; // for a neuron that is no longer shown
  state.activity = answer;
  const of = state.about.layers[layer].grid.of, last = state.about.layers.length - 1;
  classes.update(answer, blank(), layer === last ? neuron : -1);
  $("no-answer").hidden = !blank();
  const wanted = $("follow").checked && classes.best !== null ? readOut(classes.best) : null;
  if (wanted !== null && (layer !== last || neuron !== wanted)) return void showNeuron(last, wanted).catch(trouble);
  tree.update(answer.reads, answer.dendrites, tonesOf(of, answer), state.wave || drawing.stroke);
  state.wave = false;
  grid.update(of === "pixels" ? answer.image : answer.reads);
  named.update(answer.reads);
  maps.forEach((map, number) => map.update(answer.maps[number]));
  explain(answer.why, layer === last ? neuron : classes.best);
  if (state.about.pixels) image.update(answer.image);
  strips.forEach((strip, number) => strip.update(answer.neurons[number], number === layer ? neuron : -1));
  describe(tree.selected, true);
}

/** What each pixel adds to an output; only deep networks without max-pooling can be decomposed. */
function explain(parts, output) {
  $("why-part").hidden = !parts || blank();
  if (!parts || blank()) return;
  const [, height, width] = state.about.pixels.shape, name = state.about.classes[output] ?? "";
  if (!why.shape) why.setup({ of: "parts", tiles: 1, height, width });
  why.update(parts.pixels);
  $("why-text").textContent = `Score${name ? ` of ${name}` : ""}: ${show(parts.total)}, exactly ${show(parts.blank)} without any ink plus ${show(parts.total - parts.blank)} from these pixels.`;
}

function trouble(error) {
  $("trouble").hidden = false;
  $("trouble").textContent = error instanceof TypeError ? "The server does not respond: was it stopped?" : error.message;
}

// --------------------------------------------------------------------------------------------------------------- details

function describe(branch, again = false) {
  const { layout } = tree, { about, activity: seen } = state;
  if (!layout) return;
  const cells = about.layers[state.layer].grid, whole = branch === null || branch === -1;
  const node = whole ? layout.root : layout.child(branch);
  if (!again) {
    grid.highlight(branch === null ? null : layout.reads(branch));
    named.highlight(layout.reads(branch ?? -1));
  }
  const thing = { pixels: "pixel", features: "feature", neurons: "neuron", maps: "average" }[cells.of];
  const synapses = node < 0 ? 1 : layout.leaves[node];
  $("reads-title").textContent = whole ? "What it reads" : node < 0 ? "What the synapse reads" : "What the dendrite reads";
  $("branch-title").textContent = whole ? "Whole neuron" : node < 0 ? `Synapse: ${inputName(layout.source[branch])}`
    : `Dendrite ${node}, level ${layout.height[node]} of ${layout.depth}`;
  $("branch-text").textContent = node < 0
    ? cells.of === "neurons" ? matchMedia("(pointer: coarse)").matches ? "Tap it again to see that neuron." : "Click or press Enter to see that neuron." : ""
    : `${count(synapses, "synapse")}${branch === null ? "" : "; colored above: weights, multiplied along the path"}.`;
  const value = !seen ? NaN : node < 0 ? seen.reads[layout.source[branch]] : seen.dendrites[node];
  const facts = [[node < 0 ? `the ${thing}` : "output", show(value)]];
  if (node >= 0 && layout.bias) facts.push(["bias", show(layout.bias[node])]);
  if (!whole) facts.push(["weight", show(layout.weight[branch])], ["contributes", show(value * layout.weight[branch])]);
  $("facts").replaceChildren(...facts.flat().map((text, i) => Object.assign(document.createElement(i % 2 ? "dd" : "dt"), { textContent: text })));
  for (const part of ["children", "children-text"]) $(part).classList.toggle("away", node < 0);
  if (node < 0) return;
  const weights = layout.weight.slice(layout.offsets[node], layout.offsets[node + 1]);
  const sent = weights.map((weight, i) => weight * (seen ? tree.value[layout.offsets[node] + i] : 0));
  paintBars($("children"), weights, sent);
  const synapsesOf = layout.source.slice(layout.offsets[node], layout.offsets[node + 1]).filter((source) => source >= 0).length;
  const summed = [[synapsesOf, "synapse"], [weights.length - synapsesOf, "dendrite"]].filter(([number]) => number);
  $("children-text").textContent = `It sums ${summed.map((each) => count(...each)).join(" and ")}: weights in gray, from ${show(Math.min(...weights))} to ${show(Math.max(...weights))}; contributions in color.`;
}

function inputName(input) {
  const { grid: { of, width, height } } = state.about.layers[state.layer];
  if (of === "neurons") return `neuron ${input}`;
  if (of === "maps") return `map ${Math.floor(input / (width * height))}`;
  if (of === "features") return state.about.features[input] ?? `feature ${input}`;
  const place = input % (width * height);
  return `pixel ${place % width}, ${Math.floor(place / width)}`;
}

/** Go to the neuron of another layer that a synapse reads. */
function follow(branch) {
  const { layout } = tree;
  if (branch < 0 || layout.child(branch) >= 0 || state.about.layers[state.layer].grid.of !== "neurons") return;
  const input = layout.source[branch], before = state.about.layers[state.layer - 1];
  if (input < before.neurons) choose(state.layer - 1, input).catch(trouble);
}

/** The maps of every stage of a network of convolutions. */
function makeStages() {
  const { stages } = state.about, many = stages.length > 0;
  $("stages").hidden = !many;
  why.shape = null;
  const parts = stages.map(({ tiles, height, width }, number) => {
    const part = document.createElement("figure"), canvas = document.createElement("canvas");
    const text = `stage ${number + 1}: ${count(tiles, "map")}`;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", text);
    part.append(canvas, Object.assign(document.createElement("figcaption"), { className: "note", textContent: text }));
    return part;
  });
  $("stages").replaceChildren(...parts);
  maps = parts.map((part) => new Grid(part.firstChild));
  maps.forEach((map, number) => map.setup({ of: "maps", ...stages[number] }));
}

function makeStrips() {
  strips = [];
  const rows = state.about.layers.map((layer, number) => {
    const row = Object.assign(document.createElement("div"), { className: "strip" });
    const canvas = Object.assign(document.createElement("canvas"), { tabIndex: 0 });
    const name = layerName(number);
    for (const [key, value] of Object.entries({ role: "slider", "aria-label": `neurons of ${name}`, "aria-valuemin": 0, "aria-valuemax": layer.neurons - 1, "aria-valuenow": 0 })) canvas.setAttribute(key, value);
    row.append(Object.assign(document.createElement("span"), { textContent: name.split(",")[0] }), canvas);
    strips.push(new Strip(canvas, layer.neurons, (neuron) => choose(number, neuron).catch(trouble)));
    return row;
  });
  $("layers").replaceChildren(...rows);
}

// --------------------------------------------------------------------------------------------------------------- samples

function chooseSample(number) {
  if (state.about.pixels) drawing.place(samples.all[number]);
  else rows.place(samples.all[number]);
  state.sample = number;
  document.querySelector(".sheet").classList.add("busy");
  samples.mark(number);
  refresh("wave");
}

// ---------------------------------------------------------------------------------------------------------------- events

const guard = (action) => (...given) => Promise.resolve(action(...given)).catch(trouble);
$("clear").addEventListener("click", () => drawing.clear());
$("center").addEventListener("change", () => refresh("wave"));
$("follow").addEventListener("change", () => {
  if (!$("follow").checked) state.asked++; // ignore a tree that is being loaded
  refresh();
});
$("model").addEventListener("change", guard((event) => showModel(Number(event.target.value))));
for (const event of ["focus", "pointerenter"]) $("beside").addEventListener(event, readMenu, { once: true });
$("play").addEventListener("click", guard(play));
$("beside").addEventListener("change", guard((event) => compare(event.target.value === "" ? null : Number(event.target.value))));
$("layer").addEventListener("change", guard((event) => choose(Number(event.target.value), 0)));
$("neuron").addEventListener("input", guard((event) => {
  const neuron = event.target.valueAsNumber;
  if (Number.isInteger(neuron) && neuron >= 0 && neuron <= Number(event.target.max)) return choose(state.layer, neuron);
}));

function repaint() {
  readColors();
  drawing.render();
  tree.resize();
  for (const each of [grid, image, why, ...maps]) each.render();
  beside.tree.resize();
  samples.paint();
  if (state.activity) received({ ...state, answer: state.activity });
}
new ResizeObserver(repaint).observe(document.querySelector("main"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
guard(start)();
