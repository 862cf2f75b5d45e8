/** The one place that holds what was chosen and what the server said to it. Views read it; `change` is the way in. */

import { Problem, ask, askAnew } from "./api.js";
import { exampleWords } from "./examples.js";
import { align, byCosine } from "./geometry.js";
import { fromFragment, settle, toFragment } from "./state.js";

/**
 * @typedef {{id: string, layers: number, dim: number, language_model: boolean, layer_names: string[]}} Model
 * @typedef {{layer: number|"mean", cosines: number[][], map: [number, number][]}} Layer
 * @typedef {object} Comparison
 * @property {string} of what was compared, to tell whether it still is what is to be shown
 * @property {number[]} shown the numbers of the sentences
 * @property {Layer[]} layers as `stops` has them
 * @property {string} [problem] why there are none
 */
export const page = {
  /** @type {import("./state.js").State} */ state: fromFragment(location.hash),
  /** @type {Model[]} */ models: [],
  tagger: null,
  /** @type {Map<string, string[]>} */ words: exampleWords(),
  /** @type {Map<string, string>} */ refused: new Map(), // texts the server does not take, and why
  /** @type {Map<string, Comparison>} */ comparisons: new Map(),
  labels: new Map(),
  /** @type {{of: string, neighbours: object, expected: object|null}|null} */ closer: null,
  /** @type {Problem|null} */ problem: null,
  busy: true,
  /** @type {number|null} */ playing: null, // the timer of the next layer
};

export const wordsOf = (text) => page.words.get(text);

/** The model that the large map and everything below it are of. */
export function mainModel() {
  return page.models.find(({ id }) => id === page.state.model) ?? page.models[0];
}

/** The layers one can choose of a model: its own from the bottom up, then their mean where there are several. */
export function stops(model) {
  const own = Array.from({ length: model.layers }, (_, layer) => layer);
  return model.layers > 1 ? [...own, "mean"] : own;
}

/** The chosen layer of the main model; the top one until somebody chooses. */
export function mainLayer() {
  const all = stops(mainModel());
  return all.includes(page.state.layer) ? page.state.layer : mainModel().layers - 1;
}

const pickedWord = ({ text, position }) => wordsOf(text)?.[position ?? -1];

/** The numbers of the sentences that have a word picked. */
export function picked() {
  return [...page.state.sentences.keys()].filter((number) => pickedWord(page.state.sentences[number]) !== undefined);
}

/** What is to be compared now, as the server is asked for it. */
export function uses() {
  const chosen = picked().map((number) => page.state.sentences[number]);
  return { sentences: chosen.map(({ text }) => wordsOf(text)), positions: chosen.map(({ position }) => position) };
}

/** A model's comparison of what is chosen now; null while the server has not answered yet. */
export function comparisonOf(model) {
  const found = page.comparisons.get(model.id);
  return found?.of === chosen() ? found : null;
}

const chosen = () => JSON.stringify([picked(), uses()]);

/** What is looked at closely: the request for it, or null. */
export function focus() {
  const sentence = page.state.sentences[page.state.use];
  if (!sentence || pickedWord(sentence) === undefined) return null;
  return { model: mainModel().id, sentence: wordsOf(sentence.text), position: sentence.position, layer: mainLayer() };
}

let render = () => {};
let running = new AbortController();

/** Asks for the models, then shows what the address says. */
export async function start(draw) {
  render = draw;
  addEventListener("hashchange", () => {
    if (location.hash !== toFragment(page.state)) change(fromFragment(location.hash), { written: true });
  });
  await change(page.state, { written: true });
}

/**
 * Takes a new state: the address follows, then the views, then what the server has to say.
 *
 * @param {import("./state.js").State} state
 * @param {{written?: boolean}} [options] written: the address says so already
 */
export async function change(state, { written = false } = {}) {
  page.state = state;
  if (!written) write();
  running.abort();
  running = new AbortController();
  const { signal } = running;
  page.busy = true;
  render();
  await guarded(() => load(signal));
}

