// A run, live. The event stream only says that something has happened; the current state of the run comes as a
// fragment from the server, which alone interprets events.

import { fetchPart, morph } from "./pages.js";

const LOOK_AGAIN_MS = 2000;
const TICK_MS = 1000;
const LONGEST_WAIT_MS = 10000;
const REST = 4;

const part = document.getElementById("run");
const runId = part.dataset.run;
let heard = Number(part.dataset.seq);
let source = null;
let refreshing = null;
let isOutdated = false;
let isInterrupted = false;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const isOver = () => part.dataset.over === "true";

function say(text) {
  const live = document.getElementById("live");
  if (live.textContent !== text) live.textContent = text;
}

function markStale(missing) {
  document.getElementById("stale").hidden = false;
  say(`STALE: event ${missing} is missing`);
}

// One fragment at a time. Events that arrive meanwhile trigger another one, after a delay that grows with its cost.
function refresh() {
  isOutdated = true;
  refreshing ??= (async () => {
    while (isOutdated) {
      isOutdated = false;
      const began = performance.now();
      await show();
      await pause(Math.min(REST * (performance.now() - began), LONGEST_WAIT_MS));
    }
  })().finally(() => { refreshing = null; });
  return refreshing;
}

async function show() {
  for (let wait = 300; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      const fresh = await fetchPart("run", `/runs/${encodeURIComponent(runId)}/fragment`);
      if (!fresh) { location.reload(); return; }
      morph(part, fresh);
      heard = Math.max(heard, Number(part.dataset.seq));
      return;
    } catch { /* The server cannot be reached; a retry follows. */ }
    await pause(wait);
  }
}

function listen() {
  source?.close();
  source = new EventSource(`/api/v1/runs/${encodeURIComponent(runId)}/events/stream?after=${heard}`);
  source.addEventListener("run-event", (message) => {
    const seq = Number(message.lastEventId);
    if (seq <= heard) return;
    if (seq > heard + 1) markStale(heard + 1);
    heard = seq;
    refresh();
  });
  source.addEventListener("stale", refresh);
  source.addEventListener("resumed", refresh);
  source.addEventListener("end", () => { source.close(); refresh(); });
  source.addEventListener("open", () => {
    if (isInterrupted) refresh();
    isInterrupted = false;
  });
  source.addEventListener("error", async () => {
    isInterrupted = true;
    if (document.getElementById("stale").hidden) say("Connection lost; retrying");
    if (source.readyState !== EventSource.CLOSED) return;
    // The server has refused the stream: the run has ended, or a proxy has failed.
    await refresh();
    if (isOver()) return;
    await pause(LOOK_AGAIN_MS);
    if (source.readyState === EventSource.CLOSED) listen();
  });
}

// Totals move between events, and captures are made after the last one. Text that is selected stays as it is.
setInterval(() => {
  const isMoving = !isOver() || part.dataset.settling === "true";
  if (isMoving && !document.hidden && getSelection().isCollapsed) refresh();
}, LOOK_AGAIN_MS);

// The clock of a run goes on while the server is asked.
function inWords(ms) {
  const seconds = ms / 1000;
  if (seconds < 9.95) return seconds < 0.0995 ? `${Math.round(ms)} ms` : `${seconds.toFixed(1)} s`;
  if (Math.round(seconds) < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds) % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

let counted = null;
let countedAt = 0;
setInterval(() => {
  const clock = part.querySelector("[data-ticks]");
  if (!clock || !getSelection().isCollapsed) return;
  if (clock.dataset.ticks !== counted) {
    counted = clock.dataset.ticks;
    countedAt = performance.now();
  }
  clock.textContent = inWords(Number(counted) + performance.now() - countedAt);
}, TICK_MS);

function stepNumber(stepId) {
  if (!stepId) return null;
  return stepId === "load" ? 0 : Number(stepId);
}

async function send() {
  const problem = document.getElementById("signal-problem");
  problem.textContent = "";
  const fields = new FormData(form);
  const body = { signal: fields.get("signal"), reason: fields.get("reason") || null, step: stepNumber(fields.get("step")) };
  const answer = await fetch(`/api/v1/runs/${encodeURIComponent(runId)}/signals`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "X-CSRF-Token": document.querySelector("meta[name=csrf-token]")?.content ?? "",
    },
    body: JSON.stringify(body),
  }).catch(() => null);
  const told = answer ? await answer.json().catch(() => ({})) : {};
  if (!answer?.ok || told.accepted === false) {
    problem.textContent = told.detail ?? told.error?.message ?? "The server did not answer.";
    return;
  }
  dialog.close();
  if (told.new_run_id) { location.assign(`/runs/${encodeURIComponent(told.new_run_id)}`); return; }
  await refresh();
  if (!isOver()) listen();
}

const dialog = document.getElementById("signal");
const form = dialog?.querySelector("form");

// The part remains while its content changes, so it handles the clicks of all its buttons.
part.addEventListener("click", (event) => {
  const button = event.target.closest("[data-signal]");
  if (!button) return;
  form.reset();
  form.elements.signal.value = button.dataset.signal;
  form.elements.step.value = button.dataset.step;
  document.getElementById("signal-title").textContent = button.dataset.title;
  document.getElementById("signal-meaning").textContent = button.dataset.meaning;
  document.getElementById("signal-problem").textContent = "";
  const sends = form.querySelector("button:not([type])");
  sends.className = button.classList.contains("grave") ? "grave" : "primary";
  dialog.showModal();
  form.elements.reason.focus();
});

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
dialog?.querySelector("[data-close]").addEventListener("click", () => dialog.close());

if (!isOver()) listen();
