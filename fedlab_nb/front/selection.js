// The client and the class that are looked at, in one panel: chosen on the stage or in a picture, marked in all of them.
// Within a window the parts tell each other what is chosen, without a round trip to the kernel.
const EVENT = "fl-selection";
const PANEL = ".fl-root";

export const NO_SELECTION = { client: null, classIndex: null };

export function isSameSelection(one, other) {
  return one.client === other.client && one.classIndex === other.classIndex;
}

/** What is chosen after a mark {client, classIndex} was pressed, null for what it does not name. Pressed once more it is
    let go of; not where it is a method's, too, which is held by the same press. */
export function chooseMark(selection, mark, method = null) {
  const named = Object.keys(NO_SELECTION).filter((name) => mark[name] !== null);
  const isLetGo = method === null && named.every((name) => selection[name] === mark[name]);
  const next = { ...selection };
  for (const name of named) next[name] = isLetGo ? null : mark[name];
  return next;
}

/** Tell the other parts of the panel that `element` stands in what is chosen now. */
export function announceSelection(element, selection) {
  const detail = { client: selection.client, classIndex: selection.classIndex };
  element.dispatchEvent(new CustomEvent(EVENT, { bubbles: true, composed: true, detail }));
}

/** Calls `listen(selection)` when another part of the panel that `element` stands in announces one. Returns a function
    that ends it. */
export function watchSelection(element, listen) {
  const hear = ({ target, detail }) => {
    const isNear = target.closest(PANEL) === element.closest(PANEL);
    if (isNear && target !== element) listen(detail);
  };
  element.ownerDocument.addEventListener(EVENT, hear);
  return () => element.ownerDocument.removeEventListener(EVENT, hear);
}
