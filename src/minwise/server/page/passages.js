// Passages: texts and what they share in, elements out that show it.

import { make, named, shortened, visible } from "./elements.js";

// The service counts code points, JavaScript halves of those beyond U+FFFF.
export const marked = (text, spans) => {
  const characters = Array.from(text);
  const cut = (start, end) => visible(characters.slice(start, end).join(""));
  const pieces = [];
  let at = 0;
  for (const [start, end] of spans) {
    pieces.push(cut(at, Math.max(start, at)), make("mark", {}, cut(Math.max(start, at), end)));
    at = Math.max(end, at);
  }
  return [...pieces, cut(at)].filter((piece) => piece !== "");
};

const LOOKS = {
  shared: (text) => make("mark", {}, text),
  moved: (text) => make("mark", { class: "moved" }, text),
  gap: (text) => make("span", { class: "gap" }, text),
  only: (text) => text,
};

const side = (pieces) => make("div", { class: "side", dir: "auto" }, ...pieces.map((piece) => LOOKS[piece.kind](piece.text)));

// Of many rows a browser lays out only those in sight.
const MANY_ROWS = 200;

export const sideBySide = (rows, left, right) => {
  const name = (words) => make("div", { class: "side" }, words);
  const names = make("div", { class: "pair names" }, name(left), name(named(right, 80)));
  const pairs = rows.map((row) => make("div", { class: "pair" }, side(row.left), side(row.right)));
  return make("div", { class: rows.length > MANY_ROWS ? "sides many" : "sides" }, names, ...pairs);
};

export const legend = () =>
  make(
    "p",
    { class: "legend" },
    make("mark", {}, "in both texts"),
    " · ",
    make("mark", { class: "moved" }, "in both, at another place"),
    " · everything else is in one text only",
  );

// A box that scrolls by itself has to be reached by the keyboard as well.
export const scrolling = (words, ...children) =>
  make("div", { class: "differences", tabindex: "0", role: "region", "aria-label": shortened(words, 200) }, ...children);

const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// What is known of a document, name by name; long ones are shortened.
const MOST_NAMES = 8;
const LONGEST_NAME = 40;
const LONGEST_VALUE = 120;

export const metadataLine = (metadata) => {
  const entries = Object.entries(metadata ?? {});
  if (!entries.length) return null;
  const parts = entries.slice(0, MOST_NAMES).map(([name, value]) =>
    make("div", {}, make("dt", {}, named(name, LONGEST_NAME)), make("dd", {}, named(written(value), LONGEST_VALUE))),
  );
  const rest = entries.length - MOST_NAMES;
  if (rest > 0) parts.push(make("div", {}, make("dt", {}, "and"), make("dd", {}, `${rest} more`)));
  return make("dl", { class: "metadata" }, ...parts);
};

export const metadataWhole = (metadata) =>
  metadata === null ? null : make("pre", { class: "code", dir: "auto" }, visible(JSON.stringify(metadata, null, 2)));
