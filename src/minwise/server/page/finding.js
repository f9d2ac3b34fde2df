// Finding: a text is pasted, typed, dropped or chosen, and its near-duplicates appear.

import { dial } from "./dial.js";
import { complain, find, say } from "./elements.js";
import { facts } from "./facts.js";
import { foldHit, outcome, showHit } from "./hits.js";
import { ask, hear, latest, ServiceError, tell } from "./service.js";
import { amount, codePoints, plural, size, wellFormed } from "./wording.js";

// Long enough that not every key press asks, short enough to feel like at once.
const PAUSE_MILLISECONDS = 200;

const asked = { text: "", name: null, answer: null };
const query = latest();
const reading = latest();
let timer = null;
let least = null;

export const askedText = () => asked.text;

export const askedName = () => asked.name;

const most = () => (find("most").checkValidity() ? Number(find("most").value) : 10);

// Until the threshold of the index is known, it is left to the service.
const wanted = () => (facts.known ? least.get() : undefined);

const show = (answer, text) => {
  // Whoever stands on a hit, or has one open, still does after the list is made again.
  const focused = document.activeElement?.closest("#hits > li")?.dataset.place;
  const before = focused === undefined ? null : asked.answer?.hits[Number(focused)]?.id;
  const opened = foldHit();
  asked.answer = answer;
  const items = answer.hits.map((hit, place) => {
    const made = showHit(text, hit, () => find("find-name").focus());
    made.item.dataset.place = place;
    return made;
  });
  find("hits").replaceChildren(...items.map((made) => made.item));
  say(find("outcome"), outcome(answer, most()));
  answer.hits.forEach((hit, place) => {
    if (hit.id === opened) items[place].open();
    if (hit.id === before) items[place].toggle.focus();
  });
};

const nothing = () => {
  foldHit();
  asked.answer = null;
  find("hits").replaceChildren();
  const remedy = facts.mayWrite ? " Paste a text and add it." : "";
  say(find("outcome"), facts.known && facts.documents === 0 ? `The index is empty.${remedy}` : "");
};

const look = () => {
  clearTimeout(timer);
  complain(find("find-trouble"), null);
  const text = asked.text;
  find("hits").setAttribute("aria-busy", "true");
  return query(
    async (signal) => {
      if (text.trim() === "") nothing();
      else show(await ask("POST", "/v1/query", { text, threshold: wanted(), top: most() }, signal), text);
      find("hits").removeAttribute("aria-busy");
    },
    (error) => {
      nothing();
      say(find("outcome"), "");
      find("hits").removeAttribute("aria-busy");
      complain(find("find-trouble"), error);
    },
  );
};

const soon = () => {
  clearTimeout(timer);
  timer = setTimeout(look, PAUSE_MILLISECONDS);
};

const measure = () => {
  const from = asked.name === null ? "" : ` from ${asked.name}`;
  say(find("text-size"), asked.text === "" ? "" : `${plural(codePoints(asked.text), "character")}${from}`);
};

const take = (text, name) => {
  Object.assign(asked, { text: wellFormed(text), name });
  find("text").value = asked.text;
  measure();
  tell("asked");
  return look();
};

// Takes a text as the one that is asked about; a file that is still read comes too late.
export const lookFor = (text, name = null) => {
  reading.drop();
  return take(text, name);
};

const typed = (event) => {
  reading.drop();
  asked.text = wellFormed(find("text").value);
  if (asked.text === "" || event.inputType?.startsWith("insertFrom")) asked.name = null;
  measure();
  tell("asked");
  if (event.inputType?.startsWith("insertFrom")) look();
  else soon();
};

const refusal = (message) => new ServiceError(0, "file", message);

const bytesOf = async (file) => {
  const limit = facts.limits.max_document ?? Infinity;
  if (file.size > limit) throw refusal(`${file.name} has ${size(file.size)}; this server takes texts of up to ${size(limit)}.`);
  try {
    return await file.arrayBuffer();
  } catch {
    throw refusal(`${file.name} can not be read.`);
  }
};

const decode = (file, bytes) => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refusal(`${file.name} is not a text in UTF-8.`);
  }
};

// Reads a file, unless it is more than the server takes; of several the last one.
export const readFile = (file) =>
  reading(
    async (signal) => {
      const bytes = await bytesOf(file);
      signal.throwIfAborted();
      await take(decode(file, bytes), file.name);
    },
    (error) => complain(find("find-trouble"), error),
  );

const describe = () => {
  const { min } = find("least");
  for (const name of ["least", "least-number"]) Object.assign(find(name), { min: facts.threshold, disabled: false });
  if (Number(min) !== facts.threshold) least.set(facts.threshold);
  say(find("asked-of"), `${amount(facts.documents)} ${facts.documents === 1 ? "document is" : "documents are"} in the index.`);
  find("not-stored").hidden = facts.storesTexts;
  if (asked.text.trim() === "") nothing();
  // After a change the hits may be here before the new number of documents.
  if (asked.answer !== null) say(find("outcome"), outcome(asked.answer, most()));
};

export const startFinding = () => {
  least = dial(find("least"), find("least-number"), soon);
  find("text").addEventListener("input", typed);
  find("most").addEventListener("input", soon);
  find("most").addEventListener("change", () => {
    if (!find("most").checkValidity() || find("most").value === "") find("most").value = 10;
  });
  find("choose").addEventListener("click", () => find("file").click());
  find("file").addEventListener("change", () => {
    if (find("file").files.length) readFile(find("file").files[0]);
    find("file").value = "";
  });
  find("clear").addEventListener("click", () => {
    lookFor("");
    find("text").focus();
  });
  hear("facts", describe);
  hear("changed", look);
  hear("let-in", look);
};
