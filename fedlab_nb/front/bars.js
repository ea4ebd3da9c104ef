// Accuracies of this run, a bar a method; behind each, in grey, the band of its stored seeds where one is stored. A click
// on the bar of a method that sends anything chooses it.
import { html, keyed, setText } from "./dom.js";
import { countMostMessages } from "./flight_plan.js";
import { percent } from "./text.js";

function placeBand(element, mean, half) {
  const low = Math.max(0, mean - half);
  const high = Math.min(1, mean + half);
  element.style.left = `${100 * low}%`;
  element.style.width = `${100 * (high - low)}%`;
}

/** Follows the accuracies from setting to setting: `recordAccuracies(accuracies, isStale)` gives those of the setting
    before the present one, {method: 0-1}, and {} as long as there has been one setting only. */
export function createAccuracyHistory() {
  let shown = {};
  let before = {};
  let wasStale = false;
  return function recordAccuracies(accuracies, isStale) {
    if (!isStale) {
      if (wasStale) before = shown;
      shown = accuracies;
    }
    wasStale = isStale;
    return before;
  };
}

/** The words beside a method that has sent more than one message in a run; "" where it has sent one, or nothing has been
    run yet: then no bytes are known, and the messages are not counted. */
function describeMessages(flight) {
  const isCounted = flight?.legs.some((leg) => leg.bytes?.some((count) => count > 0));
  const most = isCounted ? countMostMessages(flight.legs) : 0;
  return most > 1 ? `${most} messages` : "";
}

const isSending = ({ name }) => name !== "local";

/** What the bars show, in a few words: if no method sends anything, they are not the result of a message. */
export function nameBars(methods, people) {
  return methods.some(isSending) ? "What the messages make" : `What one ${people.one} alone gets right`;
}

/** send(event): called when a bar is clicked; null if bars cannot be chosen. */
export function createBars({ methods, people }, send = null) {
  const title = html("h2", {}, nameBars(methods, people));
  const about = html("p", { className: "about" });
  const list = html("div", { className: "bars" });
  list.setAttribute("role", "list");
  const element = html("section", {}, title, about, list);

  let rows = [];

  function make({ name, short, colour }) {
    const track = html("span", { className: "track" }, html("i", { className: "ghost" }), html("i", { className: "value" }), html("i", { className: "band" }), html("i", { className: "before" }));
    const parts = [html("span", {}, short, " ", html("small")), track, html("b")];
    const look = { className: "bar", style: { "--hue": colour } };
    const canChoose = send !== null && isSending({ name });
    const choose = () => send({ kind: "method", value: name });
    const bar = canChoose ? html("button", { ...look, type: "button", onclick: choose }, ...parts) : html("div", look, ...parts);
    const row = html("div", {}, bar);
    row.setAttribute("role", "listitem");
    return row;
  }

  return {
    element,
    /** The rows as they are seen, for a picture: [{short, colour, share, band, before}]; null for what is not there. */
    describe: () => rows,
    /** flights: what each method sends, by name (flight_plan.js), as far as it is known;   reason: why nothing is
        stored of a method without a band, in words;   help: more on the grey marks;
        accuracies: {method: 0-1}, bands: half the width of their 95 % band where there are seeds enough, older: methods
        whose accuracy is of another setting; before: those of the setting before this one, {method: 0-1}, for
        a tick where nothing is stored; stored(name): {mean, half} or null; about: what the bars are, in words;
        shown: the method that is shown on the stage, or null. */
    update({
      accuracies,
      bands = {},
      older = [],
      isStale,
      before = {},
      stored,
      reason = "",
      flights = {},
      about: words,
      help = "",
      shown = null,
    }) {
      setText(about, words);
      about.title = help;
      rows = methods.map(({ name, short, colour }) => {
        const isOlder = isStale || older.includes(name);
        const share = isOlder ? null : accuracies[name] ?? null;
        const band = stored(name);
        const isTicked = share !== null && band === null;
        return { name, short, colour, share, band, before: isTicked ? before[name] ?? null : null };
      });
      list.classList.toggle("stale", isStale);
      keyed(list, methods, ({ name }) => name, make, (row, { name, title: full }) => {
        const bar = row.firstChild;
        const [label, track, number] = bar.children;
        if (bar.matches("button")) bar.setAttribute("aria-pressed", String(name === shown));
        const messages = describeMessages(flights[name]);
        setText(label.lastChild, messages);
        const [ghost, value, own, tick] = track.children;
        bar.classList.toggle("stale", older.includes(name));
        const band = stored(name);
        const share = accuracies[name];
        own.hidden = share === undefined || bands[name] === undefined;
        if (!own.hidden) placeBand(own, share, bands[name]);
        ghost.hidden = band === null;
        if (band !== null) {
          placeBand(ghost, band.mean, band.half);
        }
        const { before: earlier } = rows.find((one) => one.name === name);
        tick.hidden = earlier === null;
        if (earlier !== null) tick.style.left = `${100 * earlier}%`;
        value.style.transform = `scaleX(${share ?? 0})`;
        setText(number, share === undefined ? "–" : percent(share));
        const storedText =
          band === null ? reason : `stored: ${percent(band.mean)} ± ${Math.round(100 * band.half)} points`;
        const spread = own.hidden ? "" : ` ± ${Math.round(100 * bands[name])} points`;
        const valueText = share === undefined ? "not run yet" : `${percent(share)}${spread}`;
        const facts = [`${full}: ${valueText}`, storedText];
        if (earlier !== null) facts.push(`before your last change: ${percent(earlier)}`);
        if (flights[name]?.gesture === "sums") facts.push("sums: it does not matter who holds what");
        if (messages) facts.push(`up to ${messages} each`);
        bar.title = facts.filter(Boolean).join("; ");
      });
    },
  };
}
