#!/bin/sh
# fetch.sh [SUITE]: fetches the kernel of the distribution's cloud images into .cache/v2/default, without installing it;
# with SUITE that of another release, from the same mirror, into .cache/v2/SUITE. Needs the network once.
set -eu
suite=${1:-}
cd "$(dirname "$0")/../.."
cache=$PWD/.cache/v2/${suite:-default}
[ ! -e "$cache/kernel" ] || exit 0
mkdir -p "$cache/partial"
cd "$cache"
if [ -n "$suite" ]; then
    # Lists of its own: the machine's stay as they are.
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' | awk '$2 ~ /-security$/ { print $1; exit }')
    mkdir -p lists archives
    echo "deb $mirror $suite main" > sources.list
    cat > apt.conf << END
Dir::Etc::sourcelist "$cache/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$cache/lists";
Dir::Cache "$cache/archives";
Acquire::Check-Valid-Until "false";
END
    export APT_CONFIG=$cache/apt.conf
fi
if ! ls linux-image-*.deb > /dev/null 2>&1; then
    [ -z "$suite" ] && [ "$(id -u)" != 0 ] || apt-get update -qq
    # The version is part of the package's name, and changes.
    package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
    # A signature check needs no other user: the folder is ours.
    (cd partial && apt-get download -qq -o APT::Sandbox::User=root "$package")
    mv partial/*.deb .
fi
rm -rf unpacking
dpkg -x linux-image-*.deb unpacking
mv unpacking kernel
