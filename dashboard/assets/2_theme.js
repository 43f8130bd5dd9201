/* Light or dark: the reader's choice, else the system's. Set before the first paint. */
(function () {
  "use strict";
  const root = document.documentElement;
  let stored = null;
  try {
    stored = localStorage.getItem("groundspeed-theme");
  } catch (error) {
    stored = null; /* storage is off, or the page is a file */
  }
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = (theme) => root.setAttribute("data-theme", theme);
  apply(stored || (system.matches ? "dark" : "light"));
  system.addEventListener("change", (event) => {
    if (!stored) {
      apply(event.matches ? "dark" : "light");
    }
  });
  document.addEventListener("click", function (event) {
    if (!event.target.closest || !event.target.closest("[data-theme-switch]")) {
      return;
    }
    stored = root.getAttribute("data-theme") === "dark" ? "light" : "dark";
    apply(stored);
    try {
      localStorage.setItem("groundspeed-theme", stored);
    } catch (error) {
      window.gs.say("This browser keeps no settings: the theme lasts until the page is closed.");
    }
  });
})();
