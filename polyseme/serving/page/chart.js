/** Line chart of the mean cosine similarity within a sense and between senses, layer by layer. */

import { byId, h, replace, svg } from "./dom.js";
import { averages, layerName } from "./layers.js";
import { comparisonOf, mainLayer, mainModel, page } from "./store.js";

const WIDTH = 420;
const HEIGHT = 240;
const FRAME = { left: 34, right: 118, top: 16, bottom: 30 };

export function drawChart() {
  const comparison = comparisonOf(mainModel());
  if (!comparison) return;
  const layers = comparison.layers.filter(({ layer }) => layer !== "mean");
  const senses = comparison.shown.map((number) => page.state.sentences[number].sense);
  const steps = layers.map(({ layer, cosines }) => ({ layer, ...averages(cosines, senses) }));
  const drawable = steps.length > 1 && steps[0].within && steps[0].across;
  const title = h("h3", {}, "Mean cosine similarity, layer by layer");
  replace(byId("chart"), ...(drawable ? [title, lineChart(steps)] : []));
}

function lineChart(steps) {
  const least = Math.floor(10 * Math.min(0.9, ...steps.flatMap(({ within, across }) => [within, across]))) / 10;
  const x = (step) => FRAME.left + (step / (steps.length - 1)) * (WIDTH - FRAME.left - FRAME.right);
  const y = (value) => FRAME.top + ((1 - value) / (1 - least)) * (HEIGHT - FRAME.top - FRAME.bottom);
  const points = (kind) => steps.map((step, at) => `${x(at)},${y(step[kind])}`).join(" ");
  const values = steps.map(({ layer, within, across }) => `${layerName(mainModel(), layer)} ${within} and ${across}`);
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `Mean cosine similarity within a sense and between senses: ${values.join("; ")}` },
    ...[1, least].map((value) => words(value.toFixed(1), { x: FRAME.left - 8, y: y(value) + 4, "text-anchor": "end" })),
    marker(steps.findIndex(({ layer }) => layer === mainLayer()), x),
    ...["across", "within"].map((kind) => svg("polyline", { class: kind, points: points(kind) })),
    ...names(steps, x), ...ends(steps.at(-1), x(steps.length - 1) + 8, y));
}

const words = (text, attributes) => svg("text", attributes, text);

/** A vertical line at the layer that the slider is on. */
function marker(step, x) {
  const ends = { x1: x(step), x2: x(step), y1: FRAME.top, y2: HEIGHT - FRAME.bottom };
  return step < 0 ? null : svg("line", { class: "here", ...ends });
}

function names(steps, x) {
  const last = steps.length - 1;
  const named = steps.filter((_, at) => last < 4 || at === 0 || at === last);
  return named.map(({ layer }) => words(layerName(mainModel(), layer), {
    x: x(layer), y: HEIGHT - 8, "text-anchor": layer === 0 ? "start" : "middle" }));
}

/** The labels of the lines, at their ends, kept apart. */
function ends({ within, across }, x, y) {
  const [upper, lower] = [y(within), y(across)];
  const push = (Math.max(0, 18 - Math.abs(upper - lower)) / 2) * (upper <= lower ? 1 : -1);
  return [
    words(`same sense ${within}`, { class: "within", x, y: upper + 4 - push }),
    words(`different ${across}`, { class: "across", x, y: lower + 4 + push }),
  ];
}
