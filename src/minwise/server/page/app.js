// Entry point: view navigation and the token form.

import { startAddForm } from "./add_form.js";
import { publish, refreshIndexInfo, subscribe, useToken } from "./api.js";
import { showCurveView, startCurveView } from "./curve_view.js";
import { showDocumentsView, startDocumentsView } from "./documents_view.js";
import { byId, setText, showError } from "./elements.js";
import { startIndexView } from "./index_view.js";
import { searchFor, startDropTarget, startSearchView } from "./search_view.js";

const VIEWS = ["find", "documents", "curve", "index"];

const UNKNOWN_TOKEN = "The server does not know this token. Make another one with: minwise token FILE --read --write";

const currentView = () => (VIEWS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "find");

const showView = () => {
  for (const name of VIEWS) byId(name).hidden = name !== currentView();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${currentView()}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${document.querySelector('nav a[aria-current="page"]').textContent} · minwise`;
  if (currentView() === "documents") showDocumentsView();
  if (currentView() === "curve") showCurveView();
};

// Moves the focus to the beginning of the new view.
const changeView = () => {
  showView();
  scrollTo(0, 0);
  byId(`${currentView()}-name`).focus({ preventScroll: true });
};

const refresh = async () => {
  try {
    await refreshIndexInfo();
    showError(byId("general-trouble"), null);
  } catch (error) {
    // The token form already shows it.
    showError(byId("general-trouble"), error.status === 401 ? null : error);
  }
};

const showTokenForm = ({ again }) => {
  const form = byId("token-form");
  if (form.contains(document.activeElement)) return;
  form.hidden = false;
  setText(byId("token-words"), again ? UNKNOWN_TOKEN : "");
  byId("token").focus();
  byId("token").select();
};

const submitToken = async (event) => {
  event.preventDefault();
  useToken(byId("token").value.trim());
  byId("token-form").hidden = true;
  await refresh();
  if (!byId("token-form").hidden) return;
  byId("token").value = "";
  publish("authorized");
  showView();
  byId(`${currentView()}-name`).focus();
};

startSearchView();
startAddForm();
startDocumentsView();
startCurveView();
startIndexView();
startDropTarget();
subscribe("token-needed", showTokenForm);
subscribe("documents-changed", refresh);
subscribe("search-for", ({ text, name }) => {
  location.hash = "#find";
  scrollTo(0, 0);
  byId("find-name").focus();
  searchFor(text, name);
});
byId("token-form").addEventListener("submit", submitToken);
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("content").focus();
});
addEventListener("hashchange", changeView);
showView();
refresh();
