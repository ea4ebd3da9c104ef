// What the projector says of a state of the class: its headline, and one sentence more where a result needs it.
import { percent, plural } from "./text.js";
import { formatBytes } from "./office.js";

export const FALL = 0.08; // of an accuracy, that is seen from the last row
const STEADY = 0.05; // a change of an accuracy that does not count
const GUESSING = 0.1; // what a guess of ten digits reads right
const NEAR_GUESSING = 0.25; // an accuracy that has little to lose
const ROBUST = ["FedAvg, median", "Ensemble", "Ensemble, median"]; // ways that one loud network hardly changes

/** {title: accuracy 0-1} of all ways. */
export function readAccuracies({ rows }) {
  return Object.fromEntries(rows.map(({ title, digits }) => [title, digits]));
}

/** Whether an accuracy stays where it was, and above guessing. */
export function isSteady(before, now) {
  return Math.abs(before - now) < STEADY && now >= NEAR_GUESSING;
}

/** The ways that the class could choose from when it guessed; all where there was no question. */
function findAskedWays({ rows, stage }) {
  const options = stage.question?.options ?? [];
  const asked = rows.filter(({ name }) => options.some((option) => option.startsWith(`${name}:`)));
  return asked.length ? asked : rows;
}

/** What a way is called on every screen. */
export function nameOf({ rows }, title) {
  return rows.find((row) => row.title === title)?.name ?? title;
}

/** The sentence at the top. A result that is covered is not in it. */
export function writeHeadline(state) {
  return HEADLINES[state.stage.step](state);
}

const HEADLINES = {
  draw({ seats }) {
    if (!seats.length) return "Scan the code. Every phone becomes an office.";
    return `${plural(seats.length, "office")} ${seats.length === 1 ? "draws" : "draw"}. Each knows only a few digits.`;
  },
  send({ seats, sent }) {
    if (!sent.length) return "Send once. That is all you will ever say.";
    const total = sent.reduce((sum, { bytes }) => sum + bytes, 0);
    return `${sent.length} of ${seats.length} messages are here, one from each office: ${formatBytes(total)}.`;
  },
  reveal(state) {
    const { stage, rows } = state;
    if (!stage.is_shown) return "What can one message each make?";
    if (!rows.length) return "No message has come yet.";
    const alone = rows.find(({ title }) => title === "Local only");
    const best = findAskedWays(state).reduce((one, other) => (other.digits > one.digits ? other : one));
    const winner = `${best.name} (${best.phrase}) reads ${percent(best.digits)}`;
    return alone ? `${alone.name} reads ${percent(alone.digits)}. ${winner}.` : `${winner}.`;
  },
  joker(state) {
    const { stage, rows, before, joker } = state;
    if (!stage.is_shown) return "One of us is about to lie.";
    if (joker === null) return "The joker is out again, and everything stands as before.";
    const fallOf = ({ title, digits }) => (before[title] ?? digits) - digits;
    const most = findAskedWays(state).reduce((one, other) => (fallOf(other) > fallOf(one) ? other : one));
    if (fallOf(most) < FALL) return "The joker shouts, and nobody listens.";
    const steady = rows.filter(
      ({ title, digits }) => ROBUST.includes(title) && isSteady(before[title], digits),
    );
    steady.sort((one, other) => other.digits - one.digits);
    const kept = steady.length ? ` ${steady[0].name} stays at ${percent(steady[0].digits)}.` : "";
    return `The joker throws ${most.name} from ${percent(before[most.title])} to ${percent(most.digits)}.${kept}`;
  },
  forget(state) {
    const { effect, stage } = state;
    if (!effect) return "Who wants to be forgotten? Press “Forget me”.";
    if (!stage.is_shown) return `Office ${effect.office} is forgotten. What has it cost?`;
    const way = nameOf(state, effect.way);
    return `Without ${effect.office}, ${way} reads ${effect.without_it} of ${effect.images}; with it, ${effect.with_it}.`;
  },
  rounds(state) {
    const { rounds, stage } = state;
    if (!rounds) return "Who stays? The phones can weigh the networks.";
    if (rounds.round < rounds.of) return `Tiny rounds: ${rounds.round} of ${rounds.of}, with ${plural(rounds.phones, "phone")}.`;
    if (!stage.is_shown) return "The rounds are done. Better, or worse?";
    const now = readAccuracies(state);
    return `${nameOf(state, "FENS")} reads ${percent(now.FENS)}; ${nameOf(state, "Ensemble")}, ${percent(now.Ensemble)}.`;
  },
  digit({ votes, stage }) {
    const voices = Object.values(votes?.seats ?? {});
    if (!voices.length) return "The teacher draws. Every network votes.";
    if (!stage.is_shown) return `${plural(voices.length, "network")} ${voices.length === 1 ? "has" : "have"} voted. Who is right?`;
    const right = voices.filter((voice) => voice === votes.label).length;
    return `${right} of ${voices.length} networks read the ${votes.label} right.`;
  },
};

/** The sentence beside the question, the bars or the rounds' progress; "" where none is needed. */
export function writeNote(state) {
  if (state.stage.step === "rounds") return explainRounds(state);
  if (state.stage.step === "joker" && state.stage.is_shown && state.joker !== null) return explainAverage(state);
  return "";
}

function explainRounds({ rounds, need, stage, explanation }) {
  if (!rounds) return need.sentence;
  if (stage.is_shown) return explanation;
  if (rounds.round >= rounds.of) return "";
  return `Down once: all networks, ${formatBytes(rounds.networks)}. Then a few numbers each round, ${formatBytes(rounds.weights)} up and down.`;
}

/** What the joker did to the average of the networks, of which every class asks. */
function explainAverage(state) {
  const before = state.before.FedAvg;
  const now = readAccuracies(state).FedAvg;
  if (before === undefined || now === undefined) return "";
  const name = nameOf(state, "FedAvg");
  const change = `${name}: ${percent(before)} before, now ${percent(now)}.`;
  if (before - now >= FALL) return change;
  if (before < NEAR_GUESSING) return `${change} Guessing is ${percent(GUESSING)}: it had little to lose.`;
  return `${change} This joker hardly moves it.`;
}
