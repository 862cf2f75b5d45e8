/** The list of sentences: pick a word, edit, add, remove. */

import { button, byId, h, svg } from "./dom.js";
import { MAX_SENTENCES, SENSES, add, edit, pick, remove } from "./state.js";
import { change, page, show, wordsOf } from "./store.js";
import { locate } from "./text.js";

const rows = new Map(); // by sentence number: what was drawn, and the element
let editing = null; // {number, text} of the sentence being edited

/** Draws the rows that changed; a row being edited is left alone. */
export function drawSentences() {
  const { sentences, use } = page.state;
  if (editing && sentences[editing.number]?.text !== editing.text) editing = null; // the sentence has changed
  sentences.forEach((sentence, number) => {
    const known = [wordsOf(sentence.text), page.labels.get(sentence.text)];
    const typing = number === editing?.number;
    const drawn = JSON.stringify(typing ? number : [sentence, number === use, ...known]);
    if (rows.get(number)?.drawn !== drawn) place(number, drawn, typing ? editor(number) : row(number));
  });
  for (const number of [...rows.keys()].filter((number) => number >= sentences.length)) {
    rows.get(number).element.remove();
    rows.delete(number);
  }
  byId("add").hidden = sentences.length >= MAX_SENTENCES;
}

function place(number, drawn, element) {
  const old = rows.get(number)?.element;
  const focused = old?.contains(document.activeElement) ? document.activeElement.id : "";
  if (old) old.replaceWith(element);
  else byId("uses").append(element);
  rows.set(number, { drawn, element });
  if (focused) byId(focused)?.focus({ preventScroll: true });
}

function row(number) {
  const { sense, position, text } = page.state.sentences[number];
  const current = number === page.state.use;
  const name = number + 1;
  return h("li", { class: `use sense-${sense}${current ? " current" : ""}` },
    button({ class: "number", id: `number-${number}`, "aria-pressed": String(current),
      "aria-label": `Show details of use ${name}`, onclick: () => show({ use: number }) }, String(name)),
    h("div", { class: "sentence" }, words(number), position === null && wordsOf(text) ? hint(text) : null),
    h("div", { class: "tools" },
      button({ id: `edit-${number}`, title: "Edit", "aria-label": `Edit sentence ${name}`,
        onclick: () => open(number) }, icon("M4 16l1-4 8-8 3 3-8 8-4 1z")),
      button({ id: `remove-${number}`, title: "Remove", "aria-label": `Remove sentence ${name}`,
        onclick: () => drop(number) }, icon("M5 5l10 10M15 5L5 15"))));
}

function hint(text) {
  return h("p", { class: "hint" }, page.refused.get(text) ?? "Pick a word in this sentence.");
}

function icon(path) {
  return svg("svg", { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" }, svg("path", { d: path }));
}

/** The text with selectable words: a radio group with arrow keys and one tab stop. */
function words(number) {
  const { text, position } = page.state.sentences[number];
  const known = wordsOf(text) ?? [];
  const labels = page.labels.get(text) ?? [];
  const parts = [];
  let end = 0;
  locate(text, known).forEach(([from, to], at) => {
    parts.push(text.slice(end, from), word(number, at, text.slice(from, to), labels[at]));
    end = to;
  });
  parts.push(text.slice(end));
  return h("p", { class: "words", dir: "auto", role: "radiogroup", "aria-label": `Sentence ${number + 1}, pick a word`,
    onkeydown: (event) => onArrow(event, number, position ?? -1, known.length) }, ...parts);
}

function word(number, at, text, label) {
  const { position } = page.state.sentences[number];
  return h("span", { class: "word", role: "radio", id: `word-${number}-${at}`,
    "aria-checked": String(at === position), tabindex: at === (position ?? 0) ? "0" : "-1",
    "data-label": label && label !== "O" ? label : null, title: label && label !== "O" ? label : null,
    onclick: () => choose(number, at) }, text);
}

function choose(number, at) {
  return change(pick(page.state, number, at, wordsOf));
}

/** As in any radio group, an arrow key picks the next word; in right-to-left text the next one is to the left. */
function onArrow(event, number, position, length) {
  const leftward = getComputedStyle(event.currentTarget).direction === "rtl" ? 1 : -1;
  const steps = { ArrowLeft: leftward, ArrowRight: -leftward, ArrowUp: -1, ArrowDown: 1 };
  const here = Number(event.target.id.split("-").at(-1));
  const direct = { Home: 0, End: length - 1, Enter: here, " ": here }[event.key];
  const target = direct ?? position + (steps[event.key] ?? NaN);
  if (!(target >= 0 && target < length)) return;
  event.preventDefault();
  choose(number, target);
  byId(`word-${number}-${target}`).focus({ preventScroll: true });
}

function open(number) {
  editing = { number, text: page.state.sentences[number].text };
  drawSentences();
  byId(`text-${number}`).focus();
}

function close(number, state) {
  editing = null;
  if (state) change(state);
  else drawSentences();
  byId(`edit-${number}`)?.focus();
}

function editor(number) {
  const { text, sense } = page.state.sentences[number];
  const name = `Text of sentence ${number + 1}`;
  const field = h("textarea", { id: `text-${number}`, dir: "auto", rows: "3", "aria-label": name });
  field.value = text;
  const save = (event) => {
    event.preventDefault();
    const typed = field.value.trim();
    const chosen = new FormData(form).get("sense");
    close(number, typed ? edit(page.state, number, typed, chosen, wordsOf) : null);
  };
  const form = h("form", { class: "editor", onsubmit: save }, field,
    h("fieldset", {}, h("legend", {}, "sense"), ...SENSES.map((letter) => swatch(letter, letter === sense))),
    h("button", { type: "submit" }, "Save"),
    button({ onclick: () => close(number) }, "Cancel"));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) save(event);
    if (event.key === "Escape") close(number);
  });
  return h("li", { class: `use sense-${sense}` }, form);
}

function swatch(letter, checked) {
  return h("label", { class: `swatch sense-${letter}` },
    h("input", { type: "radio", name: "sense", value: letter, checked, "aria-label": `Sense ${letter} (colour)` }));
}

function drop(number) {
  editing = null;
  change(remove(page.state, number));
  (byId(`remove-${Math.min(number, page.state.sentences.length - 1)}`) ?? byId("new-sentence")).focus();
}

/** Adds what is typed below the list as its last sentence. */
export function listenForNewSentences() {
  byId("add").addEventListener("submit", (event) => {
    event.preventDefault();
    const field = byId("new-sentence");
    const typed = field.value.trim();
    field.value = "";
    if (typed) change(add(page.state, typed));
  });
}
