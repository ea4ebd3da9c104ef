// The one sentence over the piles: the first finding of a small table that is clear. Null where none is.
import { countInWords, endSentence, fixed, letter, listed, percent } from "./text.js";

const NEARLY_ALL = 0.95; // of a client's samples: it knows this class alone
const CROWD = 0.6; // of the test images called one class: somebody shouts
const CLEAR = 0.05; // a difference of accuracies of one seed that a sentence may name
const MOST_EXPERTS = 2; // clients that are right in a story
const FEW_CLASSES = 4; // of a data set; a client's effective number of them is then said with a decimal
const MEANS = ["logits", "ensemble", "fedavg"]; // methods that a loud client can drown

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Effective number of classes, mean over the clients with samples of counts [M, C] (partition.py, `measure_skew`). */
export function countEffectiveClasses(counts) {
  const rows = counts.filter((row) => sum(row) > 0);
  if (rows.length === 0) return 0;
  const entropies = rows.map((row) => {
    const shares = row.filter((count) => count > 0).map((count) => count / sum(row));
    return -sum(shares.map((share) => share * Math.log(share)));
  });
  return sum(entropies.map(Math.exp)) / rows.length;
}

/** The clients that hold (nearly) nothing but class c. */
function listClientsOfOneClass(counts, c) {
  const isAlone = (row) => sum(row) > 0 && row[c] >= NEARLY_ALL * sum(row);
  return counts.map((row, k) => (isAlone(row) ? k : -1)).filter((k) => k >= 0);
}

/** Whether all these clients hold samples of class c and of no other class. */
function haveNothingElse(counts, clients, c) {
  return clients.every((k) => counts[k][c] === sum(counts[k]));
}

/** "only", or other words for clients that also hold a few samples of other classes. */
function sayOnly(counts, clients, c) {
  return haveNothingElse(counts, clients, c) ? "only" : "hardly anything but";
}

function nameClass({ name, plural }) {
  return plural ?? `“${name}”`;
}

/** A method within a sentence, and where it begins one: a mean by its full name, as its short one is for a column. */
const nameWithin = ({ short, phrase }) => (phrase.startsWith("The ") ? `the ${phrase.slice(4)}` : short);
const nameFirst = ({ short, phrase }) => (phrase.startsWith("The ") ? phrase : short);

/** Who shouts: one of these means calls most images by one class. */
function findShout({ counts, classes, people, methods, results }, means = MEANS) {
  for (const name of means) {
    const calls = results.calls?.[name];
    const method = methods.find((one) => one.name === name);
    if (!calls || !method) continue;
    const all = sum(calls);
    const most = Math.max(...calls);
    if (most < CROWD * all) continue;
    const c = calls.indexOf(most);
    const called = `${nameFirst(method)} calls ${most} of ${all} ${people.things} “${classes[c].name}”.`;
    const shouting = listClientsOfOneClass(counts, c);
    if (shouting.length === 0) return called;
    const alone = classes.map((_, own) => listClientsOfOneClass(counts, own));
    const others = sum(alone.map((some) => some.length)) - shouting.length;
    if (others > shouting.length) { // the loud ones are not singled out by knowing one class alone
      const each = alone.every((some, own) => haveNothingElse(counts, some, own)) ? "a single" : "hardly more than a single";
      const who = countInWords(shouting.length).toLowerCase();
      const loud = `the ${who} with ${nameClass(classes[c])} ${shouting.length === 1 ? "shouts" : "shout"}`;
      return `${countInWords(others + shouting.length)} ${people.many} know ${each} ${people.kind} each, and ${loud}. ${called}`;
    }
    const knows = shouting.length === 1 ? `One ${people.one} knows` : `${countInWords(shouting.length)} ${people.many} know`;
    const shouts = shouting.length === 1 ? "shouts" : "shout";
    return `${knows} ${sayOnly(counts, shouting, c)} ${nameClass(classes[c])}, and ${shouts}. ${called}`;
  }
  return null;
}

/** Who lost: the average of all networks is worse than one client alone. */
function findLoser({ people, results }) {
  const average = results.accuracies.fedavg;
  const each = results.each ?? [];
  if (average === undefined || each.length < 2) return null;
  const best = Math.max(...each);
  if (best - average < CLEAR) return null;
  const who = letter(each.indexOf(best));
  return `The average of ${each.length} networks gets ${percent(average)} right: ${people.one} ${who} alone gets ${percent(best)}.`;
}

/** The methods that make one model of all, the best first. */
function rankMethods({ methods, results }) {
  return methods
    .filter(({ name }) => name !== "local" && results.accuracies[name] !== undefined)
    .sort((p, q) => results.accuracies[q.name] - results.accuracies[p.name]);
}

/** By how many points of the percentages that are shown an accuracy is above another one. */
const countPoints = (one, other) => Math.round(100 * one) - Math.round(100 * other);

/** Who is best, by how much. */
function findBest({ methods, results }) {
  const ranked = rankMethods({ methods, results });
  if (ranked.length < 2) return null;
  const share = ({ name }) => results.accuracies[name];
  const [first, second] = ranked;
  const last = ranked.at(-1);
  if (share(first) - share(second) >= CLEAR) {
    const ahead = countPoints(share(first), share(second));
    return endSentence(`${nameFirst(first)} gets most right: ${percent(share(first))}, ${ahead} points ahead of ${nameWithin(second)}`);
  }
  if (share(first) - share(last) < CLEAR) {
    return `Here it hardly matters how they are combined: ${percent(share(last))} to ${percent(share(first))} right.`;
  }
  return `Of the joint models, ${nameWithin(last)} loses most: ${percent(share(last))} right, where ${nameWithin(first)} gets ${percent(share(first))}.`;
}

