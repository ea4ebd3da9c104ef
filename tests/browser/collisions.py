"""Words of a picture that lie on each other, or that reach over the edge of its frame."""

from __future__ import annotations

from playwright.sync_api import Locator

LEAST = 1.5  # pixels that two boxes of words must share in both directions to count as overlapping
COLLISIONS = """(view, least) => {
  const svg = view.querySelector('.fl-picture')?.shadowRoot?.querySelector('svg');
  if (!svg) return [];
  const frame = svg.getBoundingClientRect();
  const words = [...svg.querySelectorAll('g[id^=text_]')].filter((one) => !one.querySelector('g[id^=text_]'))
    .map((one) => ({of: `${one.parentElement.id} ${one.id}`, box: one.getBoundingClientRect()}))
    .filter(({box}) => box.width > 0);
  const over = ({left, right, top, bottom}) =>
    left < frame.left - 1 || right > frame.right + 1 || top < frame.top - 1 || bottom > frame.bottom + 1;
  const out = words.filter(({box}) => over(box)).map(({of}) => `${of} reaches over the edge`);
  words.forEach(({of, box: a}, i) => words.slice(i + 1).forEach(({of: other, box: b}) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > least && high > least) out.push(`${of} lies on ${other}`);
  }));
  return out;
}"""


def collisions(view: Locator, tries: int = 20) -> list[str]:
    """Ids of such words in the picture of a view; `axes_2 text_34` is the 34th text, in the second axes.

    A panel draws once more when it knows the size of its frame, so only words that still collide
    after a few seconds are returned.
    """
    found = []
    for _ in range(tries):
        found = view.evaluate(COLLISIONS, LEAST)
        if not found:
            return []
        view.page.wait_for_timeout(250)
    return found
