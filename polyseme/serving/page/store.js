/** The store: the state that the user chose and the server's responses to it. Views read it; `change` updates it. */

import { PageError, fetchCached, fetchJson } from "./api.js";
import { exampleWords } from "./examples.js";
import { align, byCosine } from "./geometry.js";
import { fromFragment, pickEverywhere, toFragment } from "./state.js";

/**
 * @typedef {{id: string, layers: number, dim: number, language_model: boolean, layer_names: string[]}} Model
 * @typedef {{layer: number|"mean", cosines: number[][], map: [number, number][]}} Layer
 * @typedef {object} Comparison
 * @property {string} of what was compared, to tell whether it is still current
 * @property {number[]} shown the numbers of the sentences
 * @property {Layer[]} layers in the order of `stops`
 * @property {string} [error] why there are none
 */
export const page = {
  /** @type {import("./state.js").State} */ state: fromFragment(location.hash),
  /** @type {Model[]} */ models: [],
  tagger: null,
  /** @type {Map<string, string[]>} */ words: exampleWords(),
  /** @type {Map<string, string>} */ refused: new Map(), // texts that the server refused, and why
  /** @type {Map<string, Comparison>} */ comparisons: new Map(),
  labels: new Map(),
  /** @type {{of: string, neighbours: object, predicted: object|null}|null} */ details: null,
  /** @type {PageError|null} */ error: null,
  busy: true,
  /** @type {number|null} */ playing: null, // the timer of the animation
};

export const wordsOf = (text) => page.words.get(text);

/** The model of the large map and of everything below it. */
export function mainModel() {
  return page.models.find(({ id }) => id === page.state.model) ?? page.models[0];
}

/** The stops of the layer slider: the layers of a model from the bottom up, then their mean if there are several. */
export function stops(model) {
  const own = Array.from({ length: model.layers }, (_, layer) => layer);
  return model.layers > 1 ? [...own, "mean"] : own;
}

/** The chosen layer of the main model; the top one by default. */
export function mainLayer() {
  const all = stops(mainModel());
  return all.includes(page.state.layer) ? page.state.layer : mainModel().layers - 1;
}

const pickedWord = ({ text, position }) => wordsOf(text)?.[position ?? -1];

/** The numbers of the sentences that have a word picked. */
export function picked() {
  return [...page.state.sentences.keys()].filter((number) => pickedWord(page.state.sentences[number]) !== undefined);
}

/** The uses to compare now, as fields of the request. */
export function uses() {
  const chosen = picked().map((number) => page.state.sentences[number]);
  return { sentences: chosen.map(({ text }) => wordsOf(text)), positions: chosen.map(({ position }) => position) };
}

/** A model's comparison of the current uses; null until the server has responded. */
export function comparisonOf(model) {
  const comparison = page.comparisons.get(model.id);
  return comparison?.of === currentUses() ? comparison : null;
}

const currentUses = () => JSON.stringify([picked(), uses()]);

/** The request for the details of the selected use; null if it has no word picked. */
export function detailsRequest() {
  const sentence = page.state.sentences[page.state.use];
  if (!sentence || pickedWord(sentence) === undefined) return null;
  return { model: mainModel().id, sentence: wordsOf(sentence.text), position: sentence.position, layer: mainLayer() };
}

let render = () => {};
let running = new AbortController();

/** Loads the models, then shows the state in the address. */
export async function start(draw) {
  render = draw;
  addEventListener("hashchange", () => {
    if (location.hash !== toFragment(page.state)) change(fromFragment(location.hash), { inAddress: true });
  });
  await change(page.state, { inAddress: true });
}

/**
 * Sets a new state, writes it to the address, redraws, and loads what is missing from the server.
 *
 * @param {import("./state.js").State} state
 * @param {{inAddress?: boolean}} [options] inAddress: the address holds this state already
 */
export async function change(state, { inAddress = false } = {}) {
  page.state = state;
  if (!inAddress) writeAddress();
  running.abort();
  running = new AbortController();
  const { signal } = running;
  page.busy = true;
  render();
  await guarded(() => load(signal));
}

