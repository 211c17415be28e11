// An explanation: unfold everything, print everything, copy the link.

import { copyLinks } from "./pages.js";

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
