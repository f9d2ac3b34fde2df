// View of the S-curve: sliders for bands, rows and threshold, plot, figures and explanation.

import { callApi, indexInfo, latestOnly, ServiceError, subscribe } from "./api.js";
import { candidateProbability, curveFigures, MAX_SLOTS } from "./curve.js";
import { curvePlot } from "./curve_plot.js";
import { byId, draw, linkSliderAndNumber, make, setText, showError } from "./elements.js";
import { formatCount, formatDigits, formatPercent, formatPlural, formatProbability, formatSize } from "./formatting.js";

// Maximum number of slots that are drawn one by one; more would be too small to see.
const MAX_DRAWN_SLOTS = 1024;
const MAX_DRAWN_ROWS = 64;
// Bands with more rows are drawn horizontally.
const MAX_UPRIGHT_ROWS = 12;
// Bytes of a slot in an index that stores sketches only.
const SLOT_BYTES = 2;
const TABLE_STEPS = 20;

const plans = latestOnly();
let sliders = null;
// Whether the sliders show something other than the plan of the index, which the view opens with.
let chosen = false;
// Random numbers of a pair: a slot agrees if its number is below the similarity, so a higher similarity agrees in more.
let draws = [];

const allRows = (rows) => (rows === 1 ? "in the only row" : `in all ${rows} rows`);
const anyBand = (bands) => (bands === 1 ? "in the only band" : `in at least one of ${formatCount(bands)} bands`);
const power = (base, exponent) => [String(base), make("sup", {}, String(exponent))];
const formula = (...parts) => make("span", { class: "formula" }, ...parts);

// Formats the value of a formula; a share close to 1 is not rounded to 1.
const equals = (share) => {
  if (share > 0.999 && share < 1) return "> 99.9%";
  return share > 0 && share < 1e-6 ? "< 0.0001%" : `= ${formatDigits(100 * share, 3)}%`;
};

const inWords = (share) => formatPercent(share).replace("<", "less than").replace(">", "more than");

const sentences = ({ bands, rows, threshold, slots, recall, steepest, falseCandidates }) => {
  const one = threshold ** rows;
  const half = Number((threshold / 2).toFixed(4));
  const placed = [
    `Every document is sketched into ${formatPlural(slots, "slot")}. In each slot two documents agree with a `,
    "probability equal to their similarity. The slots are divided into ",
    `${formatPlural(bands, "band")} of ${formatPlural(rows, "row")}.`,
  ];
  const at = [
    `A pair of similarity ${threshold} agrees ${allRows(rows)} of one band with probability `,
    formula(...power(threshold, rows), ` ${equals(one)}`), `, and ${anyBand(bands)} with `,
    formula("1 − (1 − ", ...power(threshold, rows), ")", make("sup", {}, String(bands)), ` ${equals(recall)}`),
    ". That is the recall at the threshold.",
  ];
  const below = [
    `A pair half as similar, ${half}, agrees ${allRows(rows)} of one band with `,
    formula(...power(half, rows), ` ${equals(half ** rows)}`),
    `, and ${anyBand(bands)} with ${inWords(candidateProbability(half, bands, rows))}. `,
    rows === 1 ? "With one row the curve hardly bends." : "The exponent separates the two.",
  ];
  return [placed, at, below, [advice(threshold, recall, steepest, falseCandidates)]];
};

// Recommends a change of bands or rows.
const advice = (threshold, recall, steepest, falseCandidates) => {
  const where = `The curve is steepest near ${steepest.toFixed(2)}`;
  if (recall < 0.9) {
    const missed = `${where}, so ${formatPercent(1 - recall)} of the pairs at the threshold are missed.`;
    return `${missed} More bands give them more chances; fewer rows make each band easier to agree in.`;
  }
  if (falseCandidates > 0.5) {
    const unnecessary = "almost no pair is missed, but most pairs below it are compared unnecessarily";
    return `${where}, far below the threshold: ${unnecessary}. More rows make each band stricter.`;
  }
  const share = `${formatPercent(falseCandidates)} of the pairs below it, if evenly distributed,`;
  const unnecessary = `few pairs are missed, and ${share} are compared unnecessarily`;
  const real = "Real corpora have far fewer of these, because most of their documents have nothing in common.";
  return `${where}, below the threshold: ${unnecessary}. ${real}`;
};

const showFigures = (figures) => {
  byId("recall").textContent = formatProbability(figures.recall);
  byId("recall-words").textContent = `of pairs of similarity ${figures.threshold} are found`;
  byId("steepest").textContent = figures.steepest.toFixed(2);
  byId("slots").textContent = formatCount(figures.slots);
  const size = formatSize(SLOT_BYTES * figures.slots);
  const cost = `${size} per sketch, ${formatPlural(figures.bands, "lookup")} per query`;
  byId("slots-words").textContent = `${formatCount(figures.bands)} × ${formatCount(figures.rows)}; ${cost}`;
  byId("false-candidates").textContent = formatPercent(figures.falseCandidates);
  byId("false-positive").textContent = formatProbability(figures.falsePositive);
  byId("false-negative").textContent = formatProbability(figures.falseNegative);
};

const showTable = ({ bands, rows }) => {
  const lines = Array.from({ length: TABLE_STEPS + 1 }, (_, step) => {
    const similarity = step / TABLE_STEPS;
    const cell = make("td", {}, formatProbability(candidateProbability(similarity, bands, rows)));
    return make("tr", {}, make("th", { scope: "row" }, similarity.toFixed(2)), cell);
  });
  byId("curve-table").replaceChildren(...lines);
};

