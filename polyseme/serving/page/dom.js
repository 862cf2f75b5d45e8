/** Elements out of names, attributes and children. Text always goes in as text, never as markup. */

/**
 * @param {string} tag
 * @param {Object<string, any>} [attributes] `on…` takes a listener; true and false set or leave out; null leaves out.
 * @param {...(Node|string|null)} children
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** A button that does something on this page. */
export function button(attributes, ...children) {
  return h("button", { type: "button", ...attributes }, ...children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id);

/** Replaces what is inside an element; what had the focus has it again, found by its id. */
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
  element.replaceChildren(...children.filter((child) => child != null));
  if (focused) byId(focused)?.focus({ preventScroll: true });
}

/** A share between 0 and 1 as a bar behind its number; the length is a style property, so no inline style is needed. */
export function bar(share, text) {
  const element = h("span", { class: "bar" }, text);
  element.style.setProperty("--share", String(Math.max(0, Math.min(1, share))));
  return element;
}
