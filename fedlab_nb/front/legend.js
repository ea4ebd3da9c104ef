// The classes by name and colour, a button each: the one that is chosen stands out in the piles and in every picture.
import { html, keyed } from "./dom.js";

const MOST_NAMED = 15; // beyond so many classes colours stand for several of them, and no legend is shown

export function createLegend({ classes, shownClasses, people }, send) {
  const element = html("div", { className: "legend" });
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", `Classes: the one that is chosen is marked in every picture of these ${people.things}`);
  const canBeShown = classes.length <= MOST_NAMED && shownClasses.length === classes.length;
  element.hidden = true;

  function make(c) {
    const press = { type: "button", onclick: () => send({ kind: "class", value: c }) };
    return html("button", press, html("i", { style: { background: classes[c].colour } }), classes[c].name);
  }

  return {
    element,
    /** classIndex: of the class that is chosen, or null;   isWanted: whether the piles need one. */
    update(classIndex, isWanted) {
      element.hidden = !isWanted || !canBeShown;
      if (element.hidden) return;
      keyed(element, [...classes.keys()], (c) => c, make, (button, c) => {
        button.setAttribute("aria-pressed", String(c === classIndex));
      });
    },
  };
}
