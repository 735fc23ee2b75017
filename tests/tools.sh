#!/bin/sh
# tools.sh COMMAND:PACKAGE…: installs the Debian packages of the commands that are missing.
set -eu
packages=
for pair; do
    command -v "${pair%%:*}" > /dev/null || packages="$packages ${pair#*:}"
done
[ -n "$packages" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    apt-get update -qq
    # shellcheck disable=SC2086
    exec apt-get install -y -qq --no-install-recommends $packages
fi
echo "please install:$packages" >&2
exit 1
