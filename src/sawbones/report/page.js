// Draws the embedded figures in the colours of the style sheet, again whenever the screen turns light or dark.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const touch = matchMedia("(pointer: coarse)").matches;

  // "@line" -> the value of --line, in every property whose name speaks of colour.
  function painted(value, styles, isColour) {
    if (Array.isArray(value)) return value.map((item) => painted(item, styles, isColour));
    if (value && typeof value === "object") {
      const copy = {};
      for (const key of Object.keys(value)) copy[key] = painted(value[key], styles, /color/.test(key));
      return copy;
    }
    if (isColour && typeof value === "string" && value[0] === "@") return styles.getPropertyValue("--" + value.slice(1)).trim();
    return value;
  }

  function draw() {
    const styles = getComputedStyle(document.documentElement);
    const drawn = [];
    for (const place of document.querySelectorAll(".plot")) {
      const figure = painted(figures[place.dataset.figure], styles, false);
      figure.layout.font.family = getComputedStyle(document.body).fontFamily;
      // A finger that drags over a plot wants to scroll the page.
      if (touch) figure.layout.dragmode = false;
      const settings = { responsive: true, displayModeBar: false };
      drawn.push(Plotly.react(place, figure.data, figure.layout, settings));
    }
    return Promise.all(drawn).then(() => { document.body.dataset.drawn = drawn.length; });
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
