/* Choices: {name, label, options: [[value, text]], chosen, default, clears}. A native <select>, which keyboards, phones
   and screen readers know; its change is handled in 1_state.js. */
(function () {
  "use strict";
  const element = window.gs.element;

  window.gs.mount("data-select", function (host, data) {
    let select = host.querySelector("select");
    const options = JSON.stringify(data.options);
    if (!select || select.dataset.param !== data.name || host.gsOptions !== options) {
      const had = select && select === document.activeElement;
      select = element("select", { id: "choose-" + data.name }, data.options.map(
        ([value, text]) => new Option(text, value)));
      host.gsOptions = options;
      host.replaceChildren(element("label", { class: "control" }, [element("span", {}, [data.label]), select]));
      if (had) {
        select.focus();
      }
    }
    select.dataset.param = data.name;
    select.dataset.default = data.default;
    select.dataset.clears = data.clears;
    select.value = data.chosen;
  });
})();
