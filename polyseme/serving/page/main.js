/** Entry point of the page: redraws everything from the store whenever something changes. */

import { useKey } from "./api.js";
import { drawDetails } from "./details.js";
import { drawExport } from "./export.js";
import { button, byId, h, replace } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { drawCosines } from "./cosines.js";
import { averages, drawLayers, drawSummary, layerName, play, matchingLayer } from "./layers.js";
import { makeMap } from "./map.js";
import { listenForNewSentences, drawSentences } from "./sentences.js";
import { fromExample } from "./state.js";
import { change, comparisonOf, mainLayer, mainModel, page, picked, show, start, stops, uses } from "./store.js";
import { drawTagger } from "./tagger.js";
import { drawChart } from "./chart.js";

const large = makeMap({ labelled: true, redraw: drawMaps, choose: (use) => show({ use }) });
const small = new Map();
let autoplay = false;
const SHORT_TITLE = 12; // characters; a longer title is set smaller
byId("map").append(large.element);

function draw() {
  document.querySelector("main").ariaBusy = String(page.busy);
  drawError();
  drawExamples();
  drawWord();
  drawSentences();
  byId("similarity").hidden = picked().length < 2;
  byId("map-panel").hidden = !page.state.sentences.length;
  if (!page.models.length) return;
  drawMaps();
  drawLayers();
  drawSummary();
  drawCosines();
  drawChart();
  drawDetails();
  drawTagger();
  drawExport();
  drawModels();
  playOnce();
}

/** Without a link in the address, plays through the layers once, as soon as there is something to show. */
function playOnce() {
  if (!autoplay || !comparisonOf(mainModel())) return;
  autoplay = false;
  play();
}

function drawError() {
  byId("error").hidden = !page.error;
  byId("error").textContent = page.error?.message ?? "";
  byId("key").hidden = page.error?.status !== 401;
}

function drawExamples() {
  const { example, layer, model } = page.state;
  const buttons = EXAMPLES.map((word) => button({ id: `example-${word}`, "aria-pressed": String(example === word),
    onclick: () => change({ ...fromExample(word), layer, model }) }, word));
  const own = button({ id: "own", class: "own", onclick: startOver }, "your own");
  replace(byId("examples"), ...buttons, own);
}

function startOver() {
  change({ ...page.state, example: null, word: "", sentences: [], use: 0 });
  byId("new-sentence").focus();
}

/** The title: the compared words, mostly one. */
function drawWord() {
  const { sentences, positions } = uses();
  const words = sentences.map((sentence, number) => sentence[positions[number]]);
  const distinct = [...new Map(words.map((word) => [word.toLowerCase(), word])).values()];
  byId("hint").hidden = !words.length;
  const title = distinct.slice(0, 4).join(", ") || page.state.word || "Type a sentence, pick a word";
  byId("word").textContent = title;
  byId("word").classList.toggle("long", title.length > SHORT_TITLE);
  document.title = `${distinct[0] ?? "words"} in context · polyseme`;
}

function drawMaps() {
  if (!page.models.length) return;
  const main = mainModel();
  const comparison = comparisonOf(main);
  byId("map-title").textContent = `Map of the uses: ${layerName(main, mainLayer())}`;
  if (comparison) large.draw(comparison, stops(main).indexOf(mainLayer()), describe(main, comparison, mainLayer()));
  byId("others").hidden = page.models.length < 2 || !picked().length;
  if (!byId("others").hidden) page.models.forEach(drawSmall);
}

/** Every model has a small map, made once; that of the main model is hidden, since it has the large one. */
function drawSmall(model) {
  const { map, figure, words } = small.get(model.id) ?? makeSmall(model);
  figure.hidden = model === mainModel();
  const comparison = comparisonOf(model);
  if (figure.hidden || !comparison) return;
  const at = matchingLayer(model);
  words.textContent = comparison.error ?? caption(model, comparison, at);
  map.draw(comparison, at, describe(model, comparison, stops(model)[at]));
}

function makeSmall(model) {
  const map = makeMap({ labelled: false, redraw: drawMaps });
  const words = h("span", {});
  const select = button({ "aria-label": `Select model ${model.id}`,
    onclick: () => show({ model: model.id, layer: null }) }, "Select");
  const figure = h("figure", {}, map.element, h("figcaption", {}, h("strong", {}, model.id), words, select));
  byId("other-maps").append(figure);
  small.set(model.id, { map, figure, words });
  return small.get(model.id);
}

function caption(model, { layers, shown }, at) {
  if (!layers.length) return "";
  const { within, across } = averages(layers[at].cosines, shown.map((number) => page.state.sentences[number].sense));
  const parts = [layerName(model, layers[at].layer), within && `same sense ${within}`, across && `different ${across}`];
  return parts.filter(Boolean).join(" · ");
}

function describe(model, { shown }, layer) {
  return `Map of ${shown.length} uses, ${model.id}, ${layerName(model, layer)}; the table below has the numbers`;
}

function drawModels() {
  byId("models").textContent = page.models.map(({ id, layers, dim }) => `${id}: ${layers} × ${dim}`).join(" · ");
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment of the address holds the state
  byId("uses").focus();
});
byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(byId("key-field").value);
  change(page.state, { inAddress: true });
});
listenForNewSentences();
autoplay = !location.hash && !matchMedia("(prefers-reduced-motion: reduce)").matches;
if (autoplay) page.state.layer = 0;
draw();
start(draw);
