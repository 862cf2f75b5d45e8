/** Export of what the page shows: as Python code, a curl command, or a link. */

import { button, byId, h } from "./dom.js";
import { mainLayer, mainModel, picked, uses } from "./store.js";

const FORMATS = { Python: python, curl, link: () => location.href };
let format = "Python";

export function drawExport() {
  if (!byId("export").childElementCount) byId("export").append(...build());
  const body = picked().length ? { model: mainModel().id, ...uses(), layer: mainLayer() } : null;
  byId("export").hidden = !body;
  if (body) byId("export-text").textContent = FORMATS[format](body);
  for (const name of Object.keys(FORMATS)) byId(`format-${name}`).setAttribute("aria-pressed", String(name === format));
}

function build() {
  const choices = Object.keys(FORMATS).map((name) =>
    button({ id: `format-${name}`, onclick: () => setFormat(name) }, name));
  return [
    h("h2", { id: "export-title" }, "Export"),
    h("div", { class: "formats" }, ...choices, button({ class: "copy", onclick: copy }, "Copy"),
      h("span", { id: "copied", role: "status" })),
    h("pre", { tabindex: "0", "aria-labelledby": "export-title" }, h("code", { id: "export-text" })),
  ];
}

function setFormat(name) {
  format = name;
  byId("copied").textContent = "";
  drawExport();
}

async function copy() {
  const text = byId("export-text");
  const done = navigator.clipboard
    ? await navigator.clipboard.writeText(text.textContent).then(() => true, () => false)
    : false;
  if (!done) getSelection().selectAllChildren(text); // where the browser forbids copying, Ctrl+C is left to the user
  byId("copied").textContent = done ? "Copied" : "Selected: press Ctrl+C or ⌘C";
}

const address = () => new URL(".", location.href).href.replace(/\/$/, "");

function python({ model, sentences, positions, layer }) {
  const lines = sentences.map((words) => `    [${words.map(quoted).join(", ")}],`);
  const chosen = layer === "mean" ? "vectors.mean(axis=0)[position]" : `vectors[${layer}, position]`;
  return `import numpy as np
import polyseme

embedder = polyseme.Client(${quoted(address())}, model=${quoted(model)})  # or polyseme.load("path/to/a/model")
sentences = [
${lines.join("\n")}
]
positions = [${positions.join(", ")}]
uses = np.stack([${chosen} for vectors, position in zip(embedder.embed(sentences), positions)])
uses /= np.linalg.norm(uses, axis=1, keepdims=True)
cosines = uses @ uses.T
print(cosines.round(2))`;
}

/** A string literal that is valid in both Python and JSON. */
const quoted = (text) => JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029]/g, escaped);
const escaped = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

function curl(body) {
  const json = JSON.stringify(body);
  return `curl ${address()}/v1/compare \\
  -H 'Content-Type: application/json' \\
  -d '${json.replaceAll("'", "'\\''")}'`;
}
