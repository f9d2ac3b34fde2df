// Search view: a text that is pasted, typed, dropped or chosen, and its near-duplicates.

import { callApi, indexInfo, latestOnly, publish, ServiceError, subscribe } from "./api.js";
import { byId, linkSliderAndNumber, setText, showError } from "./elements.js";
import { codePoints, formatPlural, formatSize, wellFormed } from "./formatting.js";
import { closeOpenHit, describeCut, describeOutcome, makeHit } from "./hit_list.js";

// Pause after a key press before a query: few enough queries, and still felt as immediate.
const PAUSE_MILLISECONDS = 200;

// A text to try the page with, and the id under which it is added.
const SAMPLE = {
  id: "sample",
  text:
    "The lighthouse keeper counts the boats every evening before he lights the lamp. Twelve left the harbour this " +
    "morning, and eleven have come home. The twelfth is the old ferry, which is always late, because the captain " +
    "stops for coffee on the island. At nine the keeper writes the number twelve into his book and goes to bed.",
};

const current = { text: "", name: null, answer: null };
const query = latestOnly();
const fileRead = latestOnly();
let timer = null;
let least = null;

export const queryText = () => current.text;

export const queryName = () => current.name;

const most = () => (byId("most").checkValidity() ? Number(byId("most").value) : 10);

// Until the threshold of the index is known, the service uses its default.
const wanted = () => (indexInfo.known ? least.get() : undefined);

const showOutcome = () => {
  setText(byId("outcome"), describeOutcome(current.answer));
  setText(byId("cut"), describeCut(current.answer, most(), Number(byId("most").max)));
};

const show = (answer, text) => {
  // Focus and open hit are kept when the list is rebuilt.
  const focused = document.activeElement?.closest("#hits > li")?.dataset.position;
  const before = focused === undefined ? null : current.answer?.hits[Number(focused)]?.id;
  const opened = closeOpenHit();
  current.answer = answer;
  const items = answer.hits.map((hit, position) => {
    const made = makeHit(text, hit, () => byId("find-name").focus());
    made.item.dataset.position = position;
    return made;
  });
  byId("hits").replaceChildren(...items.map((made) => made.item));
  showOutcome();
  answer.hits.forEach((hit, position) => {
    if (hit.id === opened) items[position].open();
    if (hit.id === before) items[position].toggle.focus();
  });
};

const clearHits = () => {
  closeOpenHit();
  current.answer = null;
  byId("hits").replaceChildren();
  setText(byId("outcome"), "");
  setText(byId("cut"), "");
};

// Shows how to fill an empty index.
const showEmpty = () => {
  byId("empty").hidden = !indexInfo.known || indexInfo.documents > 0;
  byId("empty-writes").hidden = !indexInfo.mayWrite;
  byId("empty-reads").hidden = indexInfo.mayWrite;
};

// Fills in the sample text and opens the form that adds it.
const trySample = () => {
  searchFor(SAMPLE.text);
  if (byId("new-id").value === "") byId("new-id").value = SAMPLE.id;
  byId("adding").open = indexInfo.mayWrite;
  byId("text").focus();
};

const search = () => {
  clearTimeout(timer);
  showError(byId("find-trouble"), null);
  const text = current.text;
  byId("hits").setAttribute("aria-busy", "true");
  return query(
    async (signal) => {
      if (text.trim() === "") clearHits();
      else show(await callApi("POST", "/v1/query", { text, threshold: wanted(), top: most() }, signal), text);
      byId("hits").removeAttribute("aria-busy");
    },
    (error) => {
      clearHits();
      byId("hits").removeAttribute("aria-busy");
      showError(byId("find-trouble"), error);
    },
  );
};

const searchSoon = () => {
  clearTimeout(timer);
  timer = setTimeout(search, PAUSE_MILLISECONDS);
};

const showSize = () => {
  const from = current.name === null ? "" : ` from ${current.name}`;
  const count = formatPlural(codePoints(current.text), "character");
  setText(byId("text-size"), current.text === "" ? "" : `${count}${from}`);
};

const setQueryText = (text, name) => {
  Object.assign(current, { text: wellFormed(text), name });
  byId("text").value = current.text;
  showSize();
  publish("text-changed");
  return search();
};

