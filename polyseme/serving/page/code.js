/** What is on the page as a program, a command or a link, to take away. */

import { button, byId, h } from "./dom.js";
import { mainLayer, mainModel, picked, uses } from "./store.js";

const WAYS = { Python: python, curl, link: () => location.href };
let way = "Python";

export function drawCode() {
  if (!byId("code").childElementCount) byId("code").append(...build());
  const shown = picked();
  byId("code").hidden = !shown.length;
  if (shown.length) byId("code-text").textContent = WAYS[way]({ model: mainModel().id, ...uses(), layer: mainLayer() });
  for (const name of Object.keys(WAYS)) byId(`way-${name}`).setAttribute("aria-pressed", String(name === way));
}

function build() {
  const choices = Object.keys(WAYS).map((name) => button({ id: `way-${name}`, onclick: () => turnTo(name) }, name));
  return [
    h("h2", { id: "code-title" }, "Take it away"),
    h("div", { class: "ways" }, ...choices, button({ class: "copy", onclick: copy }, "Copy"),
      h("span", { id: "copied", role: "status" })),
    h("pre", { tabindex: "0", "aria-labelledby": "code-title" }, h("code", { id: "code-text" })),
  ];
}

function turnTo(name) {
  way = name;
  byId("copied").textContent = "";
  drawCode();
}

async function copy() {
  const text = byId("code-text");
  const done = navigator.clipboard
    ? await navigator.clipboard.writeText(text.textContent).then(() => true, () => false)
    : false;
  if (!done) getSelection().selectAllChildren(text); // where the browser forbids it, one key press is left
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

/** A string as Python and JSON both read it. */
const quoted = (text) => JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029]/g, escaped);
const escaped = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

function curl(body) {
  const json = JSON.stringify(body);
  return `curl ${address()}/v1/compare \\
  -H 'Content-Type: application/json' \\
  -d '${json.replaceAll("'", "'\\''")}'`;
}
