// Elements of a page: made once, kept by a key, brought up to date.
/** A new element with these properties and children; an entry of `style` is a CSS property. */
export function html(name, { style = {}, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  for (const [key, value] of Object.entries(style)) element.style.setProperty(key, value);
  element.append(...children);
  return element;
}

/** The children of `parent`, one an item: made once by `make`, kept by `key`, brought up to date by `update`. */
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

/** Set the text of an element, where it is another one: an unchanged text is not announced again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
