# shellcheck shell=bash
# For the demos, which source it: a cgroup of their own with $memory_mib MiB of memory and 1.5 CPUs, where this machine
# lets us make one. `limit` makes it and says so, `inside CMD` runs a command in it, `remove_groups` takes it away.
memory_bytes=$((${memory_mib:?} << 20))
period_us=100000
quota_us=150000
name=rankscope-demo-$$
groups=() # directories we made

# Where a v1 controller is mounted.
v1_mount() {
    awk -v c="$1" '$3 == "cgroup" && ("," $4 ",") ~ ("," c ",") { print $2; exit }' /proc/self/mounts
}

v2_mount() {
    awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts
}

make_group() {
    mkdir "$1/$name" && groups+=("$1/$name")
}

# The limits stand in a top-level cgroup, so that nothing above it hides them.
make_v1() {
    local memory cpu controller mount
    memory=$(v1_mount memory) cpu=$(v1_mount cpu)
    [ -n "$memory" ] && [ -n "$cpu" ] || return 1
    for controller in memory cpu cpuacct pids blkio; do
        mount=$(v1_mount "$controller")
        # cpu and cpuacct are often one mount.
        if [ -n "$mount" ] && [ ! -d "$mount/$name" ]; then make_group "$mount" || return 1; fi
    done
    # Pressure is counted in the unified hierarchy, also where v1 controls.
    mount=$(v2_mount)
    if [ -n "$mount" ]; then make_group "$mount" || return 1; fi
    echo "$memory_bytes" > "$memory/$name/memory.limit_in_bytes" &&
        echo "$period_us" > "$cpu/$name/cpu.cfs_period_us" &&
        echo "$quota_us" > "$cpu/$name/cpu.cfs_quota_us"
}

# Below the root cgroup: the only one that may hold processes and controlled children at once.
make_v2() {
    local mount
    mount=$(v2_mount)
    [ -n "$mount" ] || return 1
    echo "+memory +cpu" > "$mount/cgroup.subtree_control" || return 1
    make_group "$mount" || return 1
    echo "$memory_bytes" > "$mount/$name/memory.max" &&
        echo "$quota_us $period_us" > "$mount/$name/cpu.max"
}

remove_groups() {
    local group try
    [ ${#groups[@]} -gt 0 ] || return 0
    for group in "${groups[@]}"; do
        for try in 1 2 3 4 5 6 7 8 9 10; do
            # Only what we started is in there.
            while read -r pid; do kill -KILL "$pid" 2> /dev/null || true; done < "$group/cgroup.procs" || true
            rmdir "$group" 2> /dev/null && break
            sleep 0.1
        done
        [ ! -d "$group" ] || echo "demo: could not remove $group" >&2
    done
    groups=()
}

# Runs a command in the cgroup; the shell that joins it becomes the command.
inside() {
    # shellcheck disable=SC2016
    if [ ${#groups[@]} -gt 0 ]; then
        sh -c 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done; shift; exec "$@"' \
            sh "${groups[@]}" -- "$@"
    else
        "$@"
    fi
}

make_limits() {
    [ "$(id -u)" = 0 ] || { echo "demo: not root" >&2; return 1; }
    if [ -n "$(v1_mount memory)" ]; then make_v1; else make_v2; fi
}

limit() {
    if make_limits; then
        echo "demo: training in the cgroup /$name: $memory_mib MiB of memory, 1.5 CPUs" >&2
    else
        remove_groups
        echo "demo: no cgroup can be made here, so the job runs without limits" >&2
    fi
}
