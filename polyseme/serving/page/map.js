/** The map: a scatter plot of the uses with labels, animated from layer to layer, with trails. */

import { h, svg } from "./dom.js";
import { fit, placeLabels } from "./geometry.js";
import { page, wordsOf } from "./store.js";
import { contextOf } from "./text.js";

const NARROW = 460; // pixels; a narrower map has shorter labels

/**
 * @param {object} options
 * @param {boolean} options.labelled
 * @param {() => void} options.redraw called when the size has changed
 * @param {(number: number) => void} [options.choose] called with the use that was clicked
 * @returns {{element: HTMLElement, draw: (comparison, layer: number, title: string) => void}}
 */
export function makeMap({ labelled, redraw, choose }) {
  const trails = svg("svg", { class: "trails", "aria-hidden": "true" });
  const points = h("div", { class: "points" });
  const element = h("div", { class: `map${labelled ? "" : " small"}`, role: "img" }, trails, points);
  new ResizeObserver(redraw).observe(element);

  function draw(comparison, layer, title) {
    element.setAttribute("aria-label", title);
    const box = { width: element.clientWidth, height: element.clientHeight };
    if (!box.width) return;
    const maps = scaled(comparison, box, labelled);
    const trail = comparison.layers[layer]?.layer === "mean" ? [maps[0], maps[layer]] : maps.slice(0, layer + 1);
    update(points, comparison.shown, labelled, choose, box.width < NARROW ? 1 : 2);
    const leaders = move(points, maps[layer] ?? [], box);
    trails.replaceChildren(...(labelled ? [...paths(comparison.shown, trail), ...leaders] : []));
  }
  return { element, draw };
}

function scaled({ layers }, { width, height }, labelled) {
  const marginX = labelled ? Math.min(width * 0.2, 130) : 22;
  return fit(layers.map(({ map }) => map), { width, height, marginX, marginY: labelled ? 48 : 22 });
}

/** One dot and one label per use; elements are reused from one drawing to the next, so that they can move. */
function update(points, shown, labelled, choose, reach) {
  const old = [...points.children];
  const kept = new Map(old.map((child) => [child.dataset.name, child]));
  const next = shown.flatMap((number) => {
    const name = JSON.stringify([number, reach, page.state.sentences[number]]);
    const made = [`dot ${name}`, `label ${name}`].slice(0, labelled ? 2 : 1);
    return made.map((one) => kept.get(one) ?? make(one, number, choose, reach));
  });
  if (next.length !== old.length || next.some((child, at) => child !== old[at])) points.replaceChildren(...next);
  for (const child of next) child.classList.toggle("current", labelled && Number(child.dataset.use) === page.state.use);
}

function make(name, number, choose, reach) {
  const { sense, text, position } = page.state.sentences[number];
  const attributes = { "data-name": name, "data-use": number, onclick: () => choose?.(number) };
  if (name.startsWith("dot")) return h("span", { ...attributes, class: `dot sense-${sense}` });
  const [before, word, after] = contextOf(text, wordsOf(text), position, reach);
  return h("span", { ...attributes, class: `label sense-${sense}`, dir: "auto" },
    h("span", { class: "use-number" }, String(number + 1)), before, h("b", {}, word), after);
}

/** Moves dots and labels to their places. @returns leader lines to the labels that are farther off. */
function move(points, places, box) {
  const [dots, labels] = [".dot", ".label"].map((kind) => [...points.querySelectorAll(kind)]);
  dots.forEach((element, at) => shift(element, places[at]));
  const sizes = labels.map(({ offsetWidth, offsetHeight }) => ({ width: offsetWidth, height: offsetHeight }));
  const corners = labels.length ? placeLabels(places, sizes, { ...box, gap: 18 }) : [];
  labels.forEach((element, at) => shift(element, corners[at]));
  return corners.flatMap((corner, at) => leader(places[at], corner, sizes[at]));
}

function leader([x, y], [left, top], { width, height }) {
  const middle = top + height / 2;
  if (Math.abs(middle - y) < height) return [];
  const near = Math.max(left, Math.min(x, left + width));
  return [svg("polyline", { class: "leader", points: `${x},${y} ${near},${middle}` })];
}

/** Places a new element at once; an old one moves there by a CSS transition. */
function shift(element, [x, y]) {
  const isNew = !element.style.transform;
  element.classList.toggle("new", isNew);
  element.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
  if (isNew) requestAnimationFrame(() => element.classList.remove("new"));
}

/** The trail of each use from the first layer to the shown one. */
function paths(shown, maps) {
  return shown.map((number, at) => svg("polyline", {
    class: `sense-${page.state.sentences[number].sense}`,
    points: maps.map((places) => places[at].map((value) => value.toFixed(1)).join(",")).join(" "),
  }));
}
