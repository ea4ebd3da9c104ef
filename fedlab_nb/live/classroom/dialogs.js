// What opens over the projector's wall: one office's message, and the plane of all mean digits.
import { html, setText } from "./dom.js";
import { picture } from "./pen.js";
import { letter, listed, percent, plural } from "./text.js";
import { drawings, formatBytes, hueOf } from "./office.js";

const $ = (id) => document.getElementById(id);

/** What one office has sent, and what its sums show of the drawings. */
export function openMessage({ sent }, seat, hasNames) {
  const message = sent.find((each) => each.seat === seat);
  const name = hasNames && message ? message.name : "";
  $("who").replaceChildren(`Office ${letter(seat)} `, html("bdi", {}, name));
  $("out").hidden = !message;
  setText($("what"), message ? describeMessage(message) : "It has sent nothing yet.");
  const means = message?.means ?? [];
  $("means").replaceChildren(...means.map(makeMean));
  $("one").showModal();
}

function describeMessage({ bytes, drawings: count, means, network, given }) {
  const parts = [];
  if (network) parts.push("a network");
  if (means.length) parts.push("sums");
  if (given) parts.push(`${drawings(given)} for the test`);
  const content = `${formatBytes(bytes)}, made from ${drawings(count)}: ${listed(parts)}.`;
  if (!means.length) return `${content} It shows no sums.`;
  const leak = "What its sums show at once is the mean of each digit; a search gets each drawing out of them.";
  return `${content} ${leak}`;
}

function makeMean([digit, count, mean]) {
  const image = picture(mean, `Mean of ${drawings(count)} of a ${digit}`);
  return html("figure", {}, image, html("figcaption", {}, `${count} × ${digit}`));
}

export function openPlane(state) {
  $("map").showModal();
  showPlane(state);
}

/** The means of the sums as digits, in the colour of their office, where the plane is open. */
export function showPlane({ plane }) {
  if (!$("map").open) return;
  const { points, share, alike } = plane;
  const digits = points.map(([seat, digit, x, y]) => {
    const style = { "--x": x, "--y": y, "--hue": hueOf(seat) };
    return html("b", { textContent: digit, style });
  });
  $("plane").replaceChildren(...digits);
  $("plane").setAttribute("aria-label", `${plural(points.length, "digit")}, coloured by office`);
  const axes =
    "Each office's mean of each digit, in its colour, on the two axes along which drawings vary most " +
    `(${percent(share)} of it). The nearest mean of another office is of the same digit for ` +
    `${alike} of ${points.length}.`;
  setText($("axes"), points.length ? axes : "No sums have come yet.");
}
