// Light or dark, wherever the stage stands: the page, JupyterLab, VS Code, or what the system asks for.
export function isDark() {
  const page = document.documentElement.dataset.theme;
  if (page) return page === "dark";
  const lab = document.body.dataset.jpThemeLight;
  if (lab) return lab === "false";
  if (document.body.classList.contains("vscode-dark")) return true;
  if (document.body.classList.contains("vscode-light")) return false;
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Calls `changed()` in the frame after every change of the theme; returns a function that ends the watch.
    Not at once: JupyterLab hides its whole window while it changes its theme, and nothing has a size then. */
export function watchTheme(changed) {
  let frame = 0;
  const schedule = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(changed);
  };
  const observer = new MutationObserver(schedule);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", schedule);
  return () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
    system.removeEventListener("change", schedule);
  };
}
