"""The blind programs: kinds that neither tests/targets nor tests/heldout has."""

from .table1 import CAUSES1

CAUSES = [*CAUSES1]
HEALTHY = []
MIXES = []
ALL = CAUSES + HEALTHY + MIXES
BY_NAME = {target.name: target for target in ALL}
