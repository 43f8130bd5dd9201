/* What pages hand over as data, scripts draw: one element with data-table, data-matrix or data-select each.

   Dash spends a millisecond and more on every component it draws, and a matrix of 50 cases by 12 implementations would
   be 2,500 of them. It also lets an exported file, which has no Dash, draw the same things by the same code. */
(function () {
  "use strict";
  const gs = (window.gs = window.gs || {});
  const builders = {};

  /* Call build(element, data) whenever an element with this attribute appears or its value changes. */
  gs.mount = function (attribute, build) {
    builders[attribute] = build;
    document.querySelectorAll("[" + attribute + "]").forEach((host) => ready(host, attribute));
  };

  /* What stands in a closed <details> is drawn when it is opened. */
  function ready(host, attribute) {
    const details = host.closest("details");
    if (details && !details.open) {
      return;
    }
    const source = host.getAttribute(attribute);
    if (host.gsSource !== source) {
      host.gsSource = source;
      builders[attribute](host, JSON.parse(source));
    }
  }

  function readyBelow(node) {
    Object.keys(builders).forEach(function (attribute) {
      if (node.hasAttribute && node.hasAttribute(attribute)) {
        ready(node, attribute);
      }
      node.querySelectorAll("[" + attribute + "]").forEach((host) => ready(host, attribute));
    });
  }

  document.addEventListener("toggle", function (event) {
    if (event.target.open) {
      readyBelow(event.target);
    }
  }, true);

  new MutationObserver(function (changes) {
    changes.forEach(function (change) {
      if (change.type === "attributes") {
        ready(change.target, change.attributeName);
        return;
      }
      change.addedNodes.forEach(function (node) {
        if (node.nodeType === Node.ELEMENT_NODE && node.isConnected) {
          readyBelow(node);
        }
      });
    });
  }).observe(document.documentElement, { childList: true, subtree: true, attributes: true,
    attributeFilter: ["data-table", "data-matrix", "data-select"] });

  gs.element = function (tag, attributes, children) {
    const node = document.createElement(tag);
    Object.entries(attributes || {}).forEach(function ([name, value]) {
      if (value !== "" && value !== null && value !== undefined) {
        node.setAttribute(name, value);
      }
    });
    node.append(...(children || []));
    return node;
  };
})();
