"""The look: one style sheet for all panels, and a few pieces of HTML. Colours follow JupyterLab's theme; there is one accent."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from typing import Any

# Fixed, so that nothing jumps: a laptop screen of 720 lines gets 345 pixels, a projector of 1080 gets 518.
PICTURE_HEIGHT = "clamp(330px, 48vh, 600px)"
STYLE = """
.fl-root { --fl-ink: var(--jp-ui-font-color1, #1f2328); --fl-quiet: var(--jp-ui-font-color2, #59636e);
  --fl-rule: var(--jp-border-color2, #d5d9de); --fl-soft: var(--jp-layout-color2, #f3f4f6);
  --fl-accent: #0072B2; --fl-on-accent: #fff; --fl-bad: #b3261e;
  max-width: 1320px; color: var(--fl-ink); font-size: 13px; line-height: 1.45; padding: 2px 0 6px; overflow: visible; }
[data-jp-theme-light="false"] .fl-root, .vscode-dark .fl-root { --fl-accent: #56B4E9; --fl-on-accent: #06202f; --fl-bad: #ff8a80; }
[data-jp-theme-light="false"] .fl-root .fl-picture, .vscode-dark .fl-root .fl-picture { filter: invert(0.93) hue-rotate(180deg); }
.fl-root .widget-html, .fl-root .widget-html-content { overflow: visible; line-height: 1.45; color: inherit; font-size: inherit; }
.fl-style { display: none !important; }
.fl-body { display: flex; flex-flow: row wrap; gap: 12px 24px; align-items: flex-start; overflow: visible; }
.fl-controls { flex: 0 0 274px; overflow: visible; }
.fl-main { flex: 1 1 440px; min-width: 0; overflow: visible; }
.fl-controls > .jupyter-widgets { width: auto; margin: 1px 0; }
.fl-controls .widget-label { font-size: 13px; color: var(--fl-ink); }
.fl-controls .widget-readout { min-width: 42px; font-size: 13px; color: var(--fl-ink); }
.fl-ends { display: flex; justify-content: space-between; gap: 12px; font-size: 11.5px; line-height: 1.25; color: var(--fl-quiet);
  margin: -3px 4px 3px 66px; }
.fl-ends span:last-child { text-align: right; }
.fl-methods { border: 1px solid var(--fl-rule); border-radius: 4px; padding: 3px 8px; height: 163px; overflow: auto; display: block; }
.fl-methods .widget-checkbox { width: 100%; height: 22px; margin: 0; overflow: visible; }
.fl-methods .widget-label-basic { font-size: 13px; white-space: nowrap; }
.fl-heading { font-size: 12px; color: var(--fl-quiet); }
.fl-grid { display: grid; grid-template-columns: 1fr 1fr; gap: 2px 10px; overflow: visible; }
.fl-grid .jupyter-widgets { width: auto; margin: 1px 0; }
.fl-buttons { overflow: visible; gap: 8px; padding-top: 5px; }
.fl-buttons button { width: auto; flex: 1 1 0; margin: 0; border-radius: 4px; font-size: 13.5px; height: 32px; line-height: 30px; }
.fl-root button.fl-run { background: var(--fl-accent); color: var(--fl-on-accent); font-weight: 600; }
.fl-root button:disabled { opacity: 0.45; }
.fl-root .jupyter-button:focus-visible, .fl-root select:focus-visible, .fl-root input:focus-visible {
  outline: 2px solid var(--fl-accent) !important; outline-offset: 1px; }
.fl-progress { height: 6px; margin: 8px 0 2px !important; }
.fl-progress .progress { height: 6px; border-radius: 3px; background: var(--fl-soft); }
.fl-progress .progress-bar { background-color: var(--fl-accent) !important; }
.fl-root .fl-phase { min-height: 38px; font-size: 12.5px; color: var(--fl-quiet); font-variant-numeric: tabular-nums; }
.fl-error p { border-left: 3px solid var(--fl-bad); margin: 6px 0 0; padding: 2px 0 2px 9px; color: var(--fl-bad); font-weight: 500; }
.fl-root .fl-facts { font-size: 12.5px; color: var(--fl-ink); border-top: 1px solid var(--fl-rule); padding-top: 6px; min-height: 62px; }
.fl-tabs { width: auto; margin: 0; height: auto; border-bottom: 1px solid var(--fl-rule); overflow: visible; }
.fl-tabs .widget-inline-hbox, .fl-tabs > div { overflow: visible; flex-wrap: wrap; }
.fl-root .fl-tabs button { width: auto; background: none; border: none; box-shadow: none; border-bottom: 2px solid transparent;
  margin: 0 12px -1px 0; padding: 0; font-size: 13px; color: var(--fl-quiet); border-radius: 0; height: 30px; }
.fl-root .fl-tabs button:focus, .fl-root .fl-foot button:focus { box-shadow: none; outline: none; }
.fl-root .fl-tabs button:hover { color: var(--fl-ink); }
.fl-root .fl-tabs button.mod-active { color: var(--fl-ink); font-weight: 600; border-bottom-color: var(--fl-accent); }
.fl-root .fl-caption { font-size: 12px; color: var(--fl-quiet); height: 18px; overflow: hidden; margin: 7px 0 0; }
.fl-root .fl-caption p { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.fl-root .fl-sentence { font-size: 14px; height: 42px; overflow: auto; margin: 0; }
@media (max-width: 1500px) { .fl-root .fl-sentence { font-size: 13.5px; height: 60px; } }
.fl-root .fl-frame { margin: 0; }
.fl-sentence p, .fl-caption p, .fl-phase p, .fl-facts p { margin: 0; line-height: 1.45; }
.fl-frame, .fl-frame .widget-html-content { height: 100%; width: 100%; overflow: hidden; }
.fl-picture { display: block; height: 100%; width: 100%; object-fit: contain; object-position: left top; }
.fl-empty { height: 100%; display: flex; align-items: center; justify-content: center; text-align: center; color: var(--fl-quiet);
  border: 1px dashed var(--fl-rule); border-radius: 6px; font-size: 14px; padding: 0 12%; box-sizing: border-box; }
.fl-foot { overflow: visible; align-items: center; gap: 18px; }
.fl-foot button { width: auto; background: none; color: var(--fl-quiet); box-shadow: none; margin: 0; padding: 0 2px; }
.fl-root .fl-foot button.mod-active { background: none; box-shadow: none; color: var(--fl-ink); }
.fl-table { overflow: auto; max-height: 250px; }
.fl-root table { border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; margin: 2px 0; }
.fl-root th { text-align: left; font-weight: 600; color: var(--fl-quiet); white-space: nowrap; }
.fl-root td, .fl-root th { padding: 2px 16px 2px 0; border-bottom: 1px solid var(--fl-rule); background: none; vertical-align: top; }
.fl-root td.fl-number, .fl-root th.fl-number { text-align: right; }
.fl-drawer { margin-top: 12px; overflow: visible; }
.fl-runs { max-height: 230px; overflow: auto; display: block; }
.fl-row { align-items: center; height: 25px; border-bottom: 1px solid var(--fl-rule); overflow: visible; min-width: 640px; }
.fl-row .widget-checkbox { flex: 0 0 56px; width: 56px; margin: 0; height: 24px; }
.fl-row .widget-checkbox .widget-label-basic { height: 24px; line-height: 24px; font-size: 12.5px; color: var(--fl-quiet); }
.fl-row > .fl-pad { flex: 0 0 56px; }
.fl-row .widget-html { flex: 1 1 auto; margin: 0; height: 24px; }
.fl-cells { display: grid; grid-template-columns: 44px minmax(110px, 1.3fr) minmax(200px, 2.6fr) minmax(72px, 0.7fr) 74px 74px; gap: 12px;
  line-height: 24px; font-size: 12.5px; font-variant-numeric: tabular-nums; }
.fl-cells span { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.fl-cells .fl-bad { color: var(--fl-bad); grid-column: 4 / 7; }
.fl-head .fl-cells { color: var(--fl-quiet); font-weight: 600; }
.fl-right { text-align: right; }
.fl-code pre { background: var(--fl-soft); border-radius: 4px; padding: 8px 12px; margin: 6px 0; font-size: 12.5px; line-height: 1.5;
  white-space: pre-wrap; color: var(--fl-ink); }
.jp-OutputArea-child:has(.fl-live) + .jp-OutputArea-child .jp-RenderedImage { display: none; }
"""
# What a saved notebook needs where no kernel runs: the dead widget's error line and the style's own empty line are hidden.
SAVED_STYLE = """<style class="fl-saved">
.jp-OutputArea-child:has(.fl-live) + .jp-OutputArea-child .jp-RenderedImage { display: none; }
.jp-OutputArea-child:not(:has(.fl-live)):has(.jupyter-widgets):has(+ .jp-OutputArea-child + .jp-OutputArea-child .fl-saved) {
  display: none; }
.jp-OutputArea-child:has(.fl-saved) { display: none; }
</style>"""


def escape(text: Any) -> str:
    return html.escape(str(text))


def paragraph(text: str, role: str = "") -> str:
    attribute = f' role="{role}"' if role else ""
    return f"<p{attribute}>{html.escape(text)}</p>" if text else ""


def image(png: bytes, alt: str) -> str:
    data = base64.b64encode(png).decode()
    return f'<img class="fl-picture" alt="{html.escape(alt, quote=True)}" src="data:image/png;base64,{data}">'


def table(rows: Sequence[Mapping[str, Any]], caption: str = "") -> str:
    """Rows as an HTML table; numbers are set right."""
    if not rows:
        return paragraph("No numbers yet.")
    keys = list(dict.fromkeys(key for row in rows for key in row))

    def numeric(key: str) -> bool:
        return all(isinstance(row.get(key, 0), int | float) or str(row.get(key)).endswith(" %") for row in rows)

    style = {key: ' class="fl-number"' if numeric(key) else "" for key in keys}
    head = "".join(f'<th scope="col"{style[key]}>{html.escape(str(key))}</th>' for key in keys)
    body = "".join(
        "<tr>" + "".join(f"<td{style[key]}>{html.escape(text_of(row.get(key, '')))}</td>" for key in keys) + "</tr>"
        for row in rows
    )
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def text_of(value: Any) -> str:
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)
