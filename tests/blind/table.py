"""Two more programs of each cause and six healthy ones, written from the causes' definitions: no rule was known."""

from blind.table1 import CAUSES1
from blind.table2 import CAUSES2, HEALTHY2

CAUSES = CAUSES1 + CAUSES2
HEALTHY = HEALTHY2
MIXES = []
ALL = CAUSES + HEALTHY
BY_NAME = {target.name: target for target in ALL}
