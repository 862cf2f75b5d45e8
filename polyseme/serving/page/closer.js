/** One use up close: its neighbours in context and out of it, and what the language model expected in its place. */

import { bar, byId, h, replace } from "./dom.js";
import { layerName } from "./layers.js";
import { focus, mainLayer, mainModel, page, wordsOf } from "./store.js";
import { joined, locate } from "./text.js";

export function drawCloser() {
  const request = focus();
  byId("closer").hidden = !request || !page.closer;
  if (page.closer?.of !== JSON.stringify(request)) return; // until it is there, what was there stays
  const { neighbours, expected } = page.closer;
  const { text, sense, position } = page.state.sentences[page.state.use];
  const [from, to] = locate(text, wordsOf(text))[position];
  const parts = [text.slice(0, from), text.slice(from, to), text.slice(to)];
  const number = h("span", { class: `which sense-${sense}` }, String(page.state.use + 1));
  replace(byId("closer"),
    h("h2", { id: "closer-title" }, "Use ", number, " up close"),
    h("p", { class: `quote sense-${sense}`, dir: "auto" }, parts[0], h("mark", {}, parts[1]), parts[2]),
    expected && expectations(expected, parts),
    neighbours && nearest(neighbours, parts[1]));
}

function nearest({ contextual, static: alone, problem }, word) {
  if (problem) return h("p", { class: "quiet" }, problem);
  const where = `${mainModel().id}, ${layerName(mainModel(), mainLayer())}`;
  const words = alone.map(({ word: other, similarity }) => measured(other, similarity, similarity.toFixed(2)));
  return h("div", { class: "columns" },
    list("Nearest uses, read in their sentences", [where], contextual.map(contextLine)),
    list("Nearest words, without any sentence", ["the same for every ", h("em", { dir: "auto" }, word)], words));
}

function list(title, about, items) {
  if (!items.length) return null;
  const ordered = h("ol", { class: "plain" }, ...items);
  return h("section", {}, h("h3", {}, title), h("p", { class: "quiet" }, ...about), ordered);
}

function contextLine({ sentence, position, similarity }) {
  const before = joined(sentence.slice(0, position));
  const rest = joined(sentence.slice(position)).slice(sentence[position].length);
  return h("li", { class: "context" },
    h("span", { dir: "auto" }, before ? `${before} ` : "", h("b", {}, sentence[position]), rest),
    h("span", { class: "figure" }, similarity.toFixed(2)));
}

function measured(word, share, figure, hit = false) {
  return h("li", { class: hit ? "hit" : null }, h("span", { class: "term", dir: "auto" }, word), bar(share, figure));
}

/** Each half of the model has read one side only; the other side is shown as it was to it: unreadable. */
function expectations({ forward, backward, both }, [before, word, after]) {
  const gap = () => aside("gap", "here stands", word);
  const half = (title, guesses, ...line) => h("section", {}, h("h3", {}, title),
    h("p", { class: "line", dir: "auto" }, ...line), h("ol", { class: "plain" }, ...likely(guesses, word)));
  return h("div", { class: "columns expected" },
    half("Reading forward, it expected", forward, before, gap(), aside("veiled", "not read", after)),
    half("Reading backward, it expected", backward, aside("veiled", "not read", before), gap(), after),
    half("Both together", both, before, gap(), after));
}

/** What one sees that it was not seen, and hears why. */
function aside(kind, why, text) {
  const spoken = (part) => h("span", { class: "unseen" }, part);
  return h("span", { class: kind }, spoken(`[${why}: `), text, spoken("]"));
}

function likely(guesses, actual) {
  const most = Math.max(...guesses.map(({ probability }) => probability), 1e-9);
  return guesses.map(({ word, probability: share }) => measured(word, share / most, percent(share), word === actual));
}

function percent(share) {
  const value = 100 * share;
  if (value >= 10) return `${value.toFixed(0)} %`;
  return value >= 0.1 ? `${value.toFixed(1)} %` : "< 0.1 %";
}
