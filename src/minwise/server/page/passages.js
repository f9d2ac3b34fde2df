// Texts with their shared passages, and metadata of documents.

import { make, nameElement, shorten, visibleText } from "./elements.js";
import { codePoints } from "./formatting.js";

// Marks spans of a text. The service counts code points, JavaScript strings UTF-16 units.
export const markSpans = (text, spans) => {
  const characters = Array.from(text);
  const cut = (start, end) => visibleText(characters.slice(start, end).join(""));
  const pieces = [];
  let at = 0;
  for (const [start, end] of spans) {
    pieces.push(cut(at, Math.max(start, at)), make("mark", {}, cut(Math.max(start, at), end)));
    at = Math.max(end, at);
  }
  return [...pieces, cut(at)].filter((piece) => piece !== "");
};

// Snippet with an ellipsis where text before or after it is omitted.
export const snippetElement = ({ text, start, spans, length }) => {
  const continues = start + codePoints(text) < length;
  const parts = [start > 0 ? "… " : null, ...markSpans(text, spans), continues ? " …" : null];
  return make("p", { class: "snippet", dir: "auto" }, ...parts);
};

// Elements of the kinds of pieces; any other text is common to both texts.
const ELEMENTS = {
  shared: (text) => make("span", { class: "shared" }, text),
  moved: (text) => make("mark", { class: "moved" }, text),
  only: (text) => make("mark", { class: "only" }, text),
  gap: (text) => make("span", { class: "gap" }, text),
  common: (text) => text,
};

const side = (pieces) =>
  make("div", { class: "side", dir: "auto" }, ...pieces.map(({ kind, text }) => ELEMENTS[kind](text)));

// With more rows, the browser lays out only the visible ones.
const MANY_ROWS = 200;

export const sideBySide = (rows, left, right) => {
  const name = (words) => make("div", { class: "side" }, words);
  const names = make("div", { class: "pair names" }, name(left), name(nameElement(right, 80)));
  const pairs = rows.map((row) => make("div", { class: "pair" }, side(row.left), side(row.right)));
  return make("div", { class: rows.length > MANY_ROWS ? "sides many" : "sides" }, names, ...pairs);
};

export const passageLegend = () =>
  make(
    "p",
    { class: "legend" },
    make("mark", { class: "only" }, "only in your text"),
    " · ",
    make("mark", { class: "only right" }, "only in the stored text"),
    " · ",
    make("mark", { class: "moved" }, "in both, at another position"),
    " · grey: in both",
  );

// Scrollable region that can be focused, so that it can be scrolled with the keyboard.
export const scrollRegion = (label, ...children) =>
  make("div", { class: "differences", tabindex: "0", role: "region", "aria-label": shorten(label, 200) }, ...children);

const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// Metadata as a list of names and values; long ones are shortened.
const MAX_NAMES = 8;
const LONGEST_NAME = 40;
const LONGEST_VALUE = 120;

export const metadataLine = (metadata) => {
  const entries = Object.entries(metadata ?? {});
  if (!entries.length) return null;
  const parts = entries.slice(0, MAX_NAMES).map(([name, value]) =>
    make(
      "div",
      {},
      make("dt", {}, nameElement(name, LONGEST_NAME)),
      make("dd", {}, nameElement(written(value), LONGEST_VALUE)),
    ),
  );
  const rest = entries.length - MAX_NAMES;
  if (rest > 0) parts.push(make("div", {}, make("dt", {}, "and"), make("dd", {}, `${rest} more`)));
  return make("dl", { class: "metadata" }, ...parts);
};

export const metadataWhole = (metadata) =>
  metadata === null
    ? null
    : make("pre", { class: "code", dir: "auto" }, visibleText(JSON.stringify(metadata, null, 2)));
