/* Matrices: {name, corner, rows: [[title, href]], columns: [[title, colour]], cells: {"row,column": cell}} where a cell
   is {text, kind, below, href, hint, best, paint: [light, light ink, dark, dark ink]}. */
(function () {
  "use strict";
  const element = window.gs.element;

  function cellNode(cell) {
    if (!cell) {
      return element("td", { class: "cell none", title: "not run" });
    }
    const parts = [element("span", { class: "main" }, [(cell.best ? "★ " : "") + cell.text])];
    if (cell.below) {
      parts.push(element("span", { class: "below" }, [cell.below]));
    }
    const inner = element(cell.href ? "a" : "span", { href: cell.href, title: cell.hint }, parts);
    const node = element("td", { class: ["cell", cell.kind, cell.best ? "best" : "", cell.paint ? "painted" : ""]
      .filter(Boolean).join(" ") }, [inner]);
    if (cell.paint) {
      ["--light", "--light-ink", "--dark", "--dark-ink"].forEach((name, i) => node.style.setProperty(name, cell.paint[i]));
    }
    return node;
  }

  /* A case may be broken after a comma: "M=4096," is a word, "M=40" is not. */
  function breakable(title) {
    return title.split(/(?<=,)/).flatMap((part, i) => i ? [element("wbr"), part] : [part]);
  }

  function head(title, colour) {
    const swatch = element("span", { "aria-hidden": "true" }, ["● "]);
    swatch.style.color = colour;
    return element("th", { scope: "col", title: title }, [swatch, title]);
  }

  window.gs.mount("data-matrix", function (host, data) {
    const top = element("tr", {}, [element("th", { scope: "col" }, [data.corner]),
      ...data.columns.map(([title, colour]) => head(title, colour))]);
    const body = data.rows.map(([title, href], row) => element("tr", {}, [
      element("th", { scope: "row" }, href ? [element("a", { href: href }, breakable(title))] : breakable(title)),
      ...data.columns.map((_, column) => cellNode(data.cells[row + "," + column]))]));
    const scroller = host.querySelector(".scroll");
    const left = scroller ? scroller.scrollLeft : 0;
    host.replaceChildren(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": data.name }, [
      element("table", { class: "matrix" }, [element("caption", { class: "hidden" }, [data.name]),
        element("thead", {}, [top]), element("tbody", {}, body)])]));
    host.firstChild.scrollLeft = left;
  });
})();
