// A lesson's notebook in JupyterLab: its folded cells are quiet (lesson_page.css), and after Run ▸ Run All Cells, which
// shows the end of a notebook, the reader is taken to its beginning. It draws nothing, and does not scroll if the reader
// runs cells one by one or has scrolled away.

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
  if (!notebook) return;
  notebook.closest(".jp-NotebookPanel").classList.add("fl-lesson");
  if (isAtEnd(notebook)) notebook.scrollTop = 0;
}

export default { initialize };