/** Where one method stands among all: against the best of the others. */
function findRank({ methods, results }, name) {
  const ranked = rankMethods({ methods, results });
  const method = ranked.find((one) => one.name === name);
  if (method === undefined) return null;
  const share = results.accuracies[name];
  const right = `${nameFirst(method)} gets ${percent(share)} right`;
  const rival = ranked.find((one) => one.name !== name);
  if (rival === undefined) return endSentence(right);
  const other = results.accuracies[rival.name];
  if (Math.abs(share - other) < CLEAR) return endSentence(`${right}, about as many as ${nameWithin(rival)}`);
  const points = Math.abs(countPoints(share, other));
  return endSentence(`${right}, ${points} points ${share > other ? "ahead of" : "behind"} ${nameWithin(rival)}`);
}

/** What the piles alone show. */
function findInPiles({ counts, classes, people }) {
  const found = classes.map((_, c) => listClientsOfOneClass(counts, c));
  const together = found.reduce((best, some, c) => (some.length > found[best].length ? c : best), 0);
  if (found[together].length > 1) {
    const who = found[together].map(letter);
    const shown = who.length <= 4 ? `: ${listed(who)}` : "";
    const only = sayOnly(counts, found[together], together);
    return `${countInWords(who.length)} of ${counts.length} ${people.many} know ${only} ${nameClass(classes[together])}${shown}.`;
  }
  const alone = sum(found.map((some) => some.length));
  if (alone > 0) {
    const know = alone === 1 ? `${people.one} knows` : `${people.many} know`;
    const isExact = found.every((some, c) => haveNothingElse(counts, some, c));
    return `${countInWords(alone)} ${know} ${isExact ? "a single" : "hardly more than a single"} ${people.kind}.`;
  }
  const effective = fixed(countEffectiveClasses(counts), classes.length > FEW_CLASSES ? 0 : 1);
  const hasEveryoneAll = counts.every((row) => row.every((count) => count > 0));
  const all = classes.length === 2 ? "both" : `all ${classes.length}`;
  if (hasEveryoneAll && Number(effective) === classes.length) return `Every ${people.one} sees ${all} ${people.kinds}.`;
  return `Each ${people.one} effectively sees about ${effective} of ${classes.length} ${people.kinds}.`;
}

/** counts [M, C]; results null before a run, else {accuracies by method, each by client, calls by method [C]}. */
export function findHeadline(facts) {
  if (facts.counts.length < 2) return null;
  const measured = Object.keys(facts.results?.accuracies ?? {});
  if (measured.every((name) => name === "local")) return findInPiles(facts); // nothing joint has been measured
  return findShout(facts) ?? findLoser(facts) ?? findBest(facts);
}

/** The same of one method alone, while it is the one that is shown; before it has been measured, of the piles. */
export function findHeadlineOfMethod(facts, name) {
  if (facts.counts.length < 2) return null;
  if (facts.results === null) return findInPiles(facts);
  const loser = name === "fedavg" ? findLoser(facts) : null;
  return loser ?? findShout(facts, MEANS.filter((one) => one === name)) ?? findRank(facts, name) ?? findInPiles(facts);
}

/** The test image that tells most: one or two clients are right, the means follow the others, and a method that does
    not merely take a mean is right. That which is shown, if it is one. said: what each method and each client calls
    each image; shown: a test image's number. */
export function chooseStory({ methods, clients, truth }, shown) {
  const cast = MEANS.filter((name) => methods[name]);
  const careful = Object.keys(methods).filter((name) => !MEANS.includes(name));
  const worths = truth.map((label, i) => {
    const experts = clients.filter((said) => said[i] === label).length;
    const drowned = cast.filter((name) => methods[name][i] !== label).length;
    const saved = careful.filter((name) => methods[name][i] === label).length;
    const isStory = experts >= 1 && experts <= MOST_EXPERTS && drowned === cast.length && saved > 0;
    return isStory ? 10 * saved + experts : 0;
  });
  if (worths[shown] > 0) return shown;
  const most = Math.max(0, ...worths);
  return most > 0 ? worths.indexOf(most) : null;
}

/** Why the image of a story is shown: "Chosen for you: only offices B and J get it right, and no mean does." */
export function describeStory({ methods, clients, truth }, image, people) {
  const experts = [];
  clients.forEach((said, k) => { if (said[image] === truth[image]) experts.push(letter(k)); });
  const isOne = experts.length === 1;
  const who = `${isOne ? people.one : people.many} ${listed(experts)}`;
  const means = MEANS.some((name) => methods[name]) ? ", and no mean does" : "";
  return `Chosen for you: only ${who} ${isOne ? "gets" : "get"} it right${means}.`;
}

/** What can be done next, under the headline. about: what the data are; canDragAlpha: whether α is at hand; needsRun:
    whether nothing is trained before Run is pressed; isDone: whether it was, for this setting; trainsNetworks: whether
    the engine can. */
export function describeFirstSteps({ about, canDragAlpha, needsRun, isDone, trainsNetworks }) {
  const sentences = [];
  if (about) sentences.push(about);
  sentences.push(canDragAlpha ? "Drag a pile to a neighbour, or drag α." : "Drag a pile to a neighbour.");
  if (!needsRun) sentences.push("Results follow.");
  else if (!isDone) sentences.push("Press Run for results.");
  if (!trainsNetworks) {
    sentences.push("These two methods need sums alone; networks for these images are trained in a notebook.");
  }
  return sentences.join(" ");
}
