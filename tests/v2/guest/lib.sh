# Sourced by each check, which runs with -eu in /out/<its name>; /data/<its name> is on a disk and also seen by
# containers. cgroups are made as the kubelet makes them.
NAME=${PWD##*/}
DATA=/data/$NAME
BURSTABLE=/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice

# pod UID: $POD, a slice without limits.
pod() {
    POD=$BURSTABLE/kubepods-burstable-pod$1.slice
    mkdir -p "$POD"
    for level in /sys/fs/cgroup /sys/fs/cgroup/kubepods.slice $BURSTABLE "$POD"; do
        echo "+cpu +memory +io +pids +cpuset" > "$level/cgroup.subtree_control"
    done
}

# leaf ID: $LEAF, a container's cgroup in $POD.
leaf() {
    LEAF=$POD/cri-containerd-$1.scope
    mkdir "$LEAF"
}

# container [-H | -N] CMD…: CMD as PID 1 of a container in $LEAF, in the background; -H: in the host's cgroup namespace,
# -N: in its network namespace. $REPORTER ends with its code, $PID is its PID 1.
container() {
    host=
    case $1 in
        -H | -N)
            host=$1
            shift
            ;;
    esac
    rm -f pid
    helper contain $host "$LEAF" pid sh -eu /test/root.sh "$@" &
    REPORTER=$!
    until_there pid
    PID=$(cat pid)
}

# until_there FILE: waits for it to be there and not empty.
until_there() {
    tries=0
    until [ -s "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 1500 ] || { echo "$1 does not come"; exit 99; }
        usleep 20000
    done
}

# ended [FILE]: the container's exit code, into a file.
ended() {
    code=0
    wait "$REPORTER" || code=$?
    echo $code > "${1:-code}"
}

# kernel CGROUP [ROUNDS]: what a shell's tools read there.
kernel() {
    awk -v "directory=$1" -v "rounds=${2:-1}" -f /test/kernel.awk
}

# poll CGROUP FILE: the same over and over until the check ends.
poll() {
    awk -v "directory=$1" -v rounds=0 -f /test/kernel.awk > "$2" &
}

# happened NAME CMD…: when it was done, in milliseconds since boot: not before the first, not after the second.
happened() {
    event=$1
    shift
    begin=$(cut -d ' ' -f 1 /proc/uptime)
    "$@"
    echo "$event $begin $(cut -d ' ' -f 1 /proc/uptime)" >> events
}

set_file() {
    echo "$2" > "$1"
}

# The wall clock of boot in seconds, to find a sample's time among the readings.
boot_time() {
    echo "$(echo | ts %.s) $(cut -d ' ' -f 1 /proc/uptime)" > clock
}
