// App: the views of the page, and the token that lets somebody in.

import { startAdding } from "./adding.js";
import { browse, startBrowsing } from "./browsing.js";
import { startDropping } from "./dropping.js";
import { complain, find, say } from "./elements.js";
import { explore, startExploring } from "./explorer.js";
import { refreshFacts } from "./facts.js";
import { lookFor, startFinding } from "./finding.js";
import { hear, tell, useToken } from "./service.js";
import { startStatistics } from "./statistics.js";

const VIEWS = ["find", "documents", "curve", "index"];

const UNKNOWN_TOKEN = "The server does not know this token. Another is drawn by: minwise token FILE --read --write";

const chosen = () => (VIEWS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "find");

const showView = () => {
  for (const name of VIEWS) find(name).hidden = name !== chosen();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${chosen()}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${document.querySelector('nav a[aria-current="page"]').textContent} · minwise`;
  if (chosen() === "documents") browse();
  if (chosen() === "curve") explore();
};

// Who goes to another view by the keyboard goes on at its beginning.
const moveTo = () => {
  showView();
  scrollTo(0, 0);
  find(`${chosen()}-name`).focus({ preventScroll: true });
};

const refresh = async () => {
  try {
    await refreshFacts();
    complain(find("general-trouble"), null);
  } catch (error) {
    // The form for the token says it already.
    complain(find("general-trouble"), error.status === 401 ? null : error);
  }
};

const askForToken = ({ again }) => {
  const form = find("token-form");
  if (form.contains(document.activeElement)) return;
  form.hidden = false;
  say(find("token-words"), again ? UNKNOWN_TOKEN : "");
  find("token").focus();
  find("token").select();
};

const letIn = async (event) => {
  event.preventDefault();
  useToken(find("token").value.trim());
  find("token-form").hidden = true;
  await refresh();
  if (!find("token-form").hidden) return;
  find("token").value = "";
  tell("let-in");
  showView();
  find(`${chosen()}-name`).focus();
};

startFinding();
startAdding();
startBrowsing();
startExploring();
startStatistics();
startDropping();
hear("wanted", askForToken);
hear("changed", refresh);
hear("looked-for", ({ text, name }) => {
  location.hash = "#find";
  scrollTo(0, 0);
  find("find-name").focus();
  lookFor(text, name);
});
find("token-form").addEventListener("submit", letIn);
find("skip").addEventListener("click", (event) => {
  event.preventDefault();
  find("content").focus();
});
addEventListener("hashchange", moveTo);
showView();
refresh();
