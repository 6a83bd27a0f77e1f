// Click a column's header to sort by it. Without JavaScript the tables are complete, in the report's own order.
"use strict";
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  if (body.rows.length < 3) continue;
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      // Numeric cells carry the number itself; absent values are empty and stay at the end.
      const key = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
      const compare = (first, second) => {
        const [a, b] = [key(first), key(second)];
        if (a === "" || b === "") return (a === "") - (b === "");
        const order = head.classList.contains("number") ? a - b : a.localeCompare(b, undefined, { numeric: true });
        return descending ? -order : order;
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}
