"""Images and figures as files."""

from __future__ import annotations

import os
import shutil
from typing import Any


def write_image(image: Any, path: str) -> None:
    """A PIL image, an array, the bytes of an image file, or the path of one."""
    if isinstance(image, (str, os.PathLike)):
        shutil.copyfile(image, path)
    elif isinstance(image, (bytes, bytearray, memoryview)):
        with open(path, "wb") as file:
            file.write(image)
    elif hasattr(image, "save"):
        image.save(path)
    else:
        from PIL import Image

        Image.fromarray(image).save(path)


def write_figure(figure: Any, path: str) -> None:
    """A figure of matplotlib or plotly."""
    if hasattr(figure, "savefig"):
        figure.savefig(path)
    elif path.endswith((".html", ".htm")):
        figure.write_html(path)
    else:
        figure.write_image(path)
