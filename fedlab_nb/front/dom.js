// Elements of a page: created once, found again by a key, and updated.
/** A new element with these properties and children; an entry of `style` is a CSS property. */
export function html(name, { style = {}, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  for (const [key, value] of Object.entries(style)) element.style.setProperty(key, value);
  element.append(...children);
  return element;
}

/** Keep one child of `parent` for each item: created once by `make`, found again by `key`, updated by `update`. */
export function keyed(parent, items, key, make, update) {
  const old = parent.pool ?? new Map();
  const pool = new Map();
  for (const item of items) {
    const element = old.get(key(item)) ?? make(item);
    if (!element.parentNode) parent.append(element);
    pool.set(key(item), element);
    update(element, item);
    old.delete(key(item));
  }
  for (const gone of old.values()) gone.remove();
  parent.pool = pool;
}

/** Set the text of an element if it has changed: a screen reader does not announce an unchanged text again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
