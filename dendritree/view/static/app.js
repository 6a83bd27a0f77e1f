// The page: what is shown, and who is told when something changes.

import { ask, Newest } from "./api.js";
import { Classes } from "./classes.js";
import { Drawing } from "./drawing.js";
import { Grid, paintBars, Strip } from "./grid.js";
import { pixel, readColours, show } from "./paint.js";
import { Tree } from "./tree.js";

const $ = (id) => document.getElementById(id);
const state = { model: 0, layer: 0, neuron: 0, sample: null, round: 0, about: null, activity: null, wave: false, asked: 0 };
const PER_ROUND = 10;

readColours();
const drawing = new Drawing($("drawing"), drawn);
const tree = new Tree($("tree"), describe, follow);
const grid = new Grid($("grid"));
const image = new Grid($("image"));
const classes = new Classes($("classes"), $("answer"), (number) => {
  const last = state.about.layers.length - 1;
  showNeuron(last, Math.min(number, state.about.layers[last].neurons - 1));
});
const activity = new Newest(send, received, trouble);
let strips = [], samples = [];

// ---------------------------------------------------------------------------------------------------------------- models

async function start() {
  const { title, models } = await ask("/api/models");
  $("title").textContent = title;
  document.title = `${title} · dendritree`;
  $("model").replaceChildren(...models.map((name, number) => new Option(name, number)));
  $("model-label").hidden = models.length < 2;
  await showModel(0);
}

async function showModel(number) {
  document.body.setAttribute("aria-busy", "true");
  $("about").textContent = "opening …";
  const about = await ask(`/api/models/${number}`);
  const last = about.layers.length - 1;
  Object.assign(state, { model: number, about, sample: null, round: 0, activity: null });
  $("about").textContent = [`${about.parameters.toLocaleString("en")} parameters.`, ...about.notes].join(" ");
  $("layer").replaceChildren(...about.layers.map((layer, i) => new Option(layerName(i), i)));
  $("layer-label").hidden = last === 0;
  $("draw-title").textContent = about.pixels ? "Draw" : "Input";
  for (const part of document.querySelectorAll(".for-images")) part.hidden = !about.pixels;
  if (about.pixels) {
    drawing.setup(about.pixels);
    document.querySelector(".sheet").classList.remove("busy");
    const [tiles, height, width] = about.pixels.shape;
    image.setup({ of: "pixels", tiles, height, width });
    $("image-text").textContent = about.pixels.text;
    $("centre").disabled = !about.pixels.centres;
    $("centre").checked = about.pixels.centres;
  }
  classes.setup(about.classes);
  makeStrips();
  await showNeuron(0, 0);
  await showSamples();
  document.body.removeAttribute("aria-busy");
  if (!about.pixels && samples.length) chooseSample(0);
}

function layerName(number) {
  const { layers } = state.about, layer = layers[number];
  const kind = layer.dendritic ? "trees" : "linear units";
  if (number === layers.length - 1) return layers.length > 1 ? `read-out, ${layer.neurons} ${kind}` : `${layer.neurons} ${kind}`;
  return `${layers.length > 2 ? `hidden ${number + 1}` : "hidden"}, ${layer.neurons} ${kind}`;
}

async function showNeuron(layer, neuron) {
  const asked = ++state.asked;
  const found = await ask(`/api/models/${state.model}/tree?layer=${layer}&neuron=${neuron}`);
  if (asked !== state.asked) return; // another one was chosen meanwhile
  const about = state.about.layers[layer], last = layer === state.about.layers.length - 1;
  Object.assign(state, { layer, neuron });
  const name = last && state.about.classes.length === about.neurons ? state.about.classes[neuron] : "";
  $("tree-title").textContent = name ? `Neuron of class ${name}` : `Neuron ${neuron}`;
  $("tree-text").textContent = `${found.text}, reads ${{ pixels: "pixels", features: "features", neurons: "the neurons of the layer before" }[about.grid.of]}`;
  $("layer").value = layer;
  $("neuron").max = about.neurons - 1;
  $("neuron").value = neuron;
  tree.show(found, name || String(neuron));
  grid.setup(about.grid);
  describe(null);
  refresh("wave");
}

// -------------------------------------------------------------------------------------------------------------- activity

function drawn(what) {
  state.sample = null;
  document.querySelector(".sheet").classList.toggle("busy", !drawing.blank);
  markSample();
  refresh(what === "draw" ? "" : "wave");
}

