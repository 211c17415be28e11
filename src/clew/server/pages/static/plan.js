// Column lineage on a plan: a column highlights the steps that set it and the datasets that it is derived from.

import { offerPictures } from "./pictures.js";

offerPictures();

const plan = document.querySelector("[data-plan]");
const told = document.querySelector("[data-origin]");
let kept = null;

// On a narrow screen, scroll to the steps, not to the datasets beside them.
const step = plan?.querySelector(".g-box.step");
if (step && plan.scrollWidth > plan.clientWidth) {
  plan.scrollLeft += step.getBoundingClientRect().left - plan.getBoundingClientRect().left - 16;
}

function show(chip) {
  const boxes = [...(plan?.querySelectorAll(".g-box") ?? [])];
  const column = chip?.dataset.column;
  const datasets = chip ? chip.dataset.datasets.split("|").filter(Boolean) : [];
  for (const box of boxes) {
    const lit = chip && (box.dataset.sets.split("|").includes(column) || datasets.includes(box.dataset.dataset));
    box.classList.toggle("lit", Boolean(lit));
    box.classList.toggle("dim", Boolean(chip) && !lit);
  }
  if (!chip) { told.textContent = "\u00a0"; return; }
  const influenced = chip.dataset.influenced ? `; rows are selected by ${chip.dataset.influenced}` : "";
  told.textContent = `${column} is derived from ${chip.dataset.derives}${influenced}`;
}

for (const chip of document.querySelectorAll("[data-chips] button")) {
  chip.addEventListener("pointerenter", () => show(chip));
  chip.addEventListener("focus", () => show(chip));
  chip.addEventListener("pointerleave", () => show(kept));
  chip.addEventListener("blur", () => show(kept));
  chip.addEventListener("click", () => {
    kept?.setAttribute("aria-pressed", "false");
    kept = kept === chip ? null : chip;
    kept?.setAttribute("aria-pressed", "true");
    show(kept);
  });
}
