// Numbers in words and the sentences over the pictures: said as the package says them (plots/words.py, accuracy.py).
const $ = (id) => document.getElementById(id);
const SETS = JSON.parse($("data").textContent); // by data set; the page is about one of them
const asked = new URLSearchParams(location.hash.slice(1)).get("data");
const SET = asked in SETS ? asked : Object.keys(SETS)[0];
const DATA = SETS[SET];
const { groups, methods, results, classes, about } = DATA;
const { alpha: alphas, clients, seed: seeds } = about.settings; // as they are stored
const METHOD = new Map(methods.map((m) => [m.name, m]));
const BOUNDS = ["local", "centralized"];
/** Result of a method at stored setting number a of α and m of M: {mean, half, accuracies, up, down}. */
const result = (name, a, m) => results[name][m][a];
const banded = (r, d = +(r.half >= 0.0005 && r.half < 0.01)) => `${fixed(100 * r.mean, d)} ± ${fixed(100 * r.half, d)}`;
const exact = (r) => `${fixed(100 * r.mean, 1)}\u00a0% ± ${fixed(100 * r.half, 1)} points`;
const bySeed = (r) => seeds.map((seed, i) => `${seed}: ${fixed(100 * r.accuracies[i], 1)}\u00a0%`).join(", ");
const total = (r) => r.up + r.down;

/** a - b over the same seeds: mean, and half the width of its 95 % band of Student's t. */
function difference(a, b) {
  const gaps = a.accuracies.map((x, i) => x - b.accuracies[i]);
  const mean = gaps.reduce((s, x) => s + x, 0) / gaps.length;
  const spread = Math.sqrt(gaps.reduce((s, x) => s + (x - mean) ** 2, 0) / (gaps.length - 1));
  return { mean, half: (DATA.t * spread) / Math.sqrt(gaps.length) };
}
/** Who is best of `names`, by how much, and whether that is more than noise. */
function verdict(names, a, m) {
  const all = names.map((name) => ({ name, title: METHOD.get(name).short, ...result(name, a, m) }));
  const rivals = all.filter((r) => !BOUNDS.includes(r.name));
  const [best, ...others] = (rivals.length ? rivals : all).slice().sort((x, y) => y.mean - x.mean);
  if (!best) return "No method is chosen.";
  let text = `${best.title[0].toUpperCase()}${best.title.slice(1)} ${others.length ? "is best with" : "reaches"} ${percent(best.mean)}`;
  if (others.length) {
    const gap = difference(best, others[0]);
    const shown = Number(fixed(100 * best.mean)) - Number(fixed(100 * others[0].mean)); // what a reader finds by subtracting
    const points = banded(gap, shown === Number(fixed(100 * gap.mean)) ? undefined : 1);
    text += Math.abs(gap.mean) > gap.half
      ? `, clearly ahead of ${others[0].title} (by ${points} points)`
      : `; ${others[0].title} is ${points} points behind, which is within the noise`;
  }
  if (others.length > 1) text += `; ${others.at(-1).title} is last with ${percent(others.at(-1).mean)}`;
  const bounds = rivals.length ? all.filter((r) => BOUNDS.includes(r.name)) : [];
  return `${text}.${bounds.length ? ` For reference: ${listed(bounds.map((r) => `${r.title} ${percent(r.mean)}`))}.` : ""}`;
}
/** Over the bars: the verdict on what is in colour, and who is better than all of these. */
function accuracyWords(names, a, m) {
  const free = methods.map((x) => x.name).filter((name) => !BOUNDS.includes(name));
  const top = free.reduce((x, y) => (result(y, a, m).mean > result(x, a, m).mean ? y : x));
  const rivals = names.filter((name) => !BOUNDS.includes(name));
  const more = rivals.length && !names.includes(top) ? ` Of all ${free.length} stored methods ${METHOD.get(top).short} is best: ${percent(result(top, a, m).mean)}.` : "";
  const among = rivals.length > 1 ? `among the ${rivals.length} methods in colour, ` : "";
  return `At α = ${alphas[a]} with ${plural(clients[m], "client")}, ${among}${verdict(names, a, m)}${more}`;
}
/** Over the lines: which of `names` changes most, and which least, from the largest α to the smallest. */
function fallWords(names, m) {
  const last = alphas.length - 1;
  const rows = (names.some((n) => !BOUNDS.includes(n)) ? names.filter((n) => !BOUNDS.includes(n)) : names)
    .map((name) => ({ name, from: result(name, last, m).mean, to: result(name, 0, m).mean }));
  if (!rows.length) return "No method is chosen.";
  const most = rows.reduce((x, y) => (y.from - y.to > x.from - x.to ? y : x));
  const least = rows.reduce((x, y) => (y.from - y.to < x.from - x.to ? y : x));
  const way = (r) => `${METHOD.get(r.name).short} goes from ${percent(r.from)} to ${percent(r.to)}`;
  return `From α = ${alphas[last]} to α = ${alphas[0]}, ${way(most)}${least === most ? "" : `, ${way(least)}`}.`;
}
/** Over the bytes: the cheapest and the dearest of `names`, bounds left out. */
function costWords(names, a, m) {
  const rows = names.filter((n) => !BOUNDS.includes(n)).map((name) => ({ title: METHOD.get(name).short, ...result(name, a, m) }));
  if (!rows.length) return "No method is chosen.";
  rows.sort((x, y) => total(x) - total(y) || y.mean - x.mean);
  const [cheap, dear] = [rows[0], rows.at(-1)];
  const equal = rows.filter((r) => total(r) === total(cheap)).map((r) => r.title);
  const who = equal.length > 4 ? `${equal.length} methods` : listed(equal);
  const among = rows.length > 1 ? `Among the ${rows.length} methods in colour, ` : "";
  const costs = `${among}${who} ${equal.length > 1 ? "cost" : "costs"} ${equal.length < rows.length ? "least, " : ""}${dataSize(total(cheap))} up and down for all clients`;
  if (total(cheap) === total(dear)) return `${costs}; ${cheap.title} reaches ${percent(cheap.mean)}.`;
  const times = (total(dear) / total(cheap)).toFixed(1);
  const points = Number(fixed(100 * (dear.mean - cheap.mean)));
  const better = points ? `${plural(Math.abs(points), "point")} ${points > 0 ? "better" : "worse"}` : "no better";
  return endSentence(`${costs}; ${dear.title} costs ${times} times as much and is ${better}${equal.length > 1 ? ` than ${cheap.title}` : ""}`);
}
/** Over the partition `counts` [M, C]: how skewed it is (partition.py, `measure_skew`). */
function holdingWords(counts) {
  const entropy = (row) => -sum(row.map((n) => n && (n / sum(row)) * Math.log(n / sum(row))));
  const [pooled, sizes] = [entropy(classes.map((_, c) => sum(counts.map((row) => row[c])))), counts.map(sum)];
  const skew = (pooled - sum(counts.map((row, k) => sizes[k] * entropy(row))) / sum(sizes)) / pooled;
  const many = [...new Set([Math.min(...sizes), Math.max(...sizes)])].join(" to ");
  return `A client effectively sees ${fixed(countEffectiveClasses(counts), 1)} of ${classes.length} classes (skew ${fixed(Math.max(0, skew), 2)} between 0 and 1). It has ${many} samples.`;
}
const sum = (row) => row.reduce((s, x) => s + x, 0);
