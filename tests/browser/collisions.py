"""Finds the texts of a picture that overlap each other or stick out of its frame."""

from __future__ import annotations

from playwright.sync_api import Locator

MIN_OVERLAP = 1.5  # pixels that two texts must share in both directions to count as overlapping
COLLISIONS = """(view, minOverlap) => {
  const svg = view.querySelector('.fl-picture')?.shadowRoot?.querySelector('svg');
  if (!svg) return [];
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('g[id^=text_]')].filter((group) => !group.querySelector('g[id^=text_]'))
    .map((group) => ({name: `${group.parentElement.id} ${group.id}`, box: group.getBoundingClientRect()}))
    .filter(({box}) => box.width > 0);
  const isOutside = ({left, right, top, bottom}) =>
    left < frame.left - 1 || right > frame.right + 1 || top < frame.top - 1 || bottom > frame.bottom + 1;
  const collisions = texts.filter(({box}) => isOutside(box)).map(({name}) => `${name} reaches over the edge`);
  texts.forEach(({name, box: a}, i) => texts.slice(i + 1).forEach(({name: other, box: b}) => {
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (width > minOverlap && height > minOverlap) collisions.push(`${name} lies on ${other}`);
  }));
  return collisions;
}"""


def find_collisions(view: Locator, tries: int = 20) -> list[str]:
    """List a sentence for each such text in the picture of a view; `axes_2 text_34` is text 34, in the second axes.

    A panel draws once more when it knows the size of its frame, so only texts that still collide
    after a few seconds are returned.
    """
    collisions = []
    for _ in range(tries):
        collisions = view.evaluate(COLLISIONS, MIN_OVERLAP)
        if not collisions:
            return []
        view.page.wait_for_timeout(250)
    return collisions
