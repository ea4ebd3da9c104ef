// After Run ▸ Run All Cells JupyterLab shows the end of a notebook, but a lesson is read from its beginning. This takes
// the reader there. It draws nothing, and does nothing if the reader runs cells one by one or has scrolled away.

function findVisibleNotebook() {
  const notebooks = document.querySelectorAll(".jp-NotebookPanel .jp-WindowedPanel-outer");
  return [...notebooks].find((notebook) => notebook.offsetParent !== null);
}

/** Whether Run All has taken the reader to the last cell: it is the active one, and on the screen. */
function isAtEnd(notebook) {
  const cells = notebook.querySelectorAll(".jp-Cell");
  const last = cells[cells.length - 1];
  if (!last || !last.classList.contains("jp-mod-active")) return false;
  return last.getBoundingClientRect().top < notebook.getBoundingClientRect().bottom;
}

function initialize() {
  const notebook = findVisibleNotebook();
  if (notebook && isAtEnd(notebook)) notebook.scrollTop = 0;
}

export default { initialize };
