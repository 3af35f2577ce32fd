#!/bin/bash
# Makes sure that the programs the tests use are here: root on Debian installs
# them; anybody else is told what is missing. Their tests are then skipped.
set -euo pipefail

# PROGRAM=PACKAGE of Debian, and what needs it.
needed='
systemd-nspawn=systemd-container           machine tests
mmdebstrap=mmdebstrap                      machine tests
ip=iproute2                                machine tests
dbus-daemon=dbus                           tests over D-Bus
gcc=gcc                                    the race detector
/usr/include/stdlib.h=libc6-dev            the race detector
strace=strace                              fault tests
file=file                                  tests of what was built
curl=curl                                  tests of downloads
skopeo=skopeo                              the OCI oracle
gpg=gnupg                                  the OpenPGP oracle
zstd=zstd                                  the compression oracle
pacman=pacman-package-manager              the pacman oracle
makepkg=makepkg                            the package oracle
fakeroot=fakeroot                          the package oracle
bsdtar=libarchive-tools                    the package oracle
podman=podman                              tests with a container engine
runc=runc                                  tests with a container engine
'

packages=() reasons=
while IFS='= ' read -r program package why; do
	[ -n "$program" ] || continue
	case $program in
	/*) [ -e "$program" ] && continue ;;
	*) PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null && continue ;;
	esac
	packages+=("$package")
	reasons+="  $package: $why"$'\n'
done <<<"$needed"
[ ${#packages[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing ${packages[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null
else
	printf 'not here, and skipped:\n%s' "$reasons"
fi
