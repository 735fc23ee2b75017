# memory.high below memory.max: the kernel slows the job down, and kills nothing.
. /test/lib.sh
pod 6f1c9c1e_0000_4000_8000_000000000004
leaf 0004
set_file "$LEAF/memory.max" 128M
set_file "$LEAF/memory.high" 40M
container rankscope run --interval 0.2 --window 1 --store "$DATA/store" -- \
    timeout 14 helper grow 50 20 > stdout 2> stderr
ended
kernel "$LEAF" > after
cat "$LEAF/memory.events" > events
