// The static report: draws the embedded figures and puts copy buttons on code.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  let drawn = 0;
  for (const place of document.querySelectorAll(".plot[data-figure]")) {
    Sawbones.draw(place, figures[place.dataset.figure]);
    drawn += 1;
  }
  Sawbones.copyButtons();
  document.body.dataset.drawn = drawn;
})();
