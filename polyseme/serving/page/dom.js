/** DOM helpers: create elements and replace their children. Text is always inserted as text, never as markup. */

/**
 * @param {string} tag
 * @param {Object<string, any>} [attributes] `on…` takes a listener; false and null omit an attribute.
 * @param {...(Node|string|null)} children
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Creates an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Creates a button that does not submit a form. */
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

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** Replaces the children of an element; the focus is restored by id. */
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
  element.replaceChildren(...children.filter((child) => child != null));
  if (focused) byId(focused)?.focus({ preventScroll: true });
}

/** A bar of a length from 0 to 1 and its number; the length is a CSS property, as inline styles are forbidden. */
export function bar(share, text) {
  const element = h("span", { class: "bar" }, text);
  element.style.setProperty("--share", String(Math.max(0, Math.min(1, share))));
  return element;
}
