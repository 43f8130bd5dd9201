/* Puts a drawn view on the screen by changing only what differs from the one before.

   Dash builds everything below a changed `children` anew: open tables would close, zoomed charts jump back, the focus
   would be lost, at every new result. Here the two component trees are compared, and properties are set where they
   differ; children are replaced only where the trees have other shapes. */
(function () {
  "use strict";
  const clientside = (window.dash_clientside = window.dash_clientside || {});
  const shown = {};

  const isComponent = (node) => node !== null && typeof node === "object" && "namespace" in node && "type" in node;
  const text = (value) => JSON.stringify(value === undefined ? null : value);
  const sameKind = (a, b) => isComponent(a) && isComponent(b) && a.type === b.type && a.namespace === b.namespace &&
    text(a.props.id) === text(b.props.id);

  /* A zoom belongs to the question that the reader zoomed into, and outlasts its refreshes. */
  function markQuestion(node) {
    if (Array.isArray(node)) {
      node.forEach(markQuestion);
    } else if (isComponent(node)) {
      if (node.type === "Graph") {
        node.props.figure.layout.uirevision = location.pathname + location.search;
      }
      markQuestion(node.props.children);
    }
  }

  function patch(before, after, path) {
    const changed = {};
    new Set([...Object.keys(before.props), ...Object.keys(after.props)]).forEach(function (name) {
      if (name !== "children" && text(before.props[name]) !== text(after.props[name])) {
        changed[name] = after.props[name] === undefined ? null : after.props[name];
      }
    });
    const inner = comparable(before.props.children, after.props.children);
    if (inner === null) {
      changed.children = after.props.children === undefined ? null : after.props.children;
    }
    if (Object.keys(changed).length) {
      clientside.set_props(path, changed);
    }
    (inner || []).forEach(([a, b, where]) => patch(a, b, path.concat(["props", "children"], where)));
  }

  /* The pairs of components to go on with; null where the children must be replaced. */
  function comparable(before, after) {
    if (isComponent(before) && isComponent(after)) {
      return sameKind(before, after) ? [[before, after, []]] : null;
    }
    if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
      const pairs = [];
      for (let i = 0; i < before.length; i += 1) {
        if (sameKind(before[i], after[i])) {
          pairs.push([before[i], after[i], [i]]);
        } else if (text(before[i]) !== text(after[i])) {
          return null;
        }
      }
      return pairs;
    }
    return text(before) === text(after) ? [] : null;
  }

  /* Where Dash keeps a component; without it (another Dash may keep it elsewhere) children are replaced whole. */
  function pathOf(id) {
    const store = (window.dash_stores || [])[0];
    return store ? store.getState().paths.strs[id] : null;
  }

  clientside.gs.show = function (view) {
    if (!view) {
      return clientside.no_update;
    }
    Object.keys(view.places).forEach(function (id) {
      const after = { namespace: "", type: "", props: { children: view.places[id] } };
      const path = pathOf(id);
      markQuestion(view.places[id]);
      if (id in shown && path) {
        patch(shown[id], after, path);
      } else {
        clientside.set_props(id, { children: view.places[id] });
      }
      shown[id] = after;
    });
    window.gs.revision = view.revision;
    document.title = view.title;
    return clientside.no_update;
  };
})();
