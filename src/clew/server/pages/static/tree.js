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

// What is folded on the screen is not on paper, so all is unfolded while it is printed.
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
