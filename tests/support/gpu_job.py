"""A job that uses a GPU as far as the kernel can see: `gpu_job.py SECONDS [DEVICE]` holds the device file open."""

import sys
import time

held = open(sys.argv[2]) if len(sys.argv) > 2 else None
time.sleep(float(sys.argv[1]))
