// The page: opens the view that the address asks for, and refreshes it when the server announces changes.

import { CampaignView } from "./campaign_view.js";
import { fill } from "./elements.js";
import { LiveChoice, LiveView } from "./live_view.js";
import { themeButton } from "./palette.js";
import { RunTable } from "./run_table.js";
import { RunView } from "./run_view.js";
import { tellTrouble } from "./session.js";
import { watch } from "./watch.js";

const content = document.getElementById("content");
const connection = document.getElementById("connection");
let view = null;
// Changes while the page is hidden are loaded once, when it becomes visible.
let missed = false;

/** The view that an address such as #/run/0123 asks for. */
function viewOf(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  const [, name = "", id = ""] = path.split("/");
  if (name === "run" && id) return ["runs", new RunView(encodeURIComponent(id))];
  if (name === "live") return ["live", id ? new LiveView(encodeURIComponent(id)) : new LiveChoice()];
  if (name === "campaign") return ["campaign", new CampaignView()];
  return ["runs", new RunTable(Object.fromEntries(new URLSearchParams(query)))];
}

function show() {
  // The link that skips to the content is not the address of a view.
  if (location.hash === "#content") return;
  view?.close();
  tellTrouble("");
  const [name, next] = viewOf(location.hash);
  const isFirst = view === null;
  view = next;
  document.title = `${view.title} · Orienteer`;
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  fill(content, view.whole);
  window.scrollTo(0, 0);
  if (!isFirst) content.focus({ preventScroll: true });
  view.refresh();
}

function changed(ids) {
  if (document.hidden) missed = true;
  else view.changed(ids);
}

function connected({ state, seconds }) {
  const isOpen = state === "open";
  connection.className = isOpen ? "open" : "gone";
  connection.textContent = isOpen ? "connected" : `server gone, trying again in ${Math.max(1, Math.round(seconds))} s`;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || !missed) return;
  missed = false;
  view.changed(null);
});

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, dialog");
  const search = document.querySelector("input[type=search]");
  if (event.key !== "/" || isTyping || !search) return;
  event.preventDefault();
  search.focus();
});

themeButton(document.getElementById("theme"));
window.addEventListener("hashchange", show);
show();
watch(changed, connected);
