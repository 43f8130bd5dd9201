/* Tables: <div data-table='{"name", "columns", "rows"}'>. Sort, filter and CSV happen here, so that a table works in
   an offline file as it does on the server.

   A column is {title, kind: "text" | "number" | "link", hint}. A cell is a string; for a number [value, text]; for a
   link [text, href]. Rows are drawn in portions, so that 10,000 of them do not stall the page. */
(function () {
  "use strict";
  const PORTION = 100;
  const element = window.gs.element;

  const text = (cell, kind) => cell === null || cell === undefined ? "" :
    kind === "number" ? cell[1] : kind === "link" ? cell[0] : String(cell);
  const value = (cell, kind) => kind === "number" ? (cell ? cell[0] : null) : text(cell, kind).toLowerCase();

  function cellNode(cell, column) {
    const node = element("td", column.kind === "number" ? { class: "number" } : {});
    if (column.kind === "link" && cell && cell[1]) {
      node.append(element("a", { href: cell[1] }, [cell[0]]));
    } else {
      node.textContent = text(cell, column.kind);
    }
    return node;
  }

  function compare(a, b, kind, direction) {
    const left = value(a, kind);
    const right = value(b, kind);
    if (left === null || right === null) {
      return left === right ? 0 : left === null ? 1 : -1; /* absent values stay last either way */
    }
    const order = kind === "number" ? left - right : left.localeCompare(right, undefined, { numeric: true });
    return direction * order;
  }

  const UNITS = { "": 1, x: 1, "×": 1, "%": 0.01, ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, b: 1, kib: 1024,
    mib: 1048576, gib: 1073741824, mj: 1e-3, uj: 1e-6, "µj": 1e-6, j: 1, "gb/s": 1e9, "tb/s": 1e12, "gflop/s": 1e9,
    "tflop/s": 1e12 };

  /* "speedup>1.5" and "time<=20us" compare a column's numbers; anything else is looked for in the text. */
  function matcher(query, columns) {
    const tests = query.toLowerCase().split(/\s+/).filter(Boolean).map(function (word) {
      const bound = word.match(/^(?:(.+?))?(>=|<=|>|<|=)(-?\d+(?:\.\d+)?(?:e-?\d+)?)([^\d]*)$/);
      if (!bound || !(bound[4] in UNITS)) {
        return (row) => row.some((cell, i) => text(cell, columns[i].kind).toLowerCase().includes(word));
      }
      const limit = parseFloat(bound[3]) * UNITS[bound[4]];
      const holds = { ">": (x) => x > limit, "<": (x) => x < limit, ">=": (x) => x >= limit, "<=": (x) => x <= limit,
        "=": (x) => x === limit }[bound[2]];
      const named = (column) => !bound[1] || column.title.toLowerCase().replace(/\s+/g, "").includes(bound[1]);
      return (row) => row.some((cell, i) => {
        const shown = columns[i].kind === "number" && cell ? cell[0] : null;
        return named(columns[i]) && shown !== null && holds(shown);
      });
    });
    return (row) => tests.every((test) => test(row));
  }

  function csv(columns, rows) {
    const quote = (item) => {
      const plain = item === null || item === undefined ? "" : String(item);
      const safe = /^[=+@\t\r]/.test(plain) ? "'" + plain : plain; /* no formula for a spreadsheet to run */
      return /[",\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
    };
    const head = columns.map((column) => quote(column.csv || column.title)).join(",");
    const body = rows.map((row) => row.map((cell, i) =>
      quote(columns[i].kind === "number" ? (cell ? cell[0] : "") : text(cell, columns[i].kind))).join(","));
    return [head].concat(body).join("\n") + "\n";
  }

  function save(name, content) {
    const link = element("a", { href: URL.createObjectURL(new Blob([content], { type: "text/csv" })),
      download: name + ".csv" });
    document.body.append(link);
    link.click();
    setTimeout(() => { URL.revokeObjectURL(link.href); link.remove(); }, 0);
  }

  window.gs.mount("data-table", function (host, data) {
    const kept = host.gsName === data.name && host.gsView || { sort: data.sort ? data.sort[0] : -1, direction: data.sort ? data.sort[1] : 1,
      query: "", shown: PORTION };
    host.gsView = kept;
    host.gsName = data.name;
    const columns = data.columns;

    const input = element("input", { type: "search", placeholder: "Filter: words, speedup>2, time<9us", "aria-label":
      "Filter the table " + data.name });
    input.value = kept.query;
    const count = element("span", { class: "count", role: "status" });
    const download = element("button", { type: "button" }, ["CSV"]);
    download.setAttribute("aria-label", "Download " + data.name + " as CSV");
    const more = element("button", { type: "button", class: "more" });
    const head = element("tr");
    const body = element("tbody");
    const table = element("table", {}, [element("caption", { class: "hidden" }, [data.name]),
      element("thead", {}, [head]), body]);
    let selected = [];

    columns.forEach(function (column, index) {
      const button = element("button", { type: "button" }, [column.title]);
      if (column.hint) {
        button.title = column.hint;
      }
      button.addEventListener("click", function () {
        kept.direction = kept.sort === index ? -kept.direction : column.kind === "number" && column.large ? -1 : 1;
        kept.sort = index;
        draw();
      });
      head.append(element("th", { scope: "col", class: column.kind === "number" ? "number" : "" }, [button]));
    });

    function draw() {
      const matches = matcher(kept.query, columns);
      selected = data.rows.filter(matches);
      if (kept.sort >= 0 && kept.sort < columns.length) {
        const kind = columns[kept.sort].kind;
        selected = selected.slice().sort((a, b) => compare(a[kept.sort], b[kept.sort], kind, kept.direction));
      }
      Array.from(head.children).forEach((cell, index) => cell.setAttribute("aria-sort",
        index !== kept.sort ? "none" : kept.direction > 0 ? "ascending" : "descending"));
      const part = selected.slice(0, kept.shown);
      body.replaceChildren(...part.map((row) => element("tr", {}, row.map((cell, i) => cellNode(cell, columns[i])))));
      count.textContent = selected.length === data.rows.length ? data.rows.length + (data.rows.length === 1 ? " row" : " rows") :
        selected.length + " of " + data.rows.length + " rows";
      more.hidden = selected.length <= kept.shown;
      more.textContent = "Show " + Math.min(PORTION * 5, selected.length - kept.shown) + " more";
    }

    input.addEventListener("input", function () {
      kept.query = input.value;
      draw();
    });
    more.addEventListener("click", function () {
      kept.shown += PORTION * 5;
      draw();
    });
    download.addEventListener("click", () => save(data.name, csv(columns, selected)));
    draw();
    const scroller = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": data.name },
      [table]);
    host.replaceChildren(element("div", { class: "tools" }, [input, count, download]), scroller, more);
  });
})();