// Makes a text the query text; a file that is still being read is ignored.
export const searchFor = (text, name = null) => {
  fileRead.drop();
  return setQueryText(text, name);
};

const onInput = (event) => {
  fileRead.drop();
  current.text = wellFormed(byId("text").value);
  if (current.text === "" || event.inputType?.startsWith("insertFrom")) current.name = null;
  showSize();
  publish("text-changed");
  if (event.inputType?.startsWith("insertFrom")) search();
  else searchSoon();
};

const refusal = (message) => new ServiceError(0, "file", message);

const bytesOf = async (file) => {
  const limit = indexInfo.limits.max_document ?? Infinity;
  if (file.size > limit) {
    const rule = `this server accepts texts of up to ${formatSize(limit)}`;
    throw refusal(`${file.name} has ${formatSize(file.size)}; ${rule}.`);
  }
  try {
    return await file.arrayBuffer();
  } catch {
    throw refusal(`${file.name} cannot be read.`);
  }
};

const decode = (file, bytes) => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refusal(`${file.name} is not UTF-8 text.`);
  }
};

// Reads a file if the server accepts its size; of several files, the last one.
export const readFile = (file) =>
  fileRead(
    async (signal) => {
      const bytes = await bytesOf(file);
      signal.throwIfAborted();
      await setQueryText(decode(file, bytes), file.name);
    },
    (error) => showError(byId("find-trouble"), error),
  );

const showIndexInfo = () => {
  const { min } = byId("least");
  for (const name of ["least", "least-number"]) {
    Object.assign(byId(name), { min: indexInfo.threshold, disabled: false });
  }
  if (Number(min) !== indexInfo.threshold) least.set(indexInfo.threshold);
  const verb = indexInfo.documents === 1 ? "is" : "are";
  setText(byId("asked-of"), `${formatPlural(indexInfo.documents, "document")} ${verb} in the index.`);
  byId("not-stored").hidden = indexInfo.storesTexts;
  showEmpty();
  if (current.text.trim() === "") clearHits();
  // After a change the hits may arrive before the new number of documents.
  if (current.answer !== null) showOutcome();
};

export const startSearchView = () => {
  least = linkSliderAndNumber(byId("least"), byId("least-number"), searchSoon);
  byId("text").addEventListener("input", onInput);
  byId("most").addEventListener("input", searchSoon);
  byId("most").addEventListener("change", () => {
    if (!byId("most").checkValidity() || byId("most").value === "") byId("most").value = 10;
  });
  byId("sample").addEventListener("click", trySample);
  byId("choose").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", () => {
    if (byId("file").files.length) readFile(byId("file").files[0]);
    byId("file").value = "";
  });
  byId("clear").addEventListener("click", () => {
    searchFor("");
    byId("text").focus();
  });
  subscribe("index-info", showIndexInfo);
  subscribe("documents-changed", search);
  subscribe("authorized", search);
};

// Drop target: a file or a text that is dropped anywhere on the page becomes the query text.

const carries = (event) => ["Files", "text/plain"].some((kind) => event.dataTransfer?.types.includes(kind));

// Text that is dropped into a field stays there. Not every event target has `closest`.
const inField = (event) => (event.target.closest?.("input, textarea") ?? null) !== null;

const belongs = (event) => !event.dataTransfer.types.includes("Files") && inField(event);

export const startDropTarget = () => {
  const over = (event) => {
    if (!carries(event) || belongs(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    byId("dropping").hidden = false;
  };
  // The next element is entered before the previous one is left, so only leaving the element entered last leaves the
  // page. Not all browsers set relatedTarget for drag events.
  let inside = null;
  const enter = (event) => {
    inside = event.target;
    over(event);
  };
  const leave = (event) => {
    if (event.target === inside) byId("dropping").hidden = true;
  };
  const drop = async (event) => {
    byId("dropping").hidden = true;
    if (!carries(event) || belongs(event)) return;
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    const text = event.dataTransfer.getData("text/plain");
    location.hash = "#find";
    await (file ? readFile(file) : searchFor(text));
    byId("text").focus();
  };
  document.addEventListener("dragenter", enter);
  document.addEventListener("dragover", over);
  document.addEventListener("dragleave", leave);
  document.addEventListener("drop", drop);
};
