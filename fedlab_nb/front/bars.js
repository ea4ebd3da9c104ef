// Accuracies of this run, a bar a method; behind each, in grey, the band of its stored seeds where one is stored.
import { html, keyed, setText } from "./dom.js";
import { percent } from "./text.js";

function placeBand(element, mean, half) {
  const low = Math.max(0, mean - half);
  const high = Math.min(1, mean + half);
  element.style.left = `${100 * low}%`;
  element.style.width = `${100 * (high - low)}%`;
}

export function createBars({ methods }) {
  const title = html("h2", {}, "What one message makes");
  const about = html("p", { className: "about" });
  const list = html("div", { className: "bars" });
  list.setAttribute("role", "list");
  const element = html("section", {}, title, about, list);

  let rows = [];

  function make({ short, colour }) {
    const track = html("span", { className: "track" }, html("i", { className: "ghost" }), html("i", { className: "value" }), html("i", { className: "band" }));
    const row = html("div", { className: "bar", style: { "--hue": colour } }, html("span", {}, short), track, html("b"));
    row.setAttribute("role", "listitem");
    return row;
  }

  return {
    element,
    /** The rows as they are seen, for a picture: [{short, colour, share, band}]; null for what is not there. */
    describe: () => rows,
    /** accuracies: {method: 0-1}, bands: half the width of their 95 % band where there are seeds enough, older: methods
        whose accuracy is of another setting; stored(name): {mean, half} or null; about: what the bars are, in words. */
    update({ accuracies, bands = {}, older = [], isStale, stored, about: words }) {
      setText(about, words);
      rows = methods.map(({ name, short, colour }) => {
        const isOlder = isStale || older.includes(name);
        return { short, colour, share: isOlder ? null : accuracies[name] ?? null, band: stored(name) };
      });
      list.classList.toggle("stale", isStale);
      keyed(list, methods, ({ name }) => name, make, (row, { name, title: full }) => {
        const [, track, number] = row.children;
        const [ghost, value, own] = track.children;
        row.classList.toggle("stale", older.includes(name));
        const band = stored(name);
        const share = accuracies[name];
        own.hidden = share === undefined || bands[name] === undefined;
        if (!own.hidden) placeBand(own, share, bands[name]);
        ghost.hidden = band === null;
        if (band !== null) {
          placeBand(ghost, band.mean, band.half);
        }
        value.style.transform = `scaleX(${share ?? 0})`;
        setText(number, share === undefined ? "–" : percent(share));
        const kept = band === null ? "nothing stored here" : `stored: ${percent(band.mean)} ± ${Math.round(100 * band.half)} points`;
        const spread = own.hidden ? "" : ` ± ${Math.round(100 * bands[name])} points`;
        row.title = `${full}: ${share === undefined ? "not run yet" : percent(share)}${spread}; ${kept}`;
      });
    },
  };
}
