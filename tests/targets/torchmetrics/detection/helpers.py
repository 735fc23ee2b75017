"""How torchmetrics encodes masks, without torch: each one moved to a layout and encoded, one after the other."""

import numpy as np
from pycocotools import mask as mask_utils


def _get_safe_item_values(item):
    codes = []
    for mask in item["masks"]:
        code = mask_utils.encode(np.asfortranarray(mask))
        codes.append((tuple(code["size"]), code["counts"]))
    return tuple(codes)
