"use strict";
// Moves the elements that svg_plots.py drew: same paths, other axes. The plots are in the page as JSON.
(function () {
  const PAD = { left: 58, right: 14, top: 28, bottom: 46 };
  const BARE = 8; // above a plot whose rows have names
  const ROW = 46;
  const NAME = 44;
  const ABOVE = 5; // vertical lines begin this far above a row's dots, below its name
  const LETTER = 8.5;
  const SVG = document.querySelector("svg").namespaceURI;
  const plots = JSON.parse(document.getElementById("plots").textContent);

  function element(name, attributes, text) {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function scale(view, begin, end) {
    const low = view.log ? Math.log(view.low) : view.low;
    const high = view.log ? Math.log(view.high) : view.high;
    const outside = begin - 20 * Math.sign(end - begin);
    const project = (value) => {
      if (view.log && value <= 0) return outside;
      const share = ((view.log ? Math.log(value) : value) - low) / (high - low);
      return begin + (end - begin) * share;
    };
    project.invert = (pixel) => {
      const inside = low + ((pixel - begin) / (end - begin)) * (high - low);
      return view.log ? Math.exp(inside) : inside;
    };
    return project;
  }

  // The visible part of an axis at first, and after a switch to logarithms.
  function fullRange(axis, log) {
    return { log: log, low: log ? Math.max(axis.log_low, axis.low) : axis.low, high: axis.high };
  }

  function ticks(axis, view, most) {
    if (view.log) {
      const first = Math.floor(Math.log10(view.low));
      const last = Math.ceil(Math.log10(view.high));
      const fine = [];
      for (let power = first; power <= last; power++) {
        for (const step of [1, 2, 5]) {
          const value = Number((step * Math.pow(10, power)).toPrecision(12));
          if (value >= view.low && value <= view.high) fine.push(value);
        }
      }
      const coarse = fine.filter((value) => value.toExponential().startsWith("1e"));
      if (fine.length > 1 && fine.length <= 1.5 * most) return fine;
      const every = Math.ceil(coarse.length / (1.5 * most));
      if (coarse.length > 1) return coarse.filter((value, index) => index % every === 0);
    }
    const rough = (view.high - view.low) / most;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    let step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * (1 - 1e-9));
    if (axis.integer_ticks) step = Math.max(1, step);
    const values = [];
    for (let count = Math.ceil(view.low / step - 1e-9); count * step <= view.high + 1e-9 * step; count++) {
      values.push(count * step);
    }
    return values;
  }

  function formatTick(axis, value) {
    const shown = axis.percent ? 100 * value : value;
    const size = Math.abs(shown);
    const digits = size !== 0 && (size >= 1e7 || size < 1e-4) ? shown.toExponential(2) : String(Number(shown.toPrecision(6)));
    return axis.percent ? digits + "%" : digits;
  }

  function shorten(name, letters) {
    return name.length <= letters ? name : name.slice(0, letters - 1) + "…";
  }

  function drawVertical(x, frame) {
    return frame.stretches.map(([begin, end]) => "M" + x.toFixed(1) + " " + begin.toFixed(1) + "V" + end.toFixed(1)).join("");
  }

  function path(mark, across, down, frame) {
    const at = (x, y) => x.toFixed(1) + " " + y.toFixed(1);
    if (mark.shape === "vertical") return drawVertical(across(mark.x[0]), frame);
    if (mark.shape === "horizontal") return "M" + at(frame.left, down(mark.y[0])) + "H" + frame.right;
    if (mark.shape === "span") {
      const low = (across(mark.x[0]) - 1).toFixed(1);
      return "M" + low + " " + frame.top + "H" + (across(mark.x[1]) + 1).toFixed(1) + "V" + frame.bottom + "H" + low + "Z";
    }
    if (mark.shape === "line") return "M" + mark.x.map((x, i) => at(across(x), down(mark.y[i]))).join("L");
    if (mark.shape === "band") {
      const upper = mark.x.map((x, i) => at(across(x), down(mark.high[i])));
      const lower = mark.x.map((x, i) => at(across(x), down(mark.low[i])));
      return "M" + upper.concat(lower.reverse()).join("L") + "Z";
    }
    return mark.low.map((low, i) => interval(mark, i, across, down, at)).join("");
  }

  function interval(mark, i, across, down, at) {
    if (mark.interval_axis === "y") {
      const x = across(mark.x[i]);
      const ends = [down(mark.low[i]), down(mark.high[i])];
      return "M" + at(x, ends[0]) + "V" + ends[1].toFixed(1) + ends.map((y) => "M" + at(x - 4, y) + "h8").join("");
    }
    const y = down(mark.y[i]);
    const ends = [across(mark.low[i]), across(mark.high[i])];
    return "M" + at(ends[0], y) + "H" + ends[1].toFixed(1) + ends.map((x) => "M" + at(x, y - 4) + "v8").join("");
  }

  function makeInteractive(svg) {
    const plot = plots[Number(svg.dataset.plot)];
    const figure = svg.closest("figure");
    const tip = figure.querySelector(".tip");
    const axes = svg.querySelector(".axes");
    const names = svg.querySelector(".names");
    const groups = Array.from(svg.querySelector(".marks").children);
    const clip = svg.querySelector("clipPath rect");
    const ring = element("circle", { class: "chosen", visibility: "hidden" });
    const box = element("rect", { class: "drag", visibility: "hidden" });
    const named = plot.y.names.length > 0;
    const view = { x: fullRange(plot.x, plot.x.log), y: fullRange(plot.y, plot.y.log) };
    const dots = [];
    plot.marks.forEach((mark) => mark.tips.forEach((tip, i) => dots.push({ x: mark.x[i], y: mark.y[i], r: mark.radius[i], tip: tip })));
    let frame, across, down, chosen = null, from = null;

    svg.append(ring, box);
    svg.classList.add("interactive");
    figure.querySelector(".controls").hidden = false;

    function layout() {
      const width = Math.max(260, svg.parentNode.clientWidth);
      const top = named ? BARE : PAD.top;
      const height = named ? top + PAD.bottom + ROW * plot.y.names.length : Math.round(Math.min(400, Math.max(270, 0.56 * width)));
      frame = { left: named ? PAD.right : PAD.left, right: width - PAD.right, top: top, bottom: height - PAD.bottom };
      svg.setAttribute("viewBox", "0 0 " + width + " " + height);
      clip.setAttribute("width", frame.right - frame.left);
      clip.setAttribute("height", frame.bottom - frame.top);
      redraw();
    }

    function redraw() {
      across = scale(view.x, frame.left, frame.right);
      down = named ? scale(view.y, frame.top, frame.bottom) : scale(view.y, frame.bottom, frame.top);
      frame.stretches = named ? plot.y.names.map((_, row) => [down(row) - ABOVE, down(row) + ROW / 2]) : [[frame.top, frame.bottom]];
      drawAxes();
      plot.marks.forEach((mark, index) => {
        const group = groups[index];
        const line = group.querySelector("path");
        if (line) line.setAttribute("d", path(mark, across, down, frame));
        group.querySelectorAll("circle").forEach((circle, i) => {
          circle.setAttribute("cx", across(mark.x[i]).toFixed(1));
          circle.setAttribute("cy", down(mark.y[i]).toFixed(1));
        });
      });
      show(chosen);
    }

    function drawAxes() {
      const nodes = [];
      const put = (name, attributes, text) => nodes.push(element(name, attributes, text));
      for (const value of ticks(plot.x, view.x, Math.min(8, Math.round((frame.right - frame.left) / 85)))) {
        const x = across(value);
        put("path", { class: "grid", d: drawVertical(x, frame) });
        put("text", { class: "tick", x: x.toFixed(1), y: frame.bottom + 17 }, formatTick(plot.x, value));
      }
      for (const value of named ? [] : ticks(plot.y, view.y, 6)) {
        const y = down(value);
        put("path", { class: "grid", d: "M" + frame.left + " " + y.toFixed(1) + "H" + frame.right });
        put("text", { class: "side", x: frame.left - 7, y: (y + 4).toFixed(1) }, formatTick(plot.y, value));
      }
      const letters = Math.min(NAME, Math.floor((frame.right - frame.left) / LETTER));
      names.replaceChildren(...plot.y.names.map((name, row) => {
        return element("text", { class: "name", x: frame.left + 4, y: (down(row) - 9).toFixed(1) }, shorten(name, letters));
      }));
      put("path", { class: "base", d: "M" + frame.left + " " + frame.bottom + "H" + frame.right });
      put("text", { class: "label", x: frame.right, y: frame.bottom + 37 }, plot.x.label);
      put("text", { class: "head", x: PAD.right, y: 16 }, plot.y.label);
      axes.replaceChildren(...nodes);
    }

    function inside(x, y) {
      return x >= frame.left - 1 && x <= frame.right + 1 && y >= frame.top - 1 && y <= frame.bottom + 1;
    }

    function show(dot) {
      chosen = dot;
      const x = dot && across(dot.x);
      const y = dot && down(dot.y);
      const visible = dot !== null && inside(x, y);
      ring.setAttribute("visibility", visible ? "visible" : "hidden");
      tip.hidden = !visible;
      if (!visible) return;
      ring.setAttribute("cx", x.toFixed(1));
      ring.setAttribute("cy", y.toFixed(1));
      ring.setAttribute("r", dot.r + 3);
      tip.textContent = dot.tip;
      const width = svg.parentNode.clientWidth;
      tip.style.left = Math.max(0, Math.min(width - tip.offsetWidth, x - tip.offsetWidth / 2)) + "px";
      const above = y - tip.offsetHeight - dot.r - 8;
      tip.style.top = (above < 0 ? y + dot.r + 8 : above) + "px";
    }

    function nearest(x, y) {
      let best = null;
      let smallest = 48 * 48; // of dots on top of each other, the last one is visible
      for (const dot of dots) {
        const dx = across(dot.x) - x;
        const dy = down(dot.y) - y;
        const distance = dx * dx + dy * dy;
        if (inside(across(dot.x), down(dot.y)) && distance <= smallest) { best = dot; smallest = distance; }
      }
      return best;
    }

    function locate(event) {
      const bounds = svg.getBoundingClientRect();
      return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
    }

    function zoomTo(axis, name, low, high) {
      const range = view[name];
      if (range.log ? !(low > 0 && high / low > 1 + 1e-6) : !(high - low > 1e-9 * (axis.high - axis.low))) return;
      range.low = low;
      range.high = high;
    }

    function zoom(factor) {
      const middle = chosen || { x: plot.focus[0], y: plot.focus[1] };
      for (const name of named ? ["x"] : ["x", "y"]) {
        const to = name === "x" ? across : down;
        const ends = name === "x" ? [frame.left, frame.right] : named ? [frame.top, frame.bottom] : [frame.bottom, frame.top];
        const at = Math.min(Math.max(to(middle[name]), Math.min(...ends)), Math.max(...ends));
        zoomTo(plot[name], name, to.invert(at + (ends[0] - at) * factor), to.invert(at + (ends[1] - at) * factor));
      }
      redraw();
    }

    function reset() {
      view.x = fullRange(plot.x, view.x.log);
      view.y = fullRange(plot.y, view.y.log);
      show(null);
      redraw();
    }

    function select(to) {
      const x = [Math.min(from.x, to.x), Math.max(from.x, to.x)].map((v) => Math.min(Math.max(v, frame.left), frame.right));
      const y = [Math.min(from.y, to.y), Math.max(from.y, to.y)].map((v) => Math.min(Math.max(v, frame.top), frame.bottom));
      return named ? { x: x, y: [frame.top, frame.bottom] } : { x: x, y: y };
    }

    svg.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") { show(nearest(locate(event).x, locate(event).y)); return; }
      if (event.button !== 0 || !inside(locate(event).x, locate(event).y)) return;
      from = locate(event);
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      const to = locate(event);
      if (!from) { show(nearest(to.x, to.y)); return; }
      const part = select(to);
      box.setAttribute("visibility", "visible");
      box.setAttribute("x", part.x[0]);
      box.setAttribute("y", part.y[0]);
      box.setAttribute("width", part.x[1] - part.x[0]);
      box.setAttribute("height", part.y[1] - part.y[0]);
    });
    svg.addEventListener("pointerup", (event) => {
      if (!from) return;
      const part = select(locate(event));
      from = null;
      box.setAttribute("visibility", "hidden");
      // A small movement is a click, not a zoom.
      if (part.x[1] - part.x[0] < 8 || part.y[1] - part.y[0] < 8) return;
      zoomTo(plot.x, "x", across.invert(part.x[0]), across.invert(part.x[1]));
      if (!named) zoomTo(plot.y, "y", down.invert(part.y[1]), down.invert(part.y[0]));
      redraw();
    });
    svg.addEventListener("pointercancel", () => { from = null; box.setAttribute("visibility", "hidden"); });
    svg.addEventListener("pointerleave", (event) => { if (!from && event.pointerType !== "touch") show(null); });
    svg.addEventListener("dblclick", reset);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") show(null);
      if (!step) return;
      event.preventDefault();
      const order = dots.filter((dot) => inside(across(dot.x), down(dot.y))).sort((a, b) => a.x - b.x);
      const now = order.indexOf(chosen);
      const next = now < 0 ? (step > 0 ? 0 : order.length - 1) : Math.min(Math.max(now + step, 0), order.length - 1);
      show(order[next] || null);
    });
    figure.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", () => {
      if (button.dataset.zoom === "reset") reset();
      else zoom(button.dataset.zoom === "in" ? 0.5 : 2);
    }));
    figure.querySelectorAll("[data-log]").forEach((box) => box.addEventListener("change", () => {
      const name = box.dataset.log;
      view[name] = fullRange(plot[name], box.checked);
      redraw();
    }));
    window.addEventListener("resize", layout);
    layout();
  }

  document.querySelectorAll("svg.plot").forEach(makeInteractive);
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
})();
