/* The view is its URL. Links push it, controls replace it, and both tell Dash through the store "query". */
(function () {
  "use strict";
  const gs = (window.gs = window.gs || {});
  const offline = document.documentElement.hasAttribute("data-offline");

  gs.base = function () {
    const root = document.querySelector("[data-base]");
    return root ? root.dataset.base : "/";
  };

  gs.view = () => ({ path: location.pathname, search: location.search });

  gs.publish = () => window.dash_clientside.set_props("query", { data: gs.view() });

  /* Go to a link as a click on it would. */
  gs.follow = function (href) {
    if (offline) {
      gs.showOffline(href);
      return;
    }
    const url = new URL(href, location.href);
    const samePage = url.pathname === location.pathname;
    history.pushState(null, "", url.pathname + url.search);
    gs.publish();
    if (!samePage) {
      window.scrollTo(0, 0);
    }
  };

  function internal(link) {
    return link.origin === location.origin && link.pathname.startsWith(gs.base()) && !link.target &&
      !link.hasAttribute("download") && !link.pathname.startsWith(gs.base() + "api/");
  }

  document.addEventListener("click", function (event) {
    const link = event.target.closest && event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey ||
        event.altKey) {
      return;
    }
    if (link.getAttribute("href").startsWith("#")) {
      return; /* the skip link, and in an offline file every view */
    }
    if (!offline && internal(link)) {
      event.preventDefault();
      gs.follow(link.href);
    }
  });

  /* <select data-param="metric"> and <input data-param="find">: a control changes one parameter in place. */
  document.addEventListener("change", function (event) {
    const control = event.target.closest && event.target.closest("[data-param]");
    if (!control || offline) {
      return;
    }
    const query = new URLSearchParams(location.search);
    const name = control.dataset.param;
    if (control.value === (control.dataset.default || "")) {
      query.delete(name);
    } else {
      query.set(name, control.value);
    }
    (control.dataset.clears || "").split(" ").filter(Boolean).forEach((other) => query.delete(other));
    const search = query.toString();
    history.replaceState(null, "", location.pathname + (search ? "?" + search : ""));
    gs.publish();
  });

  if (!offline) {
    window.addEventListener("popstate", gs.publish);
  }

  document.addEventListener("click", function (event) {
    const button = event.target.closest && event.target.closest("[data-copy]");
    if (!button) {
      return;
    }
    const text = button.dataset.copy === "link" ? location.href : button.dataset.copy;
    copy(text).then(function () {
      gs.say("Copied.");
      const before = button.textContent;
      button.textContent = "Copied ✓";
      setTimeout(() => { button.textContent = before; }, 1500);
    });
  });

  function copy(text) {
    if (navigator.clipboard && window.isSecureContext) {
      return navigator.clipboard.writeText(text);
    }
    const area = document.createElement("textarea"); /* plain http to another machine has no clipboard interface */
    area.value = text;
    document.body.appendChild(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    return Promise.resolve();
  }

  /* Say something to everyone: on screen and to a screen reader, without moving the focus. */
  gs.say = function (text) {
    const region = document.getElementById("say");
    if (region) {
      region.textContent = text;
      clearTimeout(gs.sayTimer);
      gs.sayTimer = setTimeout(() => { region.textContent = ""; }, 4000);
    }
  };

  const clientside = (window.dash_clientside = window.dash_clientside || {});
  clientside.gs = {
    start: () => gs.view(),
    /* A click on a point goes to the link the point carries. */
    follow: function () {
      const triggered = clientside.callback_context.triggered[0];
      const points = triggered && triggered.value && triggered.value.points;
      const data = points && points.length ? points[0].customdata : null;
      const href = Array.isArray(data) ? data[0] : data;
      if (typeof href === "string" && href) {
        gs.follow(href);
      }
      return clientside.no_update;
    },
  };
})();
