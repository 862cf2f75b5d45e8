/** The layer slider, its animation, and a one-sentence summary of the chosen layer. */

import { button, byId, h } from "./dom.js";
import { comparisonOf, mainLayer, mainModel, page, show, stops } from "./store.js";

const STEP = 1100; // milliseconds on each layer while the animation plays
const FEW = 5; // layers whose names fit under the slider

/** The name of a layer of a model. */
export function layerName(model, layer) {
  if (layer === "mean") return "mean";
  return model.layer_names?.[layer] ?? `layer ${layer}`;
}

/** The layer of another model at the same relative depth, as an index into its stops. */
export function matchingLayer(model) {
  const [main, layer] = [mainModel(), mainLayer()];
  if (layer === "mean") return stops(model).length - 1;
  return Math.round((layer / Math.max(1, main.layers - 1)) * (model.layers - 1));
}

/** Draws the slider; the element stays the same as long as the model does, so that it can be dragged. */
export function drawLayers() {
  const model = mainModel();
  const all = stops(model);
  if (byId("slider")?.dataset.model !== model.id) byId("layers").replaceChildren(...build(model, all));
  const at = all.indexOf(mainLayer());
  const slider = byId("slider");
  slider.value = String(at);
  slider.setAttribute("aria-valuetext", layerName(model, all[at]));
  [...byId("stops").children].forEach((name, number) => name.classList.toggle("here", number === at));
  byId("play").textContent = page.playing ? "❚❚" : "▶";
  byId("play").setAttribute("aria-label", page.playing ? "Stop" : "Play through the layers");
}

function build(model, all) {
  const terse = all.length > FEW + 1;
  const named = (layer) => (terse && layer !== "mean" ? String(layer) : layerName(model, layer));
  const names = all.map((layer) => h("span", { onclick: () => go(layer) }, named(layer)));
  const disabled = all.length < 2;
  return [
    button({ id: "play", onclick: play, disabled }),
    h("div", { class: "scale" },
      h("input", { type: "range", id: "slider", "data-model": model.id, "aria-label": "Layer", disabled,
        min: "0", max: String(all.length - 1), step: "1", oninput: (event) => go(all[event.target.value]) }),
      h("div", { id: "stops", "aria-hidden": "true" }, ...names)),
  ];
}

function go(layer) {
  stop();
  show({ layer });
}

function stop() {
  clearTimeout(page.playing);
  page.playing = null;
}

/** Plays the animation from the first layer up, or stops it. */
export function play() {
  if (page.playing) return go(mainLayer());
  const layers = stops(mainModel()).filter((layer) => layer !== "mean");
  const next = () => {
    const layer = layers.shift();
    page.playing = layers.length ? setTimeout(next, STEP) : null;
    show({ layer });
  };
  next();
}

/** The sentence under the slider: the mean cosines of the shown layer. */
export function drawSummary() {
  const comparison = comparisonOf(mainModel());
  if (comparison) byId("summary").textContent = summary(comparison, mainLayer());
}

const IDENTICAL = 0.9995; // a cosine above this counts as the same vector

function summary(comparison, layer) {
  const { cosines } = comparison.layers.find((one) => one.layer === layer);
  const name = layerName(mainModel(), layer);
  const { within, across } = averages(cosines, comparison.shown.map((number) => page.state.sentences[number].sense));
  if (!cosines.length) return "";
  if (cosines.length < 2) return "Add a second sentence to compare.";
  if (Math.min(...cosines.flat()) > IDENTICAL) {
    return `${capital(name)}: no context yet. All ${cosines.length} uses have the same vector.`;
  }
  const parts = [within && `${within} within a sense`, across && `${across} between senses`];
  return `${capital(name)}: mean cosine ${parts.filter(Boolean).join(", ")}.`;
}

/** The mean cosine of pairs within a sense and between senses; null if there is no such pair. */
export function averages(cosines, senses) {
  const sums = { within: [0, 0], across: [0, 0] };
  cosines.forEach((row, one) => row.slice(0, one).forEach((cosine, other) => {
    const sum = senses[one] === senses[other] ? sums.within : sums.across;
    sum[0] += cosine;
    sum[1] += 1;
  }));
  const average = ([sum, count]) => (count ? (sum / count).toFixed(2) : null);
  return { within: average(sums.within), across: average(sums.across) };
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
