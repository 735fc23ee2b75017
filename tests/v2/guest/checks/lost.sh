# memory.oom.group and no volume: the container dies as a whole and its record with it. What is left is what a server was
# told by then. From 80 to 100 % of the limit takes more than 10 s.
. /test/lib.sh
pod 6f1c9c1e_0000_4000_8000_000000000009
leaf 0009
set_file "$LEAF/memory.max" 96M
set_file "$LEAF/memory.oom.group" 1
mkdir -p /www/cgi-bin /tmp/batches
cp /test/cgi.sh /www/cgi-bin/mlflow
chmod 755 /www/cgi-bin/mlflow
echo "$(date +%s)000" > /tmp/batches.start
httpd -f -p 127.0.0.1:5000 -h /www &
boot_time
poll "$LEAF" readings
export MLFLOW_TRACKING_URI=http://127.0.0.1:5000/cgi-bin/mlflow MLFLOW_RUN_ID=r1
container -N rankscope run --store /tmp/store -- sh -c '
    helper hold 58 > /dev/null &
    sleep 1
    exec helper grow 100 750' > stdout 2> stderr
ended
sleep 0.5
cp -a /tmp/batches .
rm -r /tmp/batches
