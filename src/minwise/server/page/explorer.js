// Explorer: sliders for bands, rows and threshold; the curve, its figures and what they mean.

import { chance, figuresOf, MOST_SLOTS } from "./curve.js";
import { dial } from "./dial.js";
import { complain, draw, find, make, say } from "./elements.js";
import { hear, ask, latest, ServiceError } from "./service.js";
import { amount, percent, plural, probability, significant, size } from "./wording.js";
import { plot } from "./plot.js";

// Slots that are drawn one by one; of more, nobody would see any.
const MOST_DRAWN = 1024;
const MOST_ROWS_DRAWN = 64;
// Bands of more rows lie on their side.
const MOST_ROWS_UPRIGHT = 12;
// An index that keeps only sketches has so many bytes of each slot.
const SLOT_BYTES = 2;
const TABLE_STEPS = 20;

const plans = latest();
let dials = null;
// Chances of a pair: a slot agrees if its own is below the similarity, so that more of them do as the pair gets closer.
let luck = [];

const allRows = (rows) => (rows === 1 ? "in the only row" : `in all ${rows} rows`);
const anyBand = (bands) => (bands === 1 ? "in the only band" : `in at least one of ${amount(bands)} bands`);
const power = (base, exponent) => [String(base), make("sup", {}, String(exponent))];
const formula = (...parts) => make("span", { class: "formula" }, ...parts);

// A share behind its formula. Nearly all is not all.
const equals = (share) => {
  if (share > 0.999 && share < 1) return "> 99.9%";
  return share > 0 && share < 1e-6 ? "< 0.0001%" : `= ${significant(100 * share, 3)}%`;
};

const inWords = (share) => percent(share).replace("<", "less than").replace(">", "more than");

const sentences = ({ bands, rows, threshold, slots, recall, steepest, falseCandidates }) => {
  const one = threshold ** rows;
  const half = Number((threshold / 2).toFixed(4));
  const placed = [
    `Every document is sketched into ${plural(slots, "slot")}. In each slot two documents agree with a probability `,
    `that is their similarity. The slots are cut into ${plural(bands, "band")} of ${plural(rows, "row")}.`,
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
    `, and ${anyBand(bands)} with ${inWords(chance(half, bands, rows))}. `,
    rows === 1 ? "With one row the curve hardly bends." : "The power is what drives the two apart.",
  ];
  return [placed, at, below, [advice(threshold, recall, steepest, falseCandidates)]];
};

// What to do about it.
const advice = (threshold, recall, steepest, falseCandidates) => {
  const where = `The curve is steepest near ${steepest.toFixed(2)}`;
  if (recall < 0.9) {
    const missed = `${where}, so ${percent(1 - recall)} of the pairs at the threshold are missed.`;
    return `${missed} More bands give them more chances; fewer rows make each band easier to agree in.`;
  }
  if (falseCandidates > 0.5) {
    const vain = "next to nothing is missed, but most pairs below it are compared in vain";
    return `${where}, far below the threshold: ${vain}. More rows make each band stricter.`;
  }
  const vain = `few pairs are missed, and ${percent(falseCandidates)} of the pairs below it, if spread evenly, are compared in vain`;
  const real = "Real corpora have far fewer of these, as most of their documents have nothing in common.";
  return `${where}, below the threshold: ${vain}. ${real}`;
};

const showFigures = (figures) => {
  find("recall").textContent = probability(figures.recall);
  find("recall-words").textContent = `of pairs of similarity ${figures.threshold} are found`;
  find("steepest").textContent = figures.steepest.toFixed(2);
  find("slots").textContent = amount(figures.slots);
  const cost = `${size(SLOT_BYTES * figures.slots)} of a sketch, ${plural(figures.bands, "look-up")} a query`;
  find("slots-words").textContent = `${amount(figures.bands)} × ${amount(figures.rows)}; ${cost}`;
  find("false-candidates").textContent = percent(figures.falseCandidates);
  find("false-positive").textContent = probability(figures.falsePositive);
  find("false-negative").textContent = probability(figures.falseNegative);
};

const showTable = ({ bands, rows }) => {
  const lines = Array.from({ length: TABLE_STEPS + 1 }, (_, step) => {
    const similarity = step / TABLE_STEPS;
    const cell = make("td", {}, probability(chance(similarity, bands, rows)));
    return make("tr", {}, make("th", { scope: "row" }, similarity.toFixed(2)), cell);
  });
  find("curve-table").replaceChildren(...lines);
};

