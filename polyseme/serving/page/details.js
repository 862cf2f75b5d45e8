/** Details of one use: its nearest neighbours with and without context, and the language model's predictions. */

import { bar, byId, h, replace } from "./dom.js";
import { layerName } from "./layers.js";
import { detailsRequest, mainLayer, mainModel, page, wordsOf } from "./store.js";
import { detokenise, locate } from "./text.js";

export function drawDetails() {
  const request = detailsRequest();
  byId("details").hidden = !request || !page.details;
  if (page.details?.of !== JSON.stringify(request)) return; // until the response arrives, the old details stay
  const { neighbours, predicted } = page.details;
  const { text, sense, position } = page.state.sentences[page.state.use];
  const [from, to] = locate(text, wordsOf(text))[position];
  const parts = [text.slice(0, from), text.slice(from, to), text.slice(to)];
  const number = h("span", { class: `use-number sense-${sense}` }, String(page.state.use + 1));
  replace(byId("details"),
    h("h2", { id: "details-title" }, "Use ", number, " in detail"),
    h("p", { class: `quote sense-${sense}`, dir: "auto" }, parts[0], h("mark", {}, parts[1]), parts[2]),
    predicted && predictions(predicted, parts),
    neighbours && nearest(neighbours, parts[1]));
}

function nearest({ contextual, static: contextFree, error }, word) {
  if (error) return h("p", { class: "muted" }, error);
  const where = `${mainModel().id}, ${layerName(mainModel(), mainLayer())}`;
  const words = contextFree.map(({ word: other, similarity }) => barItem(other, similarity, similarity.toFixed(2)));
  return h("div", { class: "columns" },
    list("Nearest uses in context", [where], contextual.map(contextLine)),
    list("Nearest words without context", ["the same for every ", h("em", { dir: "auto" }, word)], words));
}

function list(title, note, items) {
  if (!items.length) return null;
  const ordered = h("ol", { class: "plain" }, ...items);
  return h("section", {}, h("h3", {}, title), h("p", { class: "muted" }, ...note), ordered);
}

function contextLine({ sentence, position, similarity }) {
  const before = detokenise(sentence.slice(0, position));
  const rest = detokenise(sentence.slice(position)).slice(sentence[position].length);
  return h("li", { class: "context" },
    h("span", { dir: "auto" }, before ? `${before} ` : "", h("b", {}, sentence[position]), rest),
    h("span", { class: "value" }, similarity.toFixed(2)));
}

function barItem(word, share, value, actual = false) {
  const term = h("span", { class: "term", dir: "auto" }, word);
  return h("li", { class: actual ? "actual" : null }, term, bar(share, value));
}

/** The predictions of each direction. A direction reads one side of the word only; the other is shown blurred. */
function predictions({ forward, backward, both }, [before, word, after]) {
  const blank = () => annotated("blank", "actual word", word);
  const direction = (title, guesses, ...line) => h("section", {}, h("h3", {}, title),
    h("p", { class: "line", dir: "auto" }, ...line), h("ol", { class: "plain" }, ...likely(guesses, word)));
  return h("div", { class: "columns predictions" },
    direction("Reading forward, it predicted", forward, before, blank(), annotated("unread", "not read", after)),
    direction("Reading backward, it predicted", backward, annotated("unread", "not read", before), blank(), after),
    direction("Both combined", both, before, blank(), after));
}

/** Text with a style that shows something, and the same in words for screen readers. */
function annotated(kind, note, text) {
  const spoken = (part) => h("span", { class: "visually-hidden" }, part);
  return h("span", { class: kind }, spoken(`[${note}: `), text, spoken("]"));
}

function likely(guesses, actual) {
  const highest = Math.max(...guesses.map(({ probability }) => probability), 1e-9);
  return guesses.map(({ word, probability: share }) =>
    barItem(word, share / highest, percent(share), word === actual));
}

function percent(share) {
  const value = 100 * share;
  if (value >= 10) return `${value.toFixed(0)} %`;
  return value >= 0.1 ? `${value.toFixed(1)} %` : "< 0.1 %";
}
