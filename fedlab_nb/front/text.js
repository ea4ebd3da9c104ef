// Numbers and names as people read them.
/** A number with `digits` decimals; a tie goes to the even digit, as in Python. */
export function fixed(value, digits = 0) {
  const scaled = value * 10 ** digits;
  const isTie = (value * 8) % 1 === 0 && Math.abs(scaled % 1) === 0.5;
  if (!isTie) return value.toFixed(digits);
  return ((2 * Math.round(scaled / 2)) / 10 ** digits).toFixed(digits);
}

/** "84 %", with a no-break space. */
export function percent(share) {
  return `${fixed(100 * share)}\u00a0%`;
}

/** "26.3 kB", with a no-break space. */
export function dataSize(count) {
  const power = count < 1000 ? 0 : Math.min(3, Math.floor(Math.log10(count) / 3));
  const value = power ? Number((count / 1000 ** power).toPrecision(3)) : Math.round(count);
  return `${value}\u00a0${["B", "kB", "MB", "GB"][power]}`;
}

/** "1 sample", "2 samples", "2 classes". */
export function plural(count, word) {
  if (count === 1) return `1 ${word}`;
  return `${count} ${word}${word.endsWith("s") ? "es" : "s"}`;
}

/** What is wrong with a number that somebody has typed, in a few words; "" where it is a whole number from `least` to
    `most`. */
export function describeWrongNumber(text, least, most) {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (value < least) return `at least ${least.toLocaleString("en")}`;
  if (value > most) return `at most ${most.toLocaleString("en")}`;
  if (!Number.isInteger(value)) return "a whole number";
  return "";
}

/** "A", "A and B", "A, B and C". */
export function listed(words) {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** What client k is called: A to Z, then AA. */
export function letter(k) {
  const high = k < 26 ? "" : letter(Math.floor(k / 26) - 1);
  return high + String.fromCharCode(65 + (k % 26));
}

/** What a sample is, in words. people: the data set's words; name: of its class; owner: the client that holds it, or
    null where it is in no training data. */
export function describeSample(people, name, owner) {
  if (people.kind === "digit") {
    return owner === null ? `A ${name} that nobody has trained on.` : `A ${name}, held by ${people.one} ${owner}.`;
  }
  const place = owner === null ? ", and is not in the training data." : `; ${people.one} ${owner} holds it.`;
  return `This ${people.thing} is really “${name}”${place}`;
}

const SMALL_NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"];

/** A count at the beginning of a sentence: "Two", "12". */
export function countInWords(count) {
  return SMALL_NUMBERS[count] ?? String(count);
}

/** The text with a full stop at its end, but not a second one after "prob.". */
export function endSentence(text) {
  return text.endsWith(".") ? text : `${text}.`;
}
