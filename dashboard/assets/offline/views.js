/* The views of an exported file: templates, shown by the fragment of the address. */
(function () {
  "use strict";
  const gs = window.gs;
  const templates = Array.from(document.querySelectorAll("template[data-title]"));
  const machines = JSON.parse(document.body.dataset.machines);
  const main = document.getElementById("main");
  const header = document.getElementById("header");
  const bar = document.getElementById("offline-bar");

  const byId = (id) => templates.find((template) => template.id === id);

  function link(template, current) {
    const a = document.createElement("a");
    a.href = "#" + template.id;
    a.textContent = template.dataset.title;
    if (template === current) {
      a.setAttribute("aria-current", "page");
    }
    return a;
  }

  function menu(current) {
    const machine = current.dataset.machine || machines[0].name;
    const own = templates.filter((t) => !t.dataset.machine || t.dataset.machine === machine);
    const pages = own.filter((t) => !t.dataset.operator);
    const nav = document.createElement("nav");
    nav.setAttribute("aria-label", "Pages");
    const list = document.createElement("ul");
    const firstOperator = own.findIndex((t) => t.dataset.title.includes(", history"));
    own.forEach(function (template, index) {
      if (firstOperator < 0 || index < firstOperator - 1 || !template.dataset.machine) {
        const item = document.createElement("li");
        item.append(link(template, current));
        list.append(item);
      }
    });
    nav.append(list);
    const brand = document.createElement("a");
    brand.className = "brand";
    brand.href = "#" + pages[0].id;
    brand.textContent = "▲ groundspeed";
    const side = document.createElement("div");
    side.className = "side";
    const device = document.createElement("span");
    device.className = "device";
    device.textContent = (machines.find((m) => m.name === machine) || {}).device || "";
    const theme = document.createElement("button");
    theme.type = "button";
    theme.setAttribute("data-theme-switch", "");
    theme.setAttribute("aria-label", "Switch between light and dark");
    theme.textContent = "◐";
    side.append(device, theme);
    header.replaceChildren(brand, nav, side);

    const choices = document.createElement("div");
    choices.className = "bar";
    choices.append(
      choice("Machine", machines.map((m) => [templates.find((t) => t.dataset.machine === m.name).id,
        m.name + " · " + m.device]), (templates.find((t) => t.dataset.machine === machine) || {}).id),
      choice("View", own.map((t) => [t.id, t.dataset.title]), current.id));
    bar.replaceChildren(choices);
  }

  function choice(label, options, chosen) {
    const wrapper = document.createElement("label");
    wrapper.className = "control";
    const name = document.createElement("span");
    name.textContent = label;
    const select = document.createElement("select");
    options.forEach(([value, text]) => select.append(new Option(text, value, false, value === chosen)));
    select.addEventListener("change", () => { location.hash = select.value; });
    wrapper.append(name, select);
    return wrapper;
  }

  function draw(node) {
    const data = JSON.parse(node.dataset.figure);
    window.Plotly.newPlot(node, data.figure.data, data.figure.layout, data.config).then(function () {
      node.on("plotly_click", function (event) {
        const target = event.points[0].customdata;
        if (typeof target === "string" && target.startsWith("#")) {
          location.hash = target.slice(1);
        }
      });
    });
  }

  function show() {
    const wanted = location.hash.slice(1);
    const template = byId(wanted) || templates[0];
    if (!template || (wanted && !byId(wanted))) {
      if (main.childElementCount) {
        return; /* an anchor within the view */
      }
    }
    main.replaceChildren(template.content.cloneNode(true));
    main.dataset.view = template.id;
    menu(template);
    document.title = template.dataset.title + " · groundspeed";
    main.querySelectorAll("[data-figure]").forEach(draw);
    window.scrollTo(0, 0);
  }

  gs.showOffline = (href) => { location.hash = href.replace(/^#/, ""); };
  window.addEventListener("hashchange", show);
  show();
})();
