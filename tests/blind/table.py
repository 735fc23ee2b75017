"""The programs that were written blind."""

from blind.table2 import CAUSES2, HEALTHY2

CAUSES = [*CAUSES2]
HEALTHY = [*HEALTHY2]
MIXES = []
ALL = CAUSES + HEALTHY + MIXES
BY_NAME = {target.name: target for target in ALL}