const band = (agreed) => {
  const lying = agreed.length > MOST_ROWS_UPRIGHT;
  const [width, height] = lying ? [10 * agreed.length, 10] : [10, 10 * agreed.length];
  const cells = agreed.map((agrees, row) => {
    const [x, y] = lying ? [10 * row + 1.5, 1.5] : [1.5, 10 * row + 1.5];
    return draw("rect", { class: agrees ? "agree" : "differ", x, y, width: 7, height: 7, rx: 1.5 });
  });
  const frame = draw("rect", { class: "frame", x: 0.5, y: 0.5, width: width - 1, height: height - 1, rx: 2 });
  const kind = agreed.every(Boolean) ? "band fires" : "band";
  const place = { width: 1.2 * width, height: 1.2 * height, viewBox: `0 0 ${width} ${height}` };
  return draw("svg", { class: kind, "aria-hidden": "true", ...place }, frame, ...cells);
};

const showDrawn = ({ bands, rows, threshold, slots }) => {
  while (luck.length < Math.min(slots, MOST_DRAWN)) luck.push(Math.random());
  const drawable = slots <= MOST_DRAWN && rows <= MOST_ROWS_DRAWN;
  find("another").hidden = !drawable;
  if (!drawable) {
    find("drawn").replaceChildren();
    say(find("drawn-words"), `${plural(slots, "slot")} are too many to draw one by one.`);
    return;
  }
  const slotsOf = (at) => luck.slice(at * rows, (at + 1) * rows);
  const agreed = Array.from({ length: bands }, (_, at) => slotsOf(at).map((one) => one < threshold));
  const fired = agreed.filter((one) => one.every(Boolean)).length;
  const same = agreed.flat().filter(Boolean).length;
  find("drawn").replaceChildren(...agreed.map(band));
  find("drawn").classList.toggle("lying", rows > MOST_ROWS_UPRIGHT);
  const whole = `${plural(fired, "band")} agree${fired === 1 ? "s" : ""} as a whole: the pair is compared.`;
  const end = fired ? whole : "No band agrees as a whole: the pair is missed.";
  const slotsAgreed = `${same} of ${plural(slots, "slot")}`;
  say(find("drawn-words"), `Two documents of similarity ${threshold} agree here in ${slotsAgreed}. ${end}`);
};

const show = () => {
  const [bands, rows, threshold] = [dials.bands.get(), dials.rows.get(), dials.threshold.get()];
  if (bands * rows > MOST_SLOTS) {
    const got = `${amount(bands)} · ${amount(rows)} = ${amount(bands * rows)}`;
    const message = `Bands · rows must be at most ${amount(MOST_SLOTS)} slots, got ${got}.`;
    complain(find("curve-trouble"), new ServiceError(0, "slots", message));
    return;
  }
  complain(find("curve-trouble"), null);
  const figures = figuresOf(bands, rows, threshold);
  find("plot").replaceChildren(plot(figures));
  showFigures(figures);
  find("sentences").replaceChildren(...sentences(figures).map((parts) => make("li", {}, ...parts)));
  showTable(figures);
  showDrawn(figures);
};

const turned = () => {
  say(find("planned"), "");
  show();
};

const take = (path, words) =>
  plans(
    async (signal) => {
      say(find("planned"), "");
      const plan = await ask("GET", path, undefined, signal);
      dials.bands.set(plan.bands);
      dials.rows.set(plan.rows);
      dials.threshold.set(plan.threshold);
      show();
      say(find("planned"), words(plan));
    },
    (error) => complain(find("curve-trouble"), error),
  );

const layout = (plan) => `${plural(plan.bands, "band")} × ${plural(plan.rows, "row")}, ${plural(plan.slots, "slot")}`;

const takeOwn = () =>
  take("/v1/plan", (plan) => `This index has ${layout(plan)}, for a threshold of ${significant(plan.threshold, 4)}.`);

const takeBest = (event) => {
  event.preventDefault();
  const asked = { threshold: dials.threshold.get(), recall: find("wished").value, slots: find("budget").value };
  const words = (plan) => `The strictest layout is ${layout(plan)}; its recall is ${probability(plan.recall)}.`;
  take(`/v1/plan?${new URLSearchParams(asked)}`, words);
};

export const startExploring = () => {
  const make = (name) => dial(find(name), find(`${name}-number`), turned);
  dials = { bands: make("bands"), rows: make("rows"), threshold: make("threshold") };
  find("own-plan").addEventListener("click", takeOwn);
  find("best-plan").addEventListener("submit", takeBest);
  find("another").addEventListener("click", () => {
    luck = [];
    show();
  });
  hear("let-in", () => complain(find("curve-trouble"), null));
};

// The picture is drawn when somebody looks at it.
export const explore = () => {
  if (!find("plot").hasChildNodes()) show();
};
