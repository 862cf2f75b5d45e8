/**
 * The state of the page, and how it is written into the address after the `#`, so that a link restores it.
 *
 * @typedef {object} Sentence
 * @property {string} text
 * @property {string} sense a letter that the user gave it, shown as a colour
 * @property {number|null} position of the picked word; null: not searched yet, or not found
 * @property {string} [wanted] the word to pick, if not the word of the state
 * @typedef {object} State
 * @property {string|null} example the example that these sentences are, unchanged
 * @property {string} word the word to pick in a sentence without a pick
 * @property {Sentence[]} sentences
 * @property {number|"mean"|null} layer null: the top layer
 * @property {string|null} model null: the first model
 * @property {number} use the number of the use whose details are shown
 */

import { EXAMPLES, FIRST, exampleSentences } from "./examples.js";

export const SENSES = ["a", "b", "c", "d"];
export const MAX_SENTENCES = 24;

/** @returns {State} */
export function fromExample(word) {
  return { example: word, word, sentences: exampleSentences(word), layer: null, model: null, use: 0 };
}

/** @returns {State} from the fragment of an address; invalid parts are ignored. */
export function fromFragment(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const sentences = fields.getAll("s").slice(0, MAX_SENTENCES).map(readSentence).filter(Boolean);
  const example = EXAMPLES.includes(fields.get("example")) ? fields.get("example") : FIRST;
  const state = fromExample(example);
  if (fields.has("word")) Object.assign(state, { example: null, word: fields.get("word"), sentences });
  state.layer = readLayer(fields.get("layer"));
  state.model = fields.get("model");
  state.use = Math.max(0, Math.min(readNumber(fields.get("use")) ?? 0, state.sentences.length - 1));
  return state;
}

/** @param {State} state */
export function toFragment(state) {
  const fields = new URLSearchParams();
  if (state.example) fields.set("example", state.example);
  else fields.set("word", state.word);
  if (!state.example) state.sentences.forEach((sentence) => fields.append("s", writeSentence(sentence)));
  if (state.layer !== null) fields.set("layer", String(state.layer));
  if (state.model) fields.set("model", state.model);
  if (state.use) fields.set("use", String(state.use));
  return `#${fields}`;
}

function writeSentence({ sense, position, text }) {
  return `${sense}${position ?? ""} ${text}`;
}

function readSentence(field) {
  const parts = /^([a-d])(\d{0,6}) ([^]*\S[^]*)$/.exec(field);
  return parts && { sense: parts[1], position: readNumber(parts[2]), text: parts[3] };
}

function readNumber(field) {
  return /^\d{1,6}$/.test(field ?? "") ? Number(field) : null;
}

function readLayer(field) {
  return field === "mean" ? "mean" : readNumber(field);
}

/**
 * Picks a word in its sentence, and in every other sentence that has it; the rest keep their picks.
 *
 * @param {State} state
 * @param {(text: string) => string[]|undefined} wordsOf
 * @returns {State}
 */
export function pick(state, number, position, wordsOf) {
  const word = wordsOf(state.sentences[number].text)[position];
  const sentences = state.sentences.map((sentence, other) => {
    if (other === number) return { ...sentence, position };
    const found = findWord(wordsOf(sentence.text) ?? [], word);
    return found === null ? sentence : { ...sentence, position: found };
  });
  return { ...state, example: null, word, sentences, use: number };
}

/** @returns {State} with a new text for one sentence; the word picked in it is searched again. */
export function edit(state, number, text, sense, wordsOf) {
  const { text: old, position } = state.sentences[number];
  const wanted = wordsOf(old)?.[position ?? -1];
  const changed = old === text ? { text, sense, position } : { text, sense, position: null, wanted };
  return { ...state, example: null, sentences: state.sentences.with(number, changed) };
}

/** @returns {State} */
export function add(state, text) {
  const sense = state.sentences.at(-1)?.sense ?? SENSES[0];
  const sentences = [...state.sentences, { text, sense, position: null }];
  return { ...state, example: null, sentences, use: sentences.length - 1 };
}

/** @returns {State} */
export function remove(state, number) {
  const sentences = state.sentences.toSpliced(number, 1);
  const use = Math.max(0, Math.min(state.use - (number < state.use ? 1 : 0), sentences.length - 1));
  return { ...state, example: null, sentences, use };
}

/** @returns {State} with the word picked in every sentence whose words are known and include it. */
export function pickEverywhere(state, wordsOf) {
  const sentences = state.sentences.map((sentence) => {
    const words = wordsOf(sentence.text);
    if (!words || (sentence.position !== null && sentence.position < words.length)) return sentence;
    return { ...sentence, position: findWord(words, sentence.wanted ?? "") ?? findWord(words, state.word) };
  });
  return { ...state, sentences };
}

/** The position of a word among words: as written, else in any case; null if there is none. */
function findWord(words, word) {
  const exact = words.indexOf(word);
  if (exact >= 0) return exact;
  const folded = words.findIndex((other) => other.toLowerCase() === word.toLowerCase());
  return folded >= 0 ? folded : null;
}
