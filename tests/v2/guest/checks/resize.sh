# In-place resize while `run` records: the container's limit shrinks, then the pod gets one that is smaller still.
. /test/lib.sh
pod 6f1c9c1e_0000_4000_8000_000000000006
leaf 0006
set_file "$LEAF/memory.max" 128M
set_file "$LEAF/cpu.max" "150000 100000"
container -H rankscope run --interval 0.1 --window 1 --store "$DATA/store" -- \
    sh -c 'helper hold 20 > "$1/held" & sleep 17' sh "$DATA" > stdout 2> stderr
until_there "$DATA/held"
sleep 4
happened leaf set_file "$LEAF/memory.max" 96M
happened cpu set_file "$LEAF/cpu.max" "125000 100000"
sleep 4
happened pod set_file "$POD/memory.max" 64M
sleep 4
happened grown set_file "$POD/memory.max" 256M
ended