/** Ask what the drawing does, when the server has answered what was asked before. */
function refresh(wave) {
  if (wave) state.wave = true;
  activity.push(() => {
    const { model, layer, neuron, sample } = state;
    const query = new URLSearchParams({ layer, neuron });
    if (sample !== null) query.set("sample", sample);
    else if ($("centre").checked && !drawing.image) query.set("centred", 1);
    const body = sample === null && state.about.pixels ? drawing.raster() : undefined;
    return { model, layer, neuron, query, body };
  });
}

async function send({ model, layer, neuron, query, body }) {
  const path = `/api/models/${model}/activity?${query}`;
  const answer = await ask(path, { method: "POST", body, headers: { "Content-Type": "application/octet-stream" } });
  return { model, layer, neuron, answer };
}

function received({ model, layer, neuron, answer }) {
  $("trouble").hidden = true;
  if (model !== state.model || layer !== state.layer || neuron !== state.neuron) return; // of a neuron that is gone
  state.activity = answer;
  const of = state.about.layers[layer].grid.of;
  const most = answer.reads.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-6);
  const tones = of === "pixels" ? (input) => answer.image[input] : (input) => ({ sign: answer.reads[input] / most });
  tree.update(answer.reads, answer.dendrites, tones, state.wave || drawing.stroke);
  state.wave = false;
  grid.update(of === "pixels" ? answer.image : answer.reads);
  if (state.about.pixels) image.update(answer.image);
  const last = state.about.layers.length - 1;
  classes.update(answer, Boolean(state.about.pixels) && drawing.blank, layer === last ? neuron : -1);
  strips.forEach((strip, number) => strip.update(answer.neurons[number], number === layer ? neuron : -1));
  describe(tree.selected, true);
}

function trouble(error) {
  $("trouble").hidden = false;
  $("trouble").textContent = error instanceof TypeError ? "The server does not answer: was it stopped?" : error.message;
}

// --------------------------------------------------------------------------------------------------------------- details

function describe(branch, again = false) {
  const { layout } = tree, { about, activity: seen } = state;
  if (!layout) return;
  const cells = about.layers[state.layer].grid, whole = branch === null || branch === -1;
  const node = whole ? layout.root : layout.child(branch);
  if (!again) grid.highlight(branch === null ? null : layout.reads(branch));
  const thing = { pixels: "pixel", features: "feature", neurons: "neuron" }[cells.of];
  const count = node < 0 ? 1 : layout.leaves[node];
  $("reads-title").textContent = whole ? "What it reads" : "What the branch reads";
  $("branch-title").textContent = whole ? "Whole neuron" : node < 0 ? `Synapse: ${inputName(layout.source[branch])}`
    : `Dendrite ${node}, level ${layout.height[node]} of ${layout.depth}`;
  $("branch-text").textContent = node < 0
    ? cells.of === "neurons" ? "Click or press Enter to see that neuron." : ""
    : `${count.toLocaleString("en")} ${count === 1 ? "synapse" : "synapses"}${branch === null ? "" : "; coloured above: weights, multiplied on the way"}.`;
  const value = !seen ? NaN : node < 0 ? seen.reads[layout.source[branch]] : seen.dendrites[node];
  const facts = [[node < 0 ? `the ${thing}` : "output", show(value)]];
  if (node >= 0 && layout.bias) facts.push(["bias", show(layout.bias[node])]);
  if (!whole) facts.push(["weight", show(layout.weight[branch])], ["sends on", show(value * layout.weight[branch])]);
  $("facts").replaceChildren(...facts.flat().map((text, i) => Object.assign(document.createElement(i % 2 ? "dd" : "dt"), { textContent: text })));
  for (const part of ["children", "children-text"]) $(part).classList.toggle("away", node < 0);
  if (node < 0) return;
  const weights = layout.weight.slice(layout.offsets[node], layout.offsets[node + 1]);
  const sent = weights.map((weight, i) => weight * (seen ? tree.value[layout.offsets[node] + i] : 0));
  paintBars($("children"), weights, sent);
  $("children-text").textContent = `It adds up ${weights.length} ${weights.length === 1 ? "branch" : "branches"}: weights in grey, from ${show(Math.min(...weights))} to ${show(Math.max(...weights))}; what each sends, in colour.`;
}

