// A run, live. Events come in order, each with its number. A number that is missing makes the page STALE: it loads where
// the run stands now, and goes on from there.

import { fetchPage, replacePart } from "./pages.js";

const AXIS = 1000;
const LEAST_BAR = 4;
const SVG = "http://www.w3.org/2000/svg";
const TICKS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
const MOST_TICKS = 6;
const OF_STEPS = new Set(["StepStarted", "StepCompleted", "StepFailed", "StepSkipped"]);
const STATUS = { StepStarted: "RUNNING", StepCompleted: "SUCCESS", StepFailed: "FAILED", StepSkipped: "SKIPPED" };
const WORDS = { loaded: "loaded", rows_updated: "changed", rows_created: "created", rows_deleted: "deleted", rows_written: "written" };

const part = () => document.getElementById("run");
const runId = part().dataset.run;
let seen = Number(part().dataset.seq);
let source = null;
let resyncing = null;
let skew = 0;

function say(text) {
  const live = document.getElementById("live");
  if (live && live.textContent !== text) live.textContent = text;
}

function markStale(isStale) {
  const badge = document.getElementById("stale");
  if (badge) badge.hidden = !isStale;
}

function isStale() {
  return document.getElementById("stale")?.hidden === false;
}

async function resync() {
  if (resyncing) return resyncing;
  resyncing = (async () => {
    for (let wait = 300; ; wait = Math.min(wait * 2, 10000)) {
      try {
        const unfolded = document.getElementById("history")?.open;
        const wasStale = isStale();
        const page = await fetchPage(`/runs/${encodeURIComponent(runId)}`);
        const focused = document.activeElement?.dataset?.signal;
        if (replacePart("run", page)) {
          seen = Math.max(Number(part().dataset.seq), 0);
          if (unfolded) document.getElementById("history").open = true;
          markStale(false);
          enhance();
          if (focused) document.querySelector(`[data-signal="${CSS.escape(focused)}"]`)?.focus();
          if (wasStale) say(`In step again, up to event ${seen}`);
          break;
        }
      } catch { /* The server is away; the next attempt comes. */ }
      await new Promise((done) => setTimeout(done, wait));
    }
    resyncing = null;
  })();
  return resyncing;
}

