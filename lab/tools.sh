#!/bin/bash
# Makes sure that the programs the tests use are here: root on Debian installs
# them; anybody else is told what is missing. Their tests are then skipped.
#
# Some are of no distribution and are built from source by the go command, which
# takes minutes: only with --build, or in CI, where no test may be skipped. They
# are kept in the lab's cache, $NOX_LAB_CACHE or nox-mesh-lab in the user's cache
# folder.
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
age=age                                    the oracle of backups
pacman=pacman-package-manager              the pacman oracle
dpkg-scanpackages=dpkg-dev                 tests of packages
makepkg=makepkg                            the package oracle
fakeroot=fakeroot                          the package oracle
bsdtar=libarchive-tools                    the package oracle
podman=podman                              tests with a container engine
runc=runc                                  tests with a container engine
dockerd=docker.io                          tests with a container engine
docker-registry=docker-registry            the registry oracle
ctr=containerd                             the containerd oracle
qemu-system-x86_64=qemu-system-x86         power cuts
mke2fs=e2fsprogs                           power cuts
mkfs.vfat=dosfstools                       files on a vfat
busybox=busybox-static                     the machine with nothing
script=bsdutils                            tests on a terminal
/usr/lib/python3/dist-packages/jsonschema=python3-jsonschema   the JSON Schema oracle
'

# PACKAGE of Debian, and what needs it: unpacked beside what is built, and not
# installed, because that would make it this computer's kernel.
unpacked='
linux-image-cloud-amd64     power cuts
'

# PROGRAM=PACKAGE@VERSION of the go command, and what needs it. Another version in
# its place is replaced.
built='
cosign=github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3     the cosign oracle
goreleaser=github.com/goreleaser/goreleaser/v2@v2.15.2     the GoReleaser oracle
oras=oras.land/oras/cmd/oras@v1.3.0                        the registry oracle
'
tools=${NOX_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nox-mesh-lab}/tools

install_packages() {
	local program package why packages=() reasons=
	while IFS='= ' read -r program package why; do
		[ -n "$program" ] || continue
		case $program in
		/*) [ -e "$program" ] && continue ;;
		*) PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null && continue ;;
		esac
		packages+=("$package")
		reasons+="  $package: $why"$'\n'
	done <<<"$needed"
	[ ${#packages[@]} -gt 0 ] || return 0

	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "installing ${packages[*]}"
		# No daemon that comes with them is started (https://systemd.io/ENVIRONMENT).
		export DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1
		apt-get update -qq
		apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null
	else
		printf 'not here, and skipped:\n%s' "$reasons"
	fi
}

# unpack PACKAGE: the kernel of the package that it stands for, whole or not at
# all.
unpack() (
	local work real
	mkdir -p "$tools"
	work=$(mktemp -d "$tools/.unpack-XXXXXX")
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	real=$(apt-cache depends "$1" | awk '$1 == "Depends:" { print $2; exit }')
	apt-get -o APT::Sandbox::User=root -qq download "$real"
	mkdir root
	dpkg-deb --fsys-tarfile ./*.deb | tar -x -C root ./boot
	chmod 755 root
	rm -rf "$tools/$1"
	mv root "$tools/$1"
)

unpack_packages() {
	local package why missing=
	while IFS=' ' read -r package why; do
		[ -n "$package" ] || continue
		compgen -G "$tools/$package/boot/vmlinuz-*" >/dev/null && continue
		if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
			echo "unpacking $package ($why)"
			apt-cache show "$package" >/dev/null 2>&1 || apt-get update -qq
			unpack "$package"
		else
			missing+="  $package: $why"$'\n'
		fi
	done <<<"$unpacked"
	[ -z "$missing" ] || printf 'not unpacked, and skipped:\n%s' "$missing"
}

# is FILE PACKAGE VERSION: the file is that program of that version, as the go
# command wrote into it.
is() {
	[ -x "$1" ] && go version -m "$1" 2>/dev/null | awk -v package="$2" -v version="$3" '
		$1 == "path" { path = $2 }
		$1 == "mod" { mod = $3 }
		END { exit !(path == package && mod == version) }'
}

# build PROGRAM PACKAGE VERSION: whole or not at all, whoever builds beside it. No
# go.mod is read or changed, no flags of this source are used, and no other
# compiler is fetched.
build() (
	local work
	mkdir -p "$tools"
	work=$(mktemp -d "$tools/.build-XXXXXX")
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	env -u GOOS -u GOARCH GOFLAGS= GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=0 GOBIN="$work" go install "$2@$3"
	is "$work/$1" "$2" "$3" || { echo "what was built is not $1 $3" >&2; exit 1; }
	mv "$work/$1" "$tools/$1"
)

build_tools() {
	local program module why missing=
	command -v go >/dev/null || return 0
	while IFS='= ' read -r program module why; do
		[ -n "$program" ] || continue
		is "$tools/$program" "${module%@*}" "${module#*@}" && continue
		if [ "$1" = yes ]; then
			echo "building $program ${module#*@} ($why); this takes minutes"
			build "$program" "${module%@*}" "${module#*@}"
		else
			missing+="  $program ${module#*@}: $why"$'\n'
		fi
	done <<<"$built"
	[ -z "$missing" ] || printf 'not built, and skipped ("lab/tools.sh --build" builds them):\n%s' "$missing"
}

case ${1-} in
'') if [ "${NOX_REQUIRE_MACHINE-}" = 1 ] || [ "${CI-}" = true ]; then ask=yes; else ask=no; fi ;;
--build) ask=yes ;;
*)
	echo "usage: lab/tools.sh [--build]" >&2
	exit 2
	;;
esac
install_packages
unpack_packages
build_tools "$ask"
