// The pages work without this script. It adds keys, and keeps what is shown up to date: it takes
// the parts of the same page with an id from the server again. It never makes markup of text.
"use strict";

// settle is how long a new card takes no keys: what is typed meanwhile was meant for the one before.
const settle = 700;
let quietUntil = 0;
const typing = (at) => at.closest("input, textarea, select") !== null;
const later = () => performance.now() >= quietUntil;
function changed() {
  quietUntil = performance.now() + settle;
  delete document.body.dataset.keys;
  setTimeout(() => { if (later()) document.body.dataset.keys = ""; }, settle + 1);
}
changed();

// load asks for this page. An answer of type document runs no script.
function load() {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("GET", location.pathname + location.search);
    request.setRequestHeader("Toolhost-Live", "page");
    request.responseType = "document";
    request.timeout = 20000;
    request.onload = () => (request.status < 500 && request.response ? done(request.response) : failed());
    request.onerror = request.ontimeout = failed;
    request.send();
  });
}

// busy reports whether a person fills in a part: it must not change under the hands.
function busy(part) {
  const fields = part.querySelectorAll("textarea, input:not([type=hidden]), select");
  return part.contains(document.activeElement) && typing(document.activeElement) ||
    [...fields].some((f) => f.type === "checkbox" || f.type === "radio" ? f.checked !== f.defaultChecked : f.tagName === "SELECT" ? [...f.options].some((o) => o.selected !== o.defaultSelected) : f.value !== f.defaultValue);
}

// take replaces one part of the page if it has changed.
function take(part, fresh) {
  if (!fresh || part.outerHTML === fresh.outerHTML) return;
  if (part.id === "card") {
    // The card that a person reads stays, unless it was decided: then it shows by whom.
    const same = part.dataset.id === fresh.dataset.id && part.dataset.state === fresh.dataset.state;
    if (same && busy(part)) return;
    if (part.dataset.id !== fresh.dataset.id) return;
    if (!same) changed();
  }
  const kept = new Set([...part.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value));
  const focused = part.contains(document.activeElement) && document.activeElement;
  const next = document.importNode(fresh, true);
  for (const box of next.querySelectorAll("input[type=checkbox]")) if (kept.has(box.value)) box.checked = true;
  for (const open of part.querySelectorAll("details[open]")) {
    const match = [...next.querySelectorAll("details")].find((d) => d.className === open.className && (d.id || "") === (open.id || ""));
    if (match) match.open = true;
  }
  part.replaceWith(next);
  if (focused) {
    const again = focused.value ? next.querySelector(`[value="${CSS.escape(focused.value)}"]`) : focused.getAttribute("href") && next.querySelector(`[href="${CSS.escape(focused.getAttribute("href"))}"]`);
    (again || document.getElementById("main")).focus({ preventScroll: true });
  }
}

let loading = false, again = false;
async function refresh() {
  if (loading) { again = true; return; }
  loading = true;
  try {
    do {
      again = false;
      const page = await load();
      if (!page.body.hasAttribute("data-live")) { location.reload(); return; } // the login has ended
      // No card yet, and a call waits now: the whole page shows it. So does one whose card is gone.
      if (!document.getElementById("card") && page.getElementById("card") && !document.querySelector("dialog[open]")) {
        document.getElementById("main").replaceWith(document.importNode(page.getElementById("main"), true));
        changed();
      } else {
        const card = document.getElementById("card"), fresh = page.getElementById("card");
        if (location.pathname === "/" && card && (!fresh || fresh.dataset.id !== card.dataset.id)) await shown(card);
        for (const part of document.querySelectorAll("main [id], #nav")) {
          if (part.isConnected && !part.parentElement.closest("main [id]") && part.id !== "message") take(part, page.getElementById(part.id));
        }
      }
      document.title = page.title;
    } while (again);
  } catch { /* the stream tells when the host is back */ } finally { loading = false; }
}

// shown shows what became of a card that waits no more, until the person goes on.
async function shown(card) {
  const request = new XMLHttpRequest();
  await new Promise((done) => {
    request.open("GET", "/approvals/" + encodeURIComponent(card.dataset.id));
    request.setRequestHeader("Toolhost-Live", "page");
    request.responseType = "document";
    request.onloadend = done;
    request.send();
  });
  const fresh = request.response && request.response.getElementById("card");
  if (fresh && card.isConnected) take(card, fresh);
}

// follow listens for events of the host, and catches up after each connection.
let soon = 0, lost = 0;
function follow() {
  const stream = new EventSource("/events");
  const bar = document.getElementById("connection");
  stream.onopen = () => {
    lost = 0;
    bar.hidden = true;
    document.body.dataset.connected = "";
    refresh();
  };
  stream.onmessage = () => {
    clearTimeout(soon);
    soon = setTimeout(refresh, 20);
  };
  stream.onerror = () => {
    delete document.body.dataset.connected;
    if (!lost) { lost = Date.now(); bar.querySelector("time").textContent = new Date().toLocaleTimeString(); }
    bar.hidden = false;
    if (stream.readyState === EventSource.CLOSED) { // refused: by a host that starts, or the login has ended
      stream.close();
      setTimeout(() => { refresh(); follow(); }, 1000);
    }
  };
  addEventListener("pagehide", () => stream.close(), { once: true });
}
if (document.body.hasAttribute("data-live")) follow();
addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });

// step goes to the next or the previous call of the list.
function step(by) {
  const links = [...document.querySelectorAll("#waiting .list a")];
  const at = links.findIndex((a) => a.hasAttribute("aria-current"));
  const to = links[Math.min(links.length - 1, Math.max(0, at + by))];
  if (to && to !== links[at]) to.click();
}

const keys = {
  y: () => later() && document.querySelector("#approve button")?.click(),
  n: () => later() && document.getElementById("message")?.focus(),
  a: () => {
    const scope = document.getElementById("scope");
    if (!scope || !later()) return;
    scope.open = true;
    scope.querySelector("input:not([type=hidden])")?.focus();
  },
  j: () => step(1),
  k: () => step(-1),
  x: () => document.querySelector("#waiting li.here input:not(:disabled)")?.click(),
  "?": () => { const help = document.getElementById("help"); if (!help.open) help.showModal(); },
};
// A key that did something is not typed into the field that has the focus now.
let pressed = "";
addEventListener("keypress", (e) => { if (pressed) e.preventDefault(); });
addEventListener("keyup", () => { pressed = ""; });
addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || e.repeat) return;
  if (e.key === "Escape" && typing(e.target)) { e.target.blur(); return; }
  if (e.target.id === "message" && e.key === "Enter" && !e.shiftKey && e.target.form.id === "reject") {
    e.preventDefault();
    e.target.form.requestSubmit();
    return;
  }
  const box = e.target.matches?.("input[type=checkbox], input[type=radio]");
  if (typing(e.target) && !box || document.querySelector("dialog[open]")) return;
  const key = Object.hasOwn(keys, e.key) && keys[e.key];
  if (key) { e.preventDefault(); pressed = e.key; key(); }
});
// A decision is sent once, also if the button is pressed twice.
addEventListener("submit", (e) => {
  if (e.target.dataset.sent) { e.preventDefault(); return; }
  if (e.target.method === "post") e.target.dataset.sent = "1";
});
