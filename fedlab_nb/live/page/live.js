// The stage of this page: the data set and its stored results as the stage takes them, and the engine that trains here.
const rising = (values) => [...new Set(values)].sort((p, q) => p - q);
const ALPHAS = rising([0.01, 0.1, 1, 10].flatMap((unit) => [1, 1.5, 2, 3, 5, 7].map((v) => Number((v * unit).toPrecision(2)))).filter((v) => v <= Math.max(10, ...alphas)).concat(alphas));
const COUNTS = rising([...Array(20).keys()].map((i) => i + 1).concat(clients, 30, 50, 100));
const nearest = (values, v) => values.reduce((x, y, i) => (Math.abs(Math.log(y / v)) < Math.abs(Math.log(values[x] / v)) ? i : x), 0);
const LIVE = DATA.live;
const TRUTH = { train: Array.from(DATA.labels, Number), test: Array.from(LIVE.answers, Number) };
const ENGINE = URL.createObjectURL(new Blob([$("engine").textContent], { type: "text/javascript" }));
const isImage = (text) => (LIVE.trainsNetworks && isDrawing(text)) || Number(/^t?(\d+)$/.exec(text)?.[1]) < TRUTH[text[0] === "t" ? "train" : "test"].length;

/** The stored setting that is nearest in α, where runs with so many clients are stored; else null. */
function storedSetting({ alpha, clients: count }) {
  const m = clients.indexOf(count);
  if (m < 0) return null;
  const a = nearest(alphas, alpha);
  return { a, m, alpha: alphas[a] };
}
/** Pixels from 0 to 1 of bytes from 0 to `levels`, which travel as base64. */
const unpackPixels = (text) => Float32Array.from(atob(text), (one) => one.charCodeAt(0) / LIVE.levels);
const stageData = {
  train: { labels: TRUTH.train, images: unpackPixels(LIVE.train), side: LIVE.side },
  test: { labels: TRUTH.test, images: unpackPixels(LIVE.test), side: LIVE.side },
  classes,
  methods: LIVE.rows,
  flights: LIVE.flights,
  sums: LIVE.sums,
  people: DATA.people,
  alphas: ALPHAS,
  clientCounts: COUNTS,
  sets: Object.entries(SETS).map(([name, { title }]) => ({ name, title })),
  set: SET,
  canDraw: LIVE.trainsNetworks,
  trainsNetworks: LIVE.trainsNetworks,
  storedSeeds: seeds.length,
  storedSetting,
  stored: (name, { a, m }) => (METHOD.has(name) ? result(name, a, m) : null),
};
const engine = { deal, split, answers, explainSum, softmax, epochs: RECIPE.epochs, startWorker: () => new Worker(ENGINE) };
const host = {
  changed: follow,
  dataset(name) { location.hash = address(name); }, // another data set is another page: it is loaded anew (`hashchange`)
};