function inputName(input) {
  const { grid: { of, width, height } } = state.about.layers[state.layer];
  if (of === "neurons") return `neuron ${input}`;
  if (of === "features") return state.about.features[input] ?? `feature ${input}`;
  const place = input % (width * height);
  return `pixel ${place % width}, ${Math.floor(place / width)}`;
}

/** A synapse on another layer's neuron leads there. */
function follow(branch) {
  const { layout } = tree;
  if (branch < 0 || layout.child(branch) >= 0 || state.about.layers[state.layer].grid.of !== "neurons") return;
  const input = layout.source[branch], before = state.about.layers[state.layer - 1];
  if (input < before.neurons) showNeuron(state.layer - 1, input);
}

function makeStrips() {
  strips = [];
  const rows = state.about.layers.map((layer, number) => {
    const row = Object.assign(document.createElement("div"), { className: "strip" });
    const canvas = Object.assign(document.createElement("canvas"), { tabIndex: 0 });
    const name = layerName(number);
    for (const [key, value] of Object.entries({ role: "slider", "aria-label": `neurons of ${name}`, "aria-valuemin": 0, "aria-valuemax": layer.neurons - 1, "aria-valuenow": 0 })) canvas.setAttribute(key, value);
    row.append(Object.assign(document.createElement("span"), { textContent: name.split(",")[0] }), canvas);
    strips.push(new Strip(canvas, layer.neurons, (neuron) => showNeuron(number, neuron)));
    return row;
  });
  $("layers").replaceChildren(...rows);
}

// --------------------------------------------------------------------------------------------------------------- samples

async function showSamples() {
  const { about, model } = state;
  samples = about.samples.length ? await ask(`/api/models/${model}/samples`) : [];
  for (const part of [$("samples-title"), $("samples")]) part.hidden = !samples.length;
  $("more").hidden = samples.length <= PER_ROUND;
  $("samples").classList.toggle("words", !about.pixels);
  $("samples").classList.toggle("wide", Boolean(about.pixels) && !about.pixels.centres);
  paintSamples();
}

function paintSamples() {
  const first = state.round * PER_ROUND;
  $("samples").replaceChildren(...samples.slice(first, first + PER_ROUND).map((pixels, i) => {
    const button = Object.assign(document.createElement("button"), { type: "button" }), label = state.about.samples[first + i];
    button.dataset.sample = first + i;
    button.setAttribute("aria-label", `sample: ${label}`);
    button.addEventListener("click", () => chooseSample(first + i));
    button.append(state.about.pixels ? thumbnail(pixels) : label);
    return button;
  }));
  markSample();
}

function thumbnail(pixels) {
  const shape = state.about.pixels.image, [, height, width] = shape;
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  for (let i = 0; i < width * height; i++) {
    context.fillStyle = pixel(pixels, shape, i);
    context.fillRect(i % width, Math.floor(i / width), 1, 1);
  }
  return canvas;
}

function chooseSample(number) {
  if (state.about.pixels) drawing.place(samples[number]);
  state.sample = number;
  document.querySelector(".sheet").classList.add("busy");
  markSample();
  refresh("wave");
}

function markSample() {
  for (const button of $("samples").children) button.setAttribute("aria-pressed", Number(button.dataset.sample) === state.sample);
}

// ---------------------------------------------------------------------------------------------------------------- events

const guard = (action) => (...given) => Promise.resolve(action(...given)).catch(trouble);
$("clear").addEventListener("click", () => drawing.clear());
$("centre").addEventListener("change", () => refresh("wave"));
$("more").addEventListener("click", () => {
  state.round = (state.round + 1) % Math.ceil(samples.length / PER_ROUND);
  paintSamples();
});
$("model").addEventListener("change", guard((event) => showModel(Number(event.target.value))));
$("layer").addEventListener("change", guard((event) => showNeuron(Number(event.target.value), 0)));
$("neuron").addEventListener("input", guard((event) => {
  const neuron = event.target.valueAsNumber;
  if (Number.isInteger(neuron) && neuron >= 0 && neuron <= Number(event.target.max)) return showNeuron(state.layer, neuron);
}));

function repaint() {
  readColours();
  drawing.render();
  tree.resize();
  grid.render();
  image.render();
  if (state.about) paintSamples();
  if (state.activity) received({ ...state, answer: state.activity });
}
new ResizeObserver(repaint).observe(document.querySelector("main"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
guard(start)();
