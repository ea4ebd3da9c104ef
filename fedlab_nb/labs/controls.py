"""What the menus of labs' views share."""

from ..panels.theme import offer as offer