function duration(ms) {
  const seconds = ms / 1000;
  if (seconds < 0.0995) return `${Math.max(0, Math.round(ms))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (Math.round(seconds) < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds) % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function setStatus(row, status) {
  row.dataset.status = status;
  const told = document.createElement("span");
  told.className = `status ${status}`;
  told.textContent = status === "SUCCESS" ? "done" : status.toLowerCase();
  row.querySelector(".state").replaceChildren(told);
}

function setBar(row, began, ended) {
  const table = row.closest("table");
  if (!table.dataset.started) return;
  const start = Number(table.dataset.started);
  const span = Math.max(Number(table.dataset.span), ended - start, 1);
  if (span > Number(table.dataset.span)) rescale(table, span);
  const svg = row.querySelector("td.bar svg");
  const bar = svg.querySelector(".span") ?? svg.appendChild(document.createElementNS(SVG, "rect"));
  bar.setAttribute("class", "span");
  bar.setAttribute("x", Math.max(0, ((began - start) / span) * AXIS));
  bar.setAttribute("width", Math.max(LEAST_BAR, ((ended - began) / span) * AXIS));
  bar.setAttribute("y", 1);
  bar.setAttribute("height", 10);
}

function ticks(span) {
  const seconds = span / 1000;
  const every = TICKS_S.find((each) => seconds / each <= MOST_TICKS) ?? Infinity;
  const found = [];
  for (let second = every; second <= seconds; second += every) {
    const mark = document.createElementNS(SVG, "text");
    mark.setAttribute("x", `${(second / seconds) * 100}%`);
    mark.setAttribute("y", 12);
    mark.setAttribute("text-anchor", second / seconds > 0.96 ? "end" : "middle");
    mark.textContent = second < 60 ? `${second} s` : second % 60 ? `${Math.floor(second / 60)}:${String(second % 60).padStart(2, "0")}` : `${second / 60} min`;
    found.push(mark);
  }
  return found;
}

function rescale(table, span) {
  const factor = Number(table.dataset.span) / span;
  table.dataset.span = span;
  table.querySelector(".axis svg")?.replaceChildren(...ticks(span));
  for (const bar of table.querySelectorAll(".span")) {
    bar.setAttribute("x", bar.getAttribute("x") * factor);
    bar.setAttribute("width", Math.max(LEAST_BAR, bar.getAttribute("width") * factor));
  }
}

function outcome(row, event) {
  const data = event.event_data;
  if (event.event_type === "StepSkipped") return data.reason;
  if (event.event_type !== "StepCompleted") return "";
  const done = Object.entries(data.counts ?? {}).filter(([name, number]) => number && WORDS[name]);
  const text = done.map(([name, number]) => `${number.toLocaleString("en-US")} ${WORDS[name]}`).join(", ");
  return text || (row.querySelector(".kind").textContent === "output" ? "nothing written" : "nothing changed");
}

function applyToStep(row, event) {
  const moment = Date.parse(event.emitted_at);
  skew = Date.now() - moment;
  setStatus(row, STATUS[event.event_type]);
  if (event.event_type === "StepStarted") {
    row.dataset.began = moment;
    row.querySelector(".took").textContent = "";
  }
  const began = Number(row.dataset.began || moment);
  setBar(row, began, moment);
  row.querySelector(".what").textContent = outcome(row, event);
  if (event.event_type !== "StepStarted") row.querySelector(".took").textContent = duration(moment - began);
}

async function take(event) {
  if (event.run_seq <= seen) return;
  if (event.run_seq !== seen + 1) {
    markStale(true);
    say(`STALE: event ${seen + 1} is missing, loading where the run stands`);
    await resync();
    return;
  }
  seen = event.run_seq;
  const row = OF_STEPS.has(event.event_type) && document.querySelector(`tr[data-step="${CSS.escape(event.step_id)}"]`);
  if (!row) { await resync(); return; }
  applyToStep(row, event);
  say(`Live, up to event ${seen}`);
}

// Running bars grow between events.
setInterval(() => {
  for (const row of document.querySelectorAll('tr[data-status="RUNNING"]')) {
    const now = Date.now() - Math.max(0, skew);
    if (row.dataset.began) {
      setBar(row, Number(row.dataset.began), now);
      row.querySelector(".took").textContent = duration(now - Number(row.dataset.began));
    }
  }
}, 1000);

function listen() {
  source?.close();
  let queue = Promise.resolve();
  source = new EventSource(`/api/v1/runs/${encodeURIComponent(runId)}/events/stream?after=${seen}`);
  source.addEventListener("run-event", (message) => {
    queue = queue.then(() => take(JSON.parse(message.data)));
  });
  source.addEventListener("stale", (message) => {
    const gap = JSON.parse(message.data);
    markStale(true);
    say(`STALE: event ${gap.expected_seq} is missing`);
  });
  source.addEventListener("resumed", () => { queue = queue.then(resync); });
  source.addEventListener("end", () => {
    source.close();
    queue = queue.then(resync).then(() => say(""));
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED || isStale()) return;
    say("The connection is interrupted; trying again");
  });
  source.addEventListener("open", () => { if (!isStale()) say(`Live, up to event ${seen}`); });
}

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
  await resync();
  if (part().dataset.over === "false") listen();
}

const dialog = document.getElementById("signal");
const form = dialog?.querySelector("form");

function enhance() {
  for (const button of document.querySelectorAll("[data-signal]")) {
    button.addEventListener("click", () => {
      form.reset();
      form.elements.signal.value = button.dataset.signal;
      form.elements.step.value = button.dataset.step;
      document.getElementById("signal-title").textContent = button.dataset.title;
      document.getElementById("signal-meaning").textContent = button.dataset.meaning;
      document.getElementById("signal-problem").textContent = "";
      dialog.showModal();
      form.elements.reason.focus();
    });
  }
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
dialog?.querySelector("[data-close]").addEventListener("click", () => dialog.close());

enhance();
if (part().dataset.over === "false") listen();
