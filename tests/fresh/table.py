"""Two more programs of each of 14 causes, those on the CPU or in the place, written blind as those of tests/blind."""

from fresh.table1 import CAUSES1

CAUSES = CAUSES1
HEALTHY = MIXES = []
ALL = CAUSES
BY_NAME = {t.name: t for t in ALL}