const band = (agreed) => {
  const isHorizontal = agreed.length > MAX_UPRIGHT_ROWS;
  const [width, height] = isHorizontal ? [10 * agreed.length, 10] : [10, 10 * agreed.length];
  const cells = agreed.map((agrees, row) => {
    const [x, y] = isHorizontal ? [10 * row + 1.5, 1.5] : [1.5, 10 * row + 1.5];
    return draw("rect", { class: agrees ? "agree" : "differ", x, y, width: 7, height: 7, rx: 1.5 });
  });
  const frame = draw("rect", { class: "frame", x: 0.5, y: 0.5, width: width - 1, height: height - 1, rx: 2 });
  const kind = agreed.every(Boolean) ? "band fires" : "band";
  const box = { width: 1.2 * width, height: 1.2 * height, viewBox: `0 0 ${width} ${height}` };
  return draw("svg", { class: kind, "aria-hidden": "true", ...box }, frame, ...cells);
};

const showDrawn = ({ bands, rows, threshold, slots }) => {
  while (draws.length < Math.min(slots, MAX_DRAWN_SLOTS)) draws.push(Math.random());
  const drawable = slots <= MAX_DRAWN_SLOTS && rows <= MAX_DRAWN_ROWS;
  byId("another").hidden = !drawable;
  if (!drawable) {
    byId("drawn").replaceChildren();
    setText(byId("drawn-words"), `${formatPlural(slots, "slot")} are too many to draw one by one.`);
    return;
  }
  const slotsOf = (at) => draws.slice(at * rows, (at + 1) * rows);
  const agreed = Array.from({ length: bands }, (_, at) => slotsOf(at).map((number) => number < threshold));
  const fired = agreed.filter((slots) => slots.every(Boolean)).length;
  const same = agreed.flat().filter(Boolean).length;
  byId("drawn").replaceChildren(...agreed.map(band));
  byId("drawn").classList.toggle("lying", rows > MAX_UPRIGHT_ROWS);
  const whole = `${formatPlural(fired, "band")} agree${fired === 1 ? "s" : ""} completely: the pair is compared.`;
  const end = fired ? whole : "No band agrees completely: the pair is missed.";
  const slotsAgreed = `${same} of ${formatPlural(slots, "slot")}`;
  setText(byId("drawn-words"), `Two documents of similarity ${threshold} agree here in ${slotsAgreed}. ${end}`);
};

const show = () => {
  const [bands, rows, threshold] = [sliders.bands.get(), sliders.rows.get(), sliders.threshold.get()];
  if (bands * rows > MAX_SLOTS) {
    const got = `${formatCount(bands)} · ${formatCount(rows)} = ${formatCount(bands * rows)}`;
    const message = `Bands · rows must be at most ${formatCount(MAX_SLOTS)} slots, got ${got}.`;
    showError(byId("curve-trouble"), new ServiceError(0, "slots", message));
    return;
  }
  showError(byId("curve-trouble"), null);
  const figures = curveFigures(bands, rows, threshold);
  byId("plot").replaceChildren(curvePlot(figures));
  showFigures(figures);
  byId("sentences").replaceChildren(...sentences(figures).map((parts) => make("li", {}, ...parts)));
  showTable(figures);
  showDrawn(figures);
};

const onSlider = () => {
  chosen = true;
  setText(byId("planned"), "");
  show();
};

const setPlan = (plan, text) => {
  sliders.bands.set(plan.bands);
  sliders.rows.set(plan.rows);
  sliders.threshold.set(plan.threshold);
  show();
  setText(byId("planned"), text);
};

const showPlan = (path, describe) =>
  plans(
    async (signal) => {
      chosen = true;
      setText(byId("planned"), "");
      const plan = await callApi("GET", path, undefined, signal);
      setPlan(plan, describe(plan));
    },
    (error) => showError(byId("curve-trouble"), error),
  );

const layout = ({ bands, rows, slots }) =>
  `${formatPlural(bands, "band")} × ${formatPlural(rows, "row")}, ${formatPlural(slots, "slot")}`;

const describeIndexPlan = (plan) =>
  `This index has ${layout(plan)}, for a threshold of ${formatDigits(plan.threshold, 4)}.`;

const showIndexPlan = () => showPlan("/v1/plan", describeIndexPlan);

// Shows the plan of the index when it is known, unless another layout was chosen before.
const openAtIndexPlan = () => {
  if (indexInfo.known && !chosen) setPlan(indexInfo.plan, describeIndexPlan(indexInfo.plan));
};

const showBestPlan = (event) => {
  event.preventDefault();
  const parameters = { threshold: sliders.threshold.get(), recall: byId("wished").value, slots: byId("budget").value };
  const describe = (plan) =>
    `The most selective layout is ${layout(plan)}; its recall is ${formatProbability(plan.recall)}.`;
  showPlan(`/v1/plan?${new URLSearchParams(parameters)}`, describe);
};

export const startCurveView = () => {
  const make = (name) => linkSliderAndNumber(byId(name), byId(`${name}-number`), onSlider);
  sliders = { bands: make("bands"), rows: make("rows"), threshold: make("threshold") };
  byId("own-plan").addEventListener("click", showIndexPlan);
  byId("best-plan").addEventListener("submit", showBestPlan);
  byId("another").addEventListener("click", () => {
    draws = [];
    show();
  });
  subscribe("index-info", openAtIndexPlan);
  subscribe("authorized", () => showError(byId("curve-trouble"), null));
};

// Draws the plot when the view is first shown; without a plan of the index, that of the sliders.
export const showCurveView = () => {
  if (!byId("plot").hasChildNodes()) show();
};
