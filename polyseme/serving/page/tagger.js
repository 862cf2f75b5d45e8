/** The layer weights that the tagger has learned. Its labels are shown beside the words of the sentences. */

import { bar, byId, h, replace } from "./dom.js";
import { layerName } from "./layers.js";
import { page } from "./store.js";

export function drawTagger() {
  const { tagger } = page;
  byId("tagger").hidden = !tagger;
  if (!tagger) return;
  const mixes = Object.entries(tagger.mixes ?? {}).flatMap(([place, list]) => list.map((mix) => ({ ...mix, place })));
  replace(byId("tagger"),
    h("h2", { id: "tagger-title" }, "Layer weights of the tagger"),
    h("p", { class: "muted" }, `${tagger.id} learned these weights when it was trained.`),
    h("div", { class: "columns" }, ...mixes.map(weights)));
}

function weights({ place, encoder, weights: values, gamma }) {
  const model = page.models.find(({ id }) => id === encoder) ?? { layers: values.length };
  const name = (layer) => h("span", { class: "term" }, layerName(model, layer));
  const rows = values.map((weight, layer) => h("li", {}, name(layer), bar(weight, weight.toFixed(2))));
  const note = `at its ${place}, scale γ = ${gamma.toFixed(2)}`;
  const list = h("ol", { class: "plain" }, ...rows);
  return h("section", {}, h("h3", {}, encoder), h("p", { class: "muted" }, note), list);
}
