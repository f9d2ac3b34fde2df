// Hits: near-duplicates in, a list out. Each one opens in its place and shows both texts side by side.

import { button, complain, draw, make, named } from "./elements.js";
import { facts } from "./facts.js";
import { legend, marked, metadataLine, scrolling, sideBySide } from "./passages.js";
import { removal } from "./removing.js";
import { ask, fetchDocument, latest, tell } from "./service.js";
import { codePoints, cut, percent, plural } from "./wording.js";

const bar = (similarity) =>
  draw(
    "svg",
    { class: "share-bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    draw("rect", { class: "bar", width: (100 * similarity).toFixed(2), height: "8" }),
  );

const score = (hit) => {
  const words = hit.exact ? "similar" : "similar, estimated";
  const value = make("strong", {}, cut(hit.similarity));
  return make("p", { class: "score" }, value, " ", make("span", { class: "quiet small" }, words), bar(hit.similarity));
};

// What stands before and after a snippet is left out, and said so.
const snippet = ({ text, start, spans, length }) => {
  const goesOn = start + codePoints(text) < length;
  return make("p", { class: "snippet", dir: "auto" }, start > 0 ? "… " : null, ...marked(text, spans), goesOn ? " …" : null);
};

const counts = (found, id) =>
  make(
    "p",
    { class: "small" },
    `${plural(found.shared, "shingle")} in both, ${found.only_left} only in your text, ${found.only_right} only in `,
    named(id, 60),
    `. ${percent(found.containment_left)} of your text is in it, ${percent(found.containment_right)} of it is in your text.`,
  );

// The whole comparison of the asked text with a stored document.
const comparison = async (text, hit, signal) => {
  const stored = await fetchDocument(hit.id, signal);
  if (stored.text === null) {
    const words = "The text of this document is not stored, so there is nothing to put beside yours.";
    return { parts: [make("p", { class: "quiet" }, words)], use: null };
  }
  const found = await ask("POST", "/v1/compare", { left: text, right: stored.text, rows: true }, signal);
  const sides = scrolling(`Your text and ${hit.id}, side by side`, sideBySide(found.rows ?? [], "your text", hit.id));
  return { parts: [counts(found, hit.id), legend(), sides], use: use(stored) };
};

const use = (stored) => button("Look for its near-duplicates", () => tell("looked-for", { text: stored.text, name: null }));

// The hit that is open, one at most: its id, and how to fold it.
let opened = null;
const compare = latest();

// Folds the hit that is open, whose comparison nobody waits for any more; its id, or null.
export const foldHit = () => {
  const id = opened?.id ?? null;
  compare.drop();
  opened?.fold();
  opened = null;
  return id;
};

// One hit; `removed` hears that it is gone.
export const showHit = (text, hit, removed) => {
  const trouble = make("p", { class: "trouble", role: "alert", hidden: true });
  const body = make("div", { class: "opened", hidden: true });
  const toggle = make("button", { type: "button", class: "toggle", "aria-expanded": "false" }, named(hit.id));
  const head = make("div", { class: "head" }, make("h2", {}, toggle), score(hit));
  const brief = hit.snippet ? snippet(hit.snippet) : make("p", { hidden: true });
  const item = make("li", { class: "card hit" }, head, metadataLine(hit.metadata), brief, body);

  const line = (use) => make("div", { class: "line" }, use, removal(hit.id, removed), button("Close", close));
  const fold = () => {
    toggle.setAttribute("aria-expanded", "false");
    body.hidden = true;
    brief.hidden = hit.snippet === null;
    body.replaceChildren();
  };
  const close = () => {
    foldHit();
    toggle.focus();
  };
  const open = () => {
    foldHit();
    opened = { id: hit.id, fold };
    toggle.setAttribute("aria-expanded", "true");
    body.hidden = false;
    brief.hidden = true;
    const note = make("p", { class: "quiet", role: "status" }, "Comparing…");
    body.replaceChildren(trouble, note);
    complain(trouble, null);
    return compare(
      async (signal) => {
        const { parts, use } = await comparison(text, hit, signal);
        body.replaceChildren(...parts, line(use));
      },
      (error) => {
        note.replaceWith(line(null));
        complain(trouble, error);
      },
    );
  };

  toggle.addEventListener("click", () => (body.hidden ? open() : close()));
  item.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !body.hidden) close();
  });
  return { item, toggle, open };
};

// What was found, in a sentence.
export const outcome = ({ hits, truncated, threshold }, most) => {
  const among = `among ${plural(facts.documents, "document")}`;
  const least = `at a similarity of ${Number(threshold.toFixed(4))} or more`;
  const short = truncated ? " The search was cut short, so something may be missing." : "";
  if (!hits.length) return `No near-duplicate ${among}, ${least}.${short}`;
  const more = hits.length === most ? " There may be more: these are the most similar ones." : "";
  return `${plural(hits.length, "near-duplicate")} ${among}, ${least}.${more}${short}`;
};
