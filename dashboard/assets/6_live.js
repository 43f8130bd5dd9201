/* New results appear without a reload. The server is asked for its revision once a second while the page is seen;
   only a changed one makes Dash draw, and the reader's place, open parts, zoom and table filters stay. */
(function () {
  "use strict";
  if (document.documentElement.hasAttribute("data-offline")) {
    return;
  }
  const PERIOD = 1000;
  let told = null;
  let failures = 0;

  async function ask() {
    if (document.hidden || !document.querySelector("[data-base]")) {
      return;
    }
    try {
      const answer = await fetch(window.gs.base() + "api/revision", { cache: "no-store" });
      if (!answer.ok) {
        throw new Error("status " + answer.status);
      }
      const revision = (await answer.json()).revision;
      if (failures) {
        window.gs.say("Connected again.");
      }
      failures = 0;
      document.body.classList.remove("disconnected");
      if (window.gs.revision && revision !== window.gs.revision && revision !== told) {
        told = revision; /* once, though the answer takes longer than a period */
        window.dash_clientside.set_props("revision", { data: revision });
        if (revision.split(" ")[0] !== window.gs.revision.split(" ")[0]) {
          window.gs.say("New results are shown.");
        }
      }
    } catch (error) {
      failures += 1;
      if (failures === 3) {
        document.body.classList.add("disconnected");
        window.gs.say("The dashboard's server does not answer; what is shown may be old.");
      }
    }
  }

  (async function loop() {
    for (;;) {
      await ask();
      await new Promise((wake) => setTimeout(wake, failures ? PERIOD * Math.min(failures, 10) : PERIOD));
    }
  })();
})();
