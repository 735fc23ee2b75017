# What the kernel says about one v2 cgroup, as `name value` lines; each round stands between `start_ms` and `end_ms`,
# milliseconds since boot (in steps of 10). Names and units are those of the v1 reader, tests/support/kernel.sh.
# -v directory=… -v rounds=N (0: for ever)
function put(name, value) { printf "%s %.0f\n", name, value }
function now(  line) { getline line < "/proc/uptime"; close("/proc/uptime"); sub(" .*", "", line); return line * 1000 }
function single(name, file,  line) {
    line = ""
    getline line < (directory "/" file)
    close(directory "/" file)
    if (line != "") put(name, line == "max" ? -1 : line)
}
# names: the file's keys, "key=name"
function keyed(file, names, unit,  line, pair, word, all, count, i) {
    count = split(names, all, " ")
    for (i = 1; i <= count; i++) { split(all[i], pair, "="); wanted[pair[1]] = pair[2] }
    while ((getline line < (directory "/" file)) > 0) {
        split(line, word, " ")
        if (word[1] in wanted) put(wanted[word[1]], word[2] * unit)
    }
    close(directory "/" file)
    for (i in wanted) delete wanted[i]
}
function pressure(name, file, which,  line, word) {
    while ((getline line < (directory "/" file)) > 0) {
        split(line, word, /[ =]/)
        if (word[1] == which) put(name, word[9])
    }
    close(directory "/" file)
}
function io(  line, read, written) {
    read = written = 0
    while ((getline line < (directory "/io.stat")) > 0) {
        if (match(line, /rbytes=[0-9]+/)) read += substr(line, RSTART + 7, RLENGTH - 7)
        if (match(line, /wbytes=[0-9]+/)) written += substr(line, RSTART + 7, RLENGTH - 7)
    }
    close(directory "/io.stat")
    put("io.read", read)
    put("io.write", written)
}
BEGIN {
    for (round = 0; rounds == 0 || round < rounds; round++) {
        put("start_ms", now())
        single("memory.usage", "memory.current")
        keyed("memory.stat", "anon=memory.rss file=memory.cache shmem=memory.shmem kernel=memory.kernel inactive_file=memory.inactive_file", 1)
        single("memory.peak", "memory.peak")
        single("memory.swap", "memory.swap.current")
        single("memory.limit", "memory.max")
        keyed("memory.events", "max=memory.max oom_kill=memory.oom_kill oom_group_kill=memory.oom_group_kill", 1)
        keyed("cpu.stat", "usage_usec=cpu.usage throttled_usec=cpu.throttled_time", 1000)
        keyed("cpu.stat", "nr_periods=cpu.nr_periods nr_throttled=cpu.nr_throttled", 1)
        io()
        single("pids", "pids.current")
        pressure("pressure.memory", "memory.pressure", "full")
        pressure("pressure.cpu", "cpu.pressure", "some")
        pressure("pressure.io", "io.pressure", "full")
        put("end_ms", now())
        fflush()
        if (rounds == 0) system("usleep 50000")
    }
}
