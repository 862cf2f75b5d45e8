/** The cosines between all uses on the chosen layer, as a table whose colours say what its numbers say. */

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
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table of cosines" },
    h("table", {},
      h("caption", {}, `Cosines on ${layerName(mainModel(), layer)}: 1.00 is the same direction`),
      h("thead", {}, h("tr", {}, h("td", {}), ...heads("col"))),
      h("tbody", {}, ...rows)));
}

/** Colours run from the least cosine of any layer to 1, so that they compare from layer to layer. */
function cell(value, lowest) {
  const element = h("td", {}, value.toFixed(2));
  element.style.setProperty("--heat", `${Math.round((100 * (value - lowest)) / (1 - lowest))}%`);
  return element;
}
