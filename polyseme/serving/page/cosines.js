/** Heatmap: a table of the cosine similarities between all uses at the chosen layer. */

import { byId, h, replace } from "./dom.js";
import { layerName } from "./layers.js";
import { comparisonOf, mainLayer, mainModel, page } from "./store.js";

export function drawCosines() {
  const comparison = comparisonOf(mainModel());
  if (!comparison) return;
  const layer = comparison.layers.find((one) => one.layer === mainLayer());
  const lowest = Math.min(...comparison.layers.flatMap(({ cosines }) => cosines.flat()), 0.999);
  replace(byId("cosines"), table(layer, comparison.shown, lowest));
}

function table({ layer, cosines }, shown, lowest) {
  const senseOf = (number) => `sense-${page.state.sentences[number].sense}`;
  const heads = (scope) => shown.map((number) => h("th", { scope, class: senseOf(number) }, String(number + 1)));
  const rowHeads = heads("row");
  const rows = cosines.map((values, row) => h("tr", {}, rowHeads[row], ...values.map((value) => cell(value, lowest))));
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table of cosine similarities" },
    h("table", {},
      h("caption", {}, `Cosine similarity at ${layerName(mainModel(), layer)} (1.00: same direction)`),
      h("thead", {}, h("tr", {}, h("td", {}), ...heads("col"))),
      h("tbody", {}, ...rows)));
}

/** Colours run from the lowest cosine of any layer to 1, so that layers can be compared. */
function cell(value, lowest) {
  const element = h("td", {}, value.toFixed(2));
  element.style.setProperty("--heat", `${Math.round((100 * (value - lowest)) / (1 - lowest))}%`);
  return element;
}