/** Another layer, use or model of what is there. */
export function show(changes) {
  return change({ ...page.state, ...changes });
}

function write() {
  history.replaceState(null, "", toFragment(page.state));
}

async function guarded(work) {
  try {
    await work();
    page.problem = null;
  } catch (error) {
    if (error.name === "AbortError") return; // somebody has chosen something else meanwhile
    page.problem = error instanceof Problem ? error : new Problem("Something on this page went wrong.");
    if (!(error instanceof Problem)) console.error(error);
  }
  page.busy = false;
  render();
}

async function load(signal) {
  if (!page.models.length) Object.assign(page, await ask("v1/models", undefined, signal));
  await learnWords(signal);
  page.state = settle(page.state, wordsOf);
  if (location.hash) write(); // with the words that were found
  render();
  const main = mainModel();
  await compare(main, signal);
  render();
  await Promise.all(page.models.filter((model) => model !== main).map((model) => compare(model, signal)));
  render();
  await Promise.all([page.playing ? null : lookCloser(signal), tag(signal)]);
}

async function learnWords(signal) {
  for (const { text } of page.state.sentences) if (!page.words.has(text)) await learn(text, signal);
}

/** A text that is refused stays in the list, with the reason, and has no words. */
async function learn(text, signal) {
  try {
    const { sentences } = await askAnew("v1/words", { text, layers: 0 }, signal);
    page.words.set(text, sentences.flatMap(({ words }) => words));
  } catch (error) {
    if (!error.refused) throw error;
    page.words.set(text, []);
    page.refused.set(text, error.message);
  }
}

/** Another model may lack a word; that is said on its map and hinders nobody else. */
async function compare(model, signal) {
  const [of, shown] = [chosen(), picked()];
  if (shown.length < 2) return void page.comparisons.set(model.id, { of, shown, layers: alone(model, shown) });
  try {
    const answer = await ask("v1/compare", { model: model.id, ...uses(), layer: "all" }, signal);
    const plain = answer.layers.slice(0, stops(model).length); // of a single layer the mean is the same once more
    const maps = align(plain.map(byCosine));
    page.comparisons.set(model.id, { of, shown, layers: plain.map((layer, at) => ({ ...layer, map: maps[at] })) });
  } catch (error) {
    if (!(error instanceof Problem) || model === mainModel()) throw error;
    page.comparisons.set(model.id, { of, shown: [], layers: [], problem: error.message });
  }
}

/** A single use is like itself, on every layer; there is nothing to ask. */
function alone(model, shown) {
  return stops(model).map((layer) => ({ layer, cosines: shown.map(() => [1]), map: shown.map(() => [0, 0]) }));
}

/** The neighbours of the use in the middle of attention, and what the language model expected in its place. */
async function lookCloser(signal) {
  const request = focus();
  if (!request) return;
  const { model, sentence, position } = request;
  const found = { of: JSON.stringify(request), neighbours: null, expected: null };
  const arrive = async (part, answer) => {
    found[part] = await answer;
    page.closer = found;
    render();
  };
  const { language_model: expects } = mainModel();
  await Promise.all([
    expects && arrive("expected", ask("v1/predict", { model, sentence, position, top: 7 }, signal)),
    arrive("neighbours", ask("v1/neighbours", { ...request, top: 6 }, signal).catch(absent)),
  ]);
}

/** A word without neighbours leaves its place empty, with the reason. */
function absent(error) {
  if (error instanceof Problem) return { contextual: [], static: [], problem: error.message };
  throw error;
}

async function tag(signal) {
  const texts = page.state.sentences.map(({ text }) => text);
  const unknown = texts.filter((text) => wordsOf(text)?.length && !page.labels.has(text));
  if (!page.tagger || !unknown.length) return;
  const { sentences } = await ask("v1/tag", { sentences: unknown.map(wordsOf) }, signal);
  unknown.forEach((text, number) => page.labels.set(text, sentences[number].labels));
}
