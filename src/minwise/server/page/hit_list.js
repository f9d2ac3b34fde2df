// List of near-duplicates; each can be opened in the list to show both texts side by side.

import { callApi, fetchDocument, indexInfo, latestOnly, publish } from "./api.js";
import { button, draw, make, nameElement, showError } from "./elements.js";
import { formatFloor, formatPercent, formatPlural } from "./formatting.js";
import { metadataLine, passageLegend, scrollRegion, sideBySide, snippetElement } from "./passages.js";
import { removeButton } from "./remove_button.js";

const bar = (similarity) =>
  draw(
    "svg",
    { class: "share-bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    draw("rect", { class: "bar", width: (100 * similarity).toFixed(2), height: "8" }),
  );

const score = (hit) => {
  const label = hit.exact ? "similar" : "similar, estimated";
  const value = make("strong", {}, formatFloor(hit.similarity));
  return make("p", { class: "score" }, value, " ", make("span", { class: "quiet small" }, label), bar(hit.similarity));
};

const counts = (found, id) =>
  make(
    "p",
    { class: "small" },
    `${formatPlural(found.shared, "shingle")} in both, ${found.only_left} only in your text, `,
    `${found.only_right} only in `,
    nameElement(id, 60),
    `. ${formatPercent(found.containment_left)} of your text is in it, `,
    `${formatPercent(found.containment_right)} of it is in your text.`,
  );

// Compares the query text with a stored document.
const comparison = async (text, hit, signal) => {
  const stored = await fetchDocument(hit.id, signal);
  if (stored.text === null) {
    const note = "The text of this document is not stored, so it cannot be compared with yours.";
    return { parts: [make("p", { class: "quiet" }, note)], use: null };
  }
  const found = await callApi("POST", "/v1/compare", { left: text, right: stored.text, rows: true }, signal);
  const rows = sideBySide(found.rows ?? [], "your text", hit.id);
  const sides = scrollRegion(`Your text and ${hit.id}, side by side`, rows);
  return { parts: [counts(found, hit.id), passageLegend(), sides], use: searchButton(stored) };
};

const searchButton = ({ text }) =>
  button("Find its near-duplicates", () => publish("search-for", { text, name: null }));

// The open hit, at most one: its id and the function that closes it.
let opened = null;
const compare = latestOnly();

// Closes the open hit and aborts its comparison; returns its id, or null.
export const closeOpenHit = () => {
  const id = opened?.id ?? null;
  compare.drop();
  opened?.fold();
  opened = null;
  return id;
};

// Makes a list item of a hit; `removed` is called after its removal.
export const makeHit = (text, hit, removed) => {
  const trouble = make("p", { class: "trouble", role: "alert", hidden: true });
  const body = make("div", { class: "opened", hidden: true });
  const toggle = make("button", { type: "button", class: "toggle", "aria-expanded": "false" }, nameElement(hit.id));
  const head = make("div", { class: "head" }, make("h2", {}, toggle), score(hit));
  const brief = hit.snippet ? snippetElement(hit.snippet) : make("p", { hidden: true });
  const item = make("li", { class: "card hit" }, head, metadataLine(hit.metadata), brief, body);

  const line = (use) => make("div", { class: "line" }, use, removeButton(hit.id, removed), button("Close", close));
  const fold = () => {
    toggle.setAttribute("aria-expanded", "false");
    body.hidden = true;
    brief.hidden = hit.snippet === null;
    body.replaceChildren();
  };
  const close = () => {
    closeOpenHit();
    toggle.focus();
  };
  const open = () => {
    closeOpenHit();
    opened = { id: hit.id, fold };
    toggle.setAttribute("aria-expanded", "true");
    body.hidden = false;
    brief.hidden = true;
    const note = make("p", { class: "quiet", role: "status" }, "Comparing…");
    body.replaceChildren(trouble, note);
    showError(trouble, null);
    return compare(
      async (signal) => {
        const { parts, use } = await comparison(text, hit, signal);
        body.replaceChildren(...parts, line(use));
      },
      (error) => {
        note.replaceWith(line(null));
        showError(trouble, error);
      },
    );
  };

  toggle.addEventListener("click", () => (body.hidden ? open() : close()));
  item.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !body.hidden) close();
  });
  return { item, toggle, open };
};

// Describes the result of a query in a sentence.
export const describeOutcome = ({ hits, threshold }) => {
  const among = `among ${formatPlural(indexInfo.documents, "document")}`;
  const least = `at a similarity of ${Number(threshold.toFixed(4))} or more`;
  if (!hits.length) return `No near-duplicate ${among}, ${least}.`;
  return `${formatPlural(hits.length, "near-duplicate")} ${among}, ${least}.`;
};

// Why a search was cut short, and what to do.
const CUTS = {
  candidates: ({ left_out: count }) => {
    const rest = `${formatPlural(count, "more candidate")} ${count === 1 ? "was" : "were"} not compared`;
    return `Hits may be missing: ${rest}. Add words that only the wanted documents have.`;
  },
  bucket: () => {
    const size = formatPlural(indexInfo.all.settings.max_bucket, "document");
    const full = `more than ${size}, or 16,384 removed ones, share a band with the text, and not all were searched`;
    const remedy = "compact the index if documents were removed, or create one with a higher --max-bucket";
    return `Hits may be missing: ${full}. To search more, ${remedy}.`;
  },
};

// Describes why there may be more hits than are shown, and what to do; empty if these are all.
export const describeCut = (found, most, limit) => {
  const { hits, truncated_by: cause } = found;
  if (cause) return CUTS[cause](found);
  if (hits.length < most) return "";
  const remedy = most < limit ? " Raise “At most” to see more." : ` ${formatPlural(limit, "hit")} are the maximum.`;
  return `These are the most similar ones; there may be more.${remedy}`;
};
