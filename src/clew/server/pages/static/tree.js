// An explanation: unfold everything, print everything, copy the link.

import { copyLinks, fetchPart } from "./pages.js";

function folds(root) {
  return [...root.querySelectorAll("details")];
}

for (const button of document.querySelectorAll("[data-unfold]")) {
  const tree = document.getElementById(button.dataset.unfold);
  button.addEventListener("click", () => {
    const open = folds(tree).some((fold) => !fold.open);
    folds(tree).forEach((fold) => { fold.open = open; });
    button.textContent = open ? "Fold" : "Unfold all";
  });
}

// Folded parts would not be printed, so everything is unfolded for printing.
let folded = [];
window.addEventListener("beforeprint", () => {
  folded = folds(document).filter((fold) => !fold.open);
  folded.forEach((fold) => { fold.open = true; });
});
window.addEventListener("afterprint", () => {
  folded.forEach((fold) => { fold.open = false; });
  folded = [];
});

for (const button of document.querySelectorAll("[data-print]")) button.addEventListener("click", () => window.print());
copyLinks(document);

// More rows of a summary come piece by piece: the first are there within a second, and it can be stopped at any time.
const PIECES = [20, 40, 80];

async function addRows(control) {
  const target = Number(control.dataset.to);
  let rest = control.closest(".rest");
  let isStopped = false;
  const rows = rest.previousElementSibling;
  const told = document.createElement("span");
  told.setAttribute("role", "status");
  const stop = document.createElement("button");
  stop.type = "button";
  stop.className = "plain";
  stop.textContent = "Stop";
  stop.addEventListener("click", () => { isStopped = true; stop.disabled = true; });
  const progress = document.createElement("div");
  progress.className = "note progress no-print";
  progress.append(told, " ", stop);
  rest.after(progress);
  for (let turn = 0; rest && !isStopped && Number(rest.dataset.shown) < target; turn += 1) {
    const shown = Number(rest.dataset.shown);
    told.textContent = `${shown.toLocaleString("en")} of ${target.toLocaleString("en")} rows`;
    const verdict = document.querySelector("[data-verdict]");
    const address = new URL(rest.querySelector("[data-more]").dataset.more, location.href);
    address.searchParams.set("skip", shown);
    address.searchParams.set("top", Math.min(target, shown + PIECES[Math.min(turn, PIECES.length - 1)]));
    address.searchParams.set("verdict", verdict.dataset.verdict);
    const piece = await fetchPart("more", address).catch(() => null);
    if (!piece) { told.textContent = "The server did not answer; what is here stays."; stop.remove(); return; }
    rows.append(...piece.querySelector(".shares").children);
    verdict.replaceWith(piece.querySelector("[data-verdict]"));
    const next = piece.querySelector(":scope > .rest");
    if (next) rest.replaceWith(next); else rest.remove();
    rest = next;
  }
  progress.remove();
}

document.getElementById("tree").addEventListener("click", (event) => {
  const control = event.target.closest("[data-more]");
  if (!control || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (!control.closest(".rest").nextElementSibling?.classList.contains("progress")) addRows(control);
});
