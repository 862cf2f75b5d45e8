/**
 * What a person has chosen, and how it is written into the address after the `#`, so that a link holds it.
 *
 * @typedef {object} Sentence
 * @property {string} text
 * @property {string} sense a letter that the person gave it, shown as a colour
 * @property {number|null} position of the picked word; null: not looked for yet, or not there
 * @property {string} [sought] the word to look for, where it is another than the state's
 * @typedef {object} State
 * @property {string|null} example the ready example these sentences are, unchanged
 * @property {string} word what is looked for in a sentence that has no pick
 * @property {Sentence[]} sentences
 * @property {number|"mean"|null} layer null: the top one
 * @property {string|null} model null: the first one
 * @property {number} use the one that is looked at closely
 */

import { EXAMPLES, FIRST, exampleSentences } from "./examples.js";

export const SENSES = ["a", "b", "c", "d"];
export const MOST_SENTENCES = 24;

/** @returns {State} */
export function fromExample(word) {
  return { example: word, word, sentences: exampleSentences(word), layer: null, model: null, use: 0 };
}

/** @returns {State} of the address; what makes no sense in it is passed over. */
export function fromFragment(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const sentences = fields.getAll("s").slice(0, MOST_SENTENCES).map(readSentence).filter(Boolean);
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
 * The word is picked in its sentence, and in every other that has it too; the rest keep what they had.
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

/** @returns {State} with another text for one sentence; the word picked in it is looked for again. */
export function edit(state, number, text, sense, wordsOf) {
  const { text: old, position } = state.sentences[number];
  const sought = wordsOf(old)?.[position ?? -1];
  const changed = old === text ? { text, sense, position } : { text, sense, position: null, sought };
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

/** @returns {State} in which each sentence whose words are known has its word picked, where it has that word. */
export function settle(state, wordsOf) {
  const sentences = state.sentences.map((sentence) => {
    const words = wordsOf(sentence.text);
    if (!words || (sentence.position !== null && sentence.position < words.length)) return sentence;
    return { ...sentence, position: findWord(words, sentence.sought ?? "") ?? findWord(words, state.word) };
  });
  return { ...state, sentences };
}

/** Where a word stands among words: as written if it can be, else whatever its case. */
function findWord(words, word) {
  const exact = words.indexOf(word);
  if (exact >= 0) return exact;
  const folded = words.findIndex((other) => other.toLowerCase() === word.toLowerCase());
  return folded >= 0 ? folded : null;
}
