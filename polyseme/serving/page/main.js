/** The page: draws everything anew from the store whenever something changes. */

import { useKey } from "./api.js";
import { drawCloser } from "./closer.js";
import { drawCode } from "./code.js";
import { button, byId, h, replace } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { drawCosines } from "./heat.js";
import { averages, drawLayers, drawReading, layerName, play, sameHeight } from "./layers.js";
import { makeMap } from "./map.js";
import { acceptSentences, drawSentences } from "./sentences.js";
import { fromExample } from "./state.js";
import { change, comparisonOf, mainLayer, mainModel, page, picked, show, start, stops, uses } from "./store.js";
import { drawTagger } from "./tagger.js";
import { drawTrend } from "./trend.js";

const large = makeMap({ labelled: true, redraw: drawMaps, choose: (use) => show({ use }) });
const small = new Map();
let greeting = false;
const SHORT = 12; // characters of a title that may be set large
byId("map").append(large.element);

function draw() {
  document.querySelector("main").ariaBusy = String(page.busy);
  drawProblem();
  drawExamples();
  drawWord();
  drawSentences();
  byId("alike").hidden = picked().length < 2;
  byId("movement").hidden = !page.state.sentences.length;
  if (!page.models.length) return;
  drawMaps();
  drawLayers();
  drawReading();
  drawCosines();
  drawTrend();
  drawCloser();
  drawTagger();
  drawCode();
  drawModels();
  greet();
}

/** Who comes without a link sees the layers go by once, from the first, as soon as there is something to see. */
function greet() {
  if (!greeting || !comparisonOf(mainModel())) return;
  greeting = false;
  play();
}

function drawProblem() {
  byId("problem").hidden = !page.problem;
  byId("problem").textContent = page.problem?.message ?? "";
  byId("key").hidden = page.problem?.status !== 401;
}

function drawExamples() {
  const { example, layer, model } = page.state;
  const buttons = EXAMPLES.map((word) => button({ id: `example-${word}`, "aria-pressed": String(example === word),
    onclick: () => change({ ...fromExample(word), layer, model }) }, word));
  const own = button({ id: "own", class: "own", onclick: startAfresh }, "your own");
  replace(byId("examples"), ...buttons, own);
}

function startAfresh() {
  change({ ...page.state, example: null, word: "", sentences: [], use: 0 });
  byId("new-sentence").focus();
}

/** The words that are compared: mostly one. */
function drawWord() {
  const { sentences, positions } = uses();
  const words = sentences.map((sentence, number) => sentence[positions[number]]);
  const distinct = [...new Map(words.map((word) => [word.toLowerCase(), word])).values()];
  byId("hint").hidden = !words.length;
  const title = distinct.slice(0, 4).join(", ") || page.state.word || "Type a sentence, pick a word";
  byId("word").textContent = title;
  byId("word").classList.toggle("long", title.length > SHORT);
  document.title = `${distinct[0] ?? "polyseme"}: meaning moves`;
}

function drawMaps() {
  if (!page.models.length) return;
  const main = mainModel();
  const comparison = comparisonOf(main);
  if (comparison) large.draw(comparison, stops(main).indexOf(mainLayer()), describe(main, comparison, mainLayer()));
  byId("others").hidden = page.models.length < 2 || !picked().length;
  if (!byId("others").hidden) page.models.forEach(drawSmall);
}

/** Every model has its small map, once made; that of the main model is hidden, for it has the large one. */
function drawSmall(model) {
  const { map, figure, words } = small.get(model.id) ?? makeSmall(model);
  figure.hidden = model === mainModel();
  const comparison = comparisonOf(model);
  if (figure.hidden || !comparison) return;
  const at = sameHeight(model);
  words.textContent = comparison.problem ?? caption(model, comparison, at);
  map.draw(comparison, at, describe(model, comparison, stops(model)[at]));
}

function makeSmall(model) {
  const map = makeMap({ labelled: false, redraw: drawMaps });
  const words = h("span", {});
  const turn = button({ "aria-label": `Look closely at ${model.id}`,
    onclick: () => show({ model: model.id, layer: null }) }, "Look closely");
  const figure = h("figure", {}, map.element, h("figcaption", {}, h("strong", {}, model.id), words, turn));
  byId("other-maps").append(figure);
  small.set(model.id, { map, figure, words });
  return small.get(model.id);
}

function caption(model, { layers, shown }, at) {
  if (!layers.length) return "";
  const { within, across } = averages(layers[at].cosines, shown.map((number) => page.state.sentences[number].sense));
  const parts = [layerName(model, layers[at].layer), within && `one colour ${within}`, across && `different ${across}`];
  return parts.filter(Boolean).join(" · ");
}

function describe(model, { shown }, layer) {
  return `Map of ${shown.length} uses, ${model.id}, ${layerName(model, layer)}; a table below has the numbers`;
}

function drawModels() {
  byId("models").textContent = page.models.map(({ id, layers, dim }) => `${id}: ${layers} × ${dim}`).join(" · ");
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address is for the state
  byId("uses").focus();
});
byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(byId("key-field").value);
  change(page.state, { written: true });
});
acceptSentences();
greeting = !location.hash && !matchMedia("(prefers-reduced-motion: reduce)").matches;
if (greeting) page.state.layer = 0;
draw();
start(draw);
