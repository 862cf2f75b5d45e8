/** What a tagger that was fitted on the layers weighs them with. Its labels stand under the words of the sentences. */

import { bar, byId, h, replace } from "./dom.js";
import { layerName } from "./layers.js";
import { page } from "./store.js";

export function drawTagger() {
  const { tagger } = page;
  byId("tagger").hidden = !tagger;
  if (!tagger) return;
  const mixes = Object.entries(tagger.mixes ?? {}).flatMap(([place, list]) => list.map((mix) => ({ ...mix, place })));
  replace(byId("tagger"),
    h("h2", { id: "tagger-title" }, "What the tagger listens to"),
    h("p", { class: "quiet" }, `${tagger.id} was fitted on these layers and chose how much of each it takes.`),
    h("div", { class: "columns" }, ...mixes.map(weights)));
}

function weights({ place, encoder, weights: shares, gamma }) {
  const model = page.models.find(({ id }) => id === encoder) ?? { layers: shares.length };
  const name = (layer) => h("span", { class: "term" }, layerName(model, layer));
  const rows = shares.map((share, layer) => h("li", {}, name(layer), bar(share, share.toFixed(2))));
  const about = `at its ${place}, all times ${gamma.toFixed(2)}`;
  const list = h("ol", { class: "plain" }, ...rows);
  return h("section", {}, h("h3", {}, encoder), h("p", { class: "quiet" }, about), list);
}
