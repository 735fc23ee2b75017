"""The part of torchmetrics' mean average precision that takes the time: `make test-torch` has the real one."""

from torchmetrics.detection.helpers import _get_safe_item_values


class MeanAveragePrecision:
    def __init__(self):
        self.detection_mask, self.groundtruth_mask = [], []

    def update(self, preds, target):
        for item in preds:
            self.detection_mask.append(_get_safe_item_values(item))
        for item in target:
            self.groundtruth_mask.append(_get_safe_item_values(item))
