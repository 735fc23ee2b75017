#!/bin/sh
# What the kernel says about one v1 cgroup and one process, as `name value` lines: plain cat, cut by awk.
# kernel.sh MEMORY CPU CPUACCT BLKIO PIDS UNIFIED PID [SECONDS]: directories of the cgroup, per controller.
# With SECONDS it repeats for that long. Each round stands between `start_ms` and `end_ms`.
memory=$1 cpu=$2 cpuacct=$3 blkio=$4 pids=$5 unified=$6 pid=$7
now() { date +%s%3N; }
pressure() { awk -v which="$2" -v name="$1" '$1 == which { sub("total=", "", $NF); print name, $NF }' "$3"; }

round() {
    echo "start_ms $(now)"
    echo "memory.usage $(cat "$memory/memory.usage_in_bytes")"
    awk '/^total_(inactive_file|rss|cache|shmem) / { print "memory." substr($1, 7), $2 }' "$memory/memory.stat"
    echo "memory.kernel $(cat "$memory/memory.kmem.usage_in_bytes")"
    echo "memory.peak $(cat "$memory/memory.max_usage_in_bytes")"
    echo "memory.memsw $(cat "$memory/memory.memsw.usage_in_bytes")"
    echo "memory.limit $(cat "$memory/memory.limit_in_bytes")"
    echo "memory.failcnt $(cat "$memory/memory.failcnt")"
    awk '$1 == "oom_kill" { print "memory.oom_kill", $2 }' "$memory/memory.oom_control"
    awk '{ print "cpu." $1, $2 }' "$cpu/cpu.stat"
    echo "cpu.usage $(cat "$cpuacct/cpuacct.usage")"
    awk '$2 == "Read" || $2 == "Write" { sum[$2] += $3 } END { print "io.read", sum["Read"] + 0; print "io.write", sum["Write"] + 0 }' \
        "$blkio/blkio.throttle.io_service_bytes"
    echo "pids $(cat "$pids/pids.current")"
    pressure pressure.memory full "$unified/memory.pressure"
    pressure pressure.cpu some "$unified/cpu.pressure"
    pressure pressure.io full "$unified/io.pressure"
    awk -F '[: ]+' 'NR > 2 && $2 != "lo" { received += $3; sent += $11 } END { print "network.received", received + 0; print "network.sent", sent + 0 }' "/proc/$pid/net/dev"
    awk '{ print "process.rss_pages", $24; print "process.threads", $20; print "process.ticks", $14 + $15 }' "/proc/$pid/stat"
    awk '$1 == "rchar:" || $1 == "wchar:" { print "process." substr($1, 1, 5), $2 }' "/proc/$pid/io"
    echo "end_ms $(now)"
}

round
if [ $# -gt 7 ]; then
    until [ "$(now)" -ge "${end:=$(($(now) + $8 * 1000))}" ]; do round; done
fi
