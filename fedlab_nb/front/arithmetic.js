// How a method comes to its answer to one image, where that is a sum over clients: unfolded with the numbers in it, for
// one class at a time. What is added up here is what Python sent (panels/arithmetic.py), and the total is its own.
import { html, keyed, setText } from "./dom.js";
import { fixed, letter } from "./text.js";

/** What each client adds to a class's sum: [M]. */
export function listTerms({ values, weights }, label) {
  return values.map((row, k) => row[label] * weights[k][label]);
}

/** The sum of each class, [C], added up here. */
export function addTerms(sum) {
  return sum.total.map((_, label) => listTerms(sum, label).reduce((all, one) => all + one, 0));
}

export function findMost(numbers) {
  return numbers.reduce((best, value, i) => (value > numbers[best] ? i : best), 0);
}

/** A number with two or three figures behind the point, and a true minus. */
function writeNumber(value, digits = Math.abs(value) < 10 ? 3 : 1) {
  const text = fixed(Math.abs(value), digits);
  return `${value < 0 && Number(text) !== 0 ? "−" : ""}${text}`;
}

/** data: {classes, people}. */
export function createArithmetic({ classes, people }, send) {
  const title = html("h3");
  const about = html("p", { className: "about" });
  const terms = html("ul", { className: "terms" });
  terms.setAttribute("aria-label", `What each of the ${people.many} adds`);
  const result = html("p", { className: "result" });
  result.setAttribute("role", "status");
  const totals = html("div", { className: "totals" });
  totals.setAttribute("role", "group");
  totals.setAttribute("aria-label", "The sum of each class; a class's sum is shown");
  const element = html("section", { className: "sum", hidden: true }, title, about, terms, result, totals);
  element.setAttribute("aria-label", "The sum behind the answer");
  let shown = null;
  let label = 0; // the class whose sum is looked at

  function makeTerm() {
    const button = html("button", { type: "button" });
    const term = html("li", {}, button, html("span"), html("i", {}, "×"), html("span"), html("i", {}, "="), html("b"), html("u"));
    button.addEventListener("click", () => send({ kind: "client", value: term.client }));
    return term;
  }

  function makeTotal(c) {
    const button = html("button", { type: "button" }, html("small"), " ", html("span"));
    button.addEventListener("click", () => {
      label = c;
      draw();
    });
    return button;
  }

  function draw() {
    const { clients, values, weights, total, unit, own, name } = shown;
    const said = findMost(total);
    const of = `“${classes[label].name}”`;
    setText(title, `${name} on this ${people.thing}: ${unit} of ${of} × weights`);
    setText(about, shown.about);
    const parts = listTerms(shown, label);
    const largest = Math.max(...parts.map(Math.abs), 1e-12);
    keyed(terms, clients.map((client, row) => ({ client, row })), ({ client }) => client, makeTerm, (term, { client, row }) => {
      const [button, value, , weight, , part, bar] = term.children;
      term.client = client;
      setText(button, letter(client));
      button.setAttribute("aria-label", `${people.one} ${letter(client)}`);
      setText(value, writeNumber(values[row][label]));
      setText(weight, writeNumber(weights[row][label]));
      setText(part, writeNumber(parts[row]));
      bar.style.setProperty("--part", parts[row] / largest);
    });
    const learnt = own === null ? "" : ` The one network that has learnt from such sums says “${classes[own].name}”.`;
    const most = `The largest sum is that of “${classes[said].name}”.`;
    setText(result, `Together ${writeNumber(total[label])} for ${of}. ${most}${learnt}`);
    keyed(totals, classes.map((_, c) => c), (c) => c, makeTotal, (button, c) => {
      setText(button.firstChild, classes[c].name);
      setText(button.lastChild, writeNumber(total[c]));
      button.setAttribute("aria-pressed", String(c === label));
      button.classList.toggle("most", c === said);
    });
  }

  return {
    element,
    /** next: what Python says of a sum, with the method's short name; null: none. It begins with the class that is said. */
    update(next) {
      element.hidden = next === null;
      if (next === null) {
        shown = null;
        return;
      }
      const isOther = shown === null || shown.method !== next.method || shown.image !== next.image;
      shown = next;
      if (isOther) label = findMost(next.total);
      draw();
    },
  };
}