/** Shows another layer, use or model. */
export function show(changes) {
  return change({ ...page.state, ...changes });
}

function writeAddress() {
  history.replaceState(null, "", toFragment(page.state));
}

async function guarded(work) {
  try {
    await work();
    page.error = null;
  } catch (error) {
    if (error.name === "AbortError") return; // the state has changed meanwhile
    page.error = error instanceof PageError ? error : new PageError("Something went wrong on this page.");
    if (!(error instanceof PageError)) console.error(error);
  }
  page.busy = false;
  render();
}

async function load(signal) {
  if (!page.models.length) Object.assign(page, await fetchCached("v1/models", undefined, signal));
  await loadWords(signal);
  page.state = pickEverywhere(page.state, wordsOf);
  if (location.hash) writeAddress(); // with the positions that were found
  render();
  const main = mainModel();
  await compare(main, signal);
  render();
  await Promise.all(page.models.filter((model) => model !== main).map((model) => compare(model, signal)));
  render();
  await Promise.all([page.playing ? null : loadDetails(signal), tag(signal)]);
}

async function loadWords(signal) {
  for (const { text } of page.state.sentences) if (!page.words.has(text)) await splitText(text, signal);
}

/** Lets the server split a text into words; a refused text stays in the list, with the reason and no words. */
async function splitText(text, signal) {
  try {
    const { sentences } = await fetchJson("v1/words", { text, layers: 0 }, signal);
    page.words.set(text, sentences.flatMap(({ words }) => words));
  } catch (error) {
    if (!error.refused) throw error;
    page.words.set(text, []);
    page.refused.set(text, error.message);
  }
}

/** Loads the comparison by one model; an error of another than the main model is shown on its map only. */
async function compare(model, signal) {
  const [of, shown] = [currentUses(), picked()];
  if (shown.length < 2) return void page.comparisons.set(model.id, { of, shown, layers: singleUse(model, shown) });
  try {
    const answer = await fetchCached("v1/compare", { model: model.id, ...uses(), layer: "all" }, signal);
    const plain = answer.layers.slice(0, stops(model).length); // the mean of a single layer is that layer
    const maps = align(plain.map(byCosine));
    page.comparisons.set(model.id, { of, shown, layers: plain.map((layer, at) => ({ ...layer, map: maps[at] })) });
  } catch (error) {
    if (!(error instanceof PageError) || model === mainModel()) throw error;
    page.comparisons.set(model.id, { of, shown: [], layers: [], error: error.message });
  }
}

/** The comparison of a single use with itself, which needs no request. */
function singleUse(model, shown) {
  return stops(model).map((layer) => ({ layer, cosines: shown.map(() => [1]), map: shown.map(() => [0, 0]) }));
}

/** Loads the neighbours of the selected use, and the language model's predictions in its place. */
async function loadDetails(signal) {
  const request = detailsRequest();
  if (!request) return;
  const { model, sentence, position } = request;
  const details = { of: JSON.stringify(request), neighbours: null, predicted: null };
  const add = async (part, response) => {
    details[part] = await response;
    page.details = details;
    render();
  };
  const { language_model: predicts } = mainModel();
  await Promise.all([
    predicts && add("predicted", fetchCached("v1/predict", { model, sentence, position, top: 7 }, signal)),
    add("neighbours", fetchCached("v1/neighbours", { ...request, top: 6 }, signal).catch(noNeighbours)),
  ]);
}

/** Empty lists with the reason, where a request for neighbours fails. */
function noNeighbours(error) {
  if (error instanceof PageError) return { contextual: [], static: [], error: error.message };
  throw error;
}

async function tag(signal) {
  const texts = page.state.sentences.map(({ text }) => text);
  const unknown = texts.filter((text) => wordsOf(text)?.length && !page.labels.has(text));
  if (!page.tagger || !unknown.length) return;
  const { sentences } = await fetchCached("v1/tag", { sentences: unknown.map(wordsOf) }, signal);
  unknown.forEach((text, number) => page.labels.set(text, sentences[number].labels));
}
