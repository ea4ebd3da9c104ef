// What plays on the stage: one clock, and the controls that step, play, slow and scrub it.
import { REAL_CLOCK } from "./clock.js";
import { html, setText } from "./dom.js";

const SPEEDS = [1, 0.5, 0.25];
const SPEED_WORDS = ["1×", "½×", "¼×"];

/** A small button that shows a sign; `name` says what it does. */
export function makeSignButton(name, sign, act) {
  const button = html("button", { type: "button", className: "chip", onclick: act }, sign);
  button.setAttribute("aria-label", name);
  button.title = name;
  return button;
}

/** noun: what plays, in words;   draw(time): show a moment, in milliseconds at normal speed;   findTime(time, count):
    the moment so many steps further;   describe(time): a moment in words;   changed(isPlaying): it plays, or no more;
    ended(): it has played to its end. */
export function createPlayer({ clock = REAL_CLOCK, noun, draw, findTime, describe, changed = () => {}, ended = () => {} }) {
  let at = 0;
  let duration = 0;
  let speedIndex = 0;
  let isPlaying = false;
  let frame = 0;
  let last = 0; // the clock's time of the frame before
  const back = makeSignButton("Step back", "◂", () => stepBy(-1));
  const play = makeSignButton("Pause", "❚❚", () => setPlaying(!isPlaying));
  const forth = makeSignButton("Step forward", "▸", () => stepBy(1));
  const scrub = html("input", { type: "range", className: "scrub", min: 0, max: 1, step: 20 });
  scrub.setAttribute("aria-label", `Moment of the ${noun}`);
  scrub.addEventListener("input", () => {
    setPlaying(false);
    seek(Number(scrub.value));
  });
  const speed = makeSignButton("Speed", SPEED_WORDS[0], () => setSpeed((speedIndex + 1) % SPEEDS.length));
  for (const button of [play, speed]) button.classList.add("steady"); // its signs are of several widths

  function seek(time) {
    at = Math.min(duration, Math.max(0, time));
    draw(at);
    scrub.value = at;
    scrub.setAttribute("aria-valuetext", describe(at));
  }

  function stepBy(count) {
    setPlaying(false);
    seek(findTime(at, count));
  }

  function setPlaying(value) {
    isPlaying = value && duration > 0;
    clock.cancel(frame);
    if (isPlaying && at >= duration) at = 0;
    setText(play, isPlaying ? "❚❚" : "▶");
    play.setAttribute("aria-label", isPlaying ? "Pause" : "Play");
    play.title = isPlaying ? "Pause" : "Play";
    changed(isPlaying);
    if (!isPlaying) return;
    last = clock.now();
    frame = clock.request(advance);
  }

  function advance() {
    const now = clock.now();
    seek(at + (now - last) * SPEEDS[speedIndex]);
    last = now;
    if (at >= duration) ended();
    else frame = clock.request(advance);
  }

  function setSpeed(index) {
    speedIndex = index;
    setText(speed, SPEED_WORDS[index]);
    speed.setAttribute("aria-label", `Speed: ${SPEED_WORDS[index]}`);
  }

  return {
    controls: [back, play, forth, scrub, speed],
    play,
    scrub,
    /** Get ready to play something of this duration in milliseconds; 0: there is nothing to play. */
    load(milliseconds) {
      duration = milliseconds;
      at = Math.min(at, duration);
      scrub.max = Math.max(1, duration);
    },
    seek,
    stepBy,
    setPlaying,
    getTime: () => at,
    isPlaying: () => isPlaying,
    destroy() {
      clock.cancel(frame);
    },
  };
}
