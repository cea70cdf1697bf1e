#!/usr/bin/env bash
# Installs, upgrades, removes and purges the packages of dist/ in a fresh Debian under a real systemd, and compares all
# files, users and groups with those before. Then it installs, upgrades and erases the rpm in a folder, with Debian's rpm.
# It needs root, debootstrap, systemd-container and rpm (and lintian, if it is there), and what `make dist` left behind,
# with the same VERSION.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
missing=()
((EUID == 0)) || missing+=(root)
for tool in debootstrap systemd-nspawn rpm; do command -v $tool >/dev/null || missing+=($tool); done
if ((${#missing[@]})); then
	echo "the packages are not installed: this needs ${missing[*]}" >&2
	exit 0
fi
[[ -e dist/SHA256SUMS ]] || { echo 'there are no packages: run make dist first' >&2; exit 1; }
arch=$(go env GOHOSTARCH)
base=build/packages-base
root=$PWD/build/packages-root
work=build/packages
boot=
init=
finish() {
	[[ -z $boot ]] || kill "$boot" 2>/dev/null || true
	[[ -z $boot ]] || wait "$boot" 2>/dev/null || true
}
trap finish EXIT
fail() {
	echo "packages: $*" >&2
	[[ -z $init ]] || inside journalctl --no-pager --lines 40 >&2
	exit 1
}

[[ -e $base/sbin/init ]] || debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus bookworm "$base" >/dev/null
rm -rf "$root" "$work"
mkdir -p "$work/old" "$work/new"
cp -a "$base" "$root"
mkdir "$root/packages"

# The older version has another default config, so that an upgrade has to choose.
read -r number commit SOURCE_DATE_EPOCH < <(hack/version.sh)
export SOURCE_DATE_EPOCH
version=$number
[[ $number != *-* ]] || version=$number+$commit
[[ -e build/dist/stallspan_${version}_linux_$arch ]] || fail "there is no $version in build/dist: set VERSION as for make dist"
for kind in agent collector; do
	sed '1i # The default of an older version.' "packaging/etc/$kind.yaml" >"$work/$kind.yaml"
	sed "s|packaging/etc/$kind.yaml|$work/$kind.yaml|" "packaging/$kind.nfpm.yaml" >"$work/$kind.nfpm.yaml"
	program=stallspan
	[[ $kind == agent ]] || program=otelcol-stallspan
	for format in deb rpm; do
		for age in old new; do
			config=$work/$kind.nfpm.yaml number=0.0.1
			[[ $age == old ]] || config=packaging/$kind.nfpm.yaml number=$version
			PACKAGE_VERSION=$number PACKAGE_ARCH=$arch PACKAGE_MANUAL=build/dist/manual \
				PACKAGE_FILES=build/dist/${program}_${version}_linux_$arch \
				hack/tool.sh nfpm package --packager "$format" --config "$config" --target "$work/$age" >/dev/null
		done
	done
done
# What is tested as new is what dist/ has.
for package in "$work"/new/*; do
	cmp "$package" "dist/${package##*/}" || fail "got another ${package##*/} than that of dist/, want the same"
done
if command -v lintian >/dev/null; then
	lintian --allow-root --fail-on error,warning "$work"/new/*.deb || fail 'got complaints of lintian, want none'
fi
cp -r "$work/old" "$work/new" "$root/packages"

# everything lists all files with their modes, and all users and groups.
everything() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run -o -path ./tmp -o \
		-path ./packages -o -path ./var/log -o -path ./var/lib/dpkg -o -path ./var/lib/rpm -o -path ./var/lib/systemd -o \
		-path ./var/tmp -o -path ./var/cache -o -path ./etc/machine-id -o -name '.pwd.lock' -o \
		-regex './etc/\(passwd\|group\|shadow\|gshadow\|subuid\|subgid\)-?' \) -prune -o -printf '%p %y %m %U %G\n' | sort
		cut -d: -f1 etc/passwd etc/group | sort)
}
# unchanged fails if something of the packages is left. What follows it filters both lists.
unchanged() { diff <("${@:2}" <"$work/before") <(everything | "${@:2}") >&2 || fail "got these differences $1, want none"; }
everything >"$work/before"

# 1. In an image that nobody has booted.
chroot "$root" sh -c 'dpkg -i /packages/new/*.deb' >"$work/chroot.log" 2>&1 || fail "got an error, see $work/chroot.log"
chroot "$root" sh -c 'stallspan --version && otelcol-stallspan --version'
chroot "$root" dpkg --purge stallspan otelcol-stallspan >>"$work/chroot.log" 2>&1
unchanged 'after purging from an image' cat

# 2. Under systemd.
systemd-nspawn --quiet --directory="$root" --machine=stallspan-packages --capability=all --register=no --keep-unit \
	--private-network --boot </dev/null >"$work/boot.log" 2>&1 &
boot=$!
# inside runs a command in the namespaces of the container.
inside() { nsenter --target "$init" --mount --uts --ipc --net --pid -- "$@"; }
# until_true waits for a command to succeed, for at most two minutes.
until_true() {
	for ((i = 0; i < 240; i++)); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.5
	done
	false
}
booted() {
	init=$(pgrep --parent "$boot" | head -1)
	[[ -n $init ]] && inside systemctl is-active multi-user.target
}
until_true booted || fail "got no container in two minutes, see $work/boot.log"
everything >"$work/before"

# serves waits until a service has its socket and accepts windows.
serves() {
	until_true inside test -S "/run/$1/stallspan.sock" || fail "$1: got no socket $2, want one"
	until_true inside systemctl is-active "$1" || fail "$1: got a service that is not active $2, want it active"
	inside env STALLSPAN_SOCKET="/run/$1/stallspan.sock" /packages/stallspan mark run --kind custom --name packages \
		-- sleep 0.3 >/dev/null 2>&1 || fail "$1: got an error from the socket $2, want a window"
}
pid() { inside systemctl show --property MainPID --value "$1"; }
want() { [[ $2 == "$3" ]] || fail "$1: got $2, want $3"; }
cp "build/dist/stallspan_${version}_linux_$arch/stallspan" "$root/packages/"
declare -A config=([stallspan]=agent [otelcol-stallspan]=collector)
for package in stallspan otelcol-stallspan; do
	yaml=/etc/stallspan/${config[$package]}.yaml
	install() { inside sh -c "dpkg --force-confold -i /packages/$1/${package}_*.deb" >>"$work/dpkg.log" 2>&1; }

	install old || fail "$package: got an error of installing, see $work/dpkg.log"
	serves $package 'after installing'
	want "$package enabled" "$(inside systemctl is-enabled $package)" enabled
	want "$package.env" "$(inside stat -c '%a %U' "${yaml%.yaml}.env")" '600 root'
	want "$package state" "$(inside stat -c '%a %U' /var/lib/$package)" "700 $package"
	[[ $package != stallspan ]] || inside sh -c 'gzip -cd /usr/share/man/man1/stallspan-run.1.gz | grep -q epoch' ||
		fail 'got no man page, want one'

	# What an operator changes, and what the service has written.
	inside sh -c "echo '# changed here' >>$yaml; echo '# secret' >>${yaml%.yaml}.env; echo kept >/var/lib/$package/marker"
	before=$(pid $package)
	install new || fail "$package: got an error of upgrading, see $work/dpkg.log"
	serves $package 'after upgrading'
	[[ $(pid $package) != "$before" ]] || fail "$package: got the old process after upgrading, want a new one"
	[[ $package != stallspan ]] || for when in pre post; do
		inside /usr/lib/systemd/system-sleep/stallspan $when >>"$work/sleep.log" 2>&1 ||
			fail "stallspan: got an error $when a sleep of the machine, see $work/sleep.log"
	done
	# shellcheck disable=SC2016 # dpkg's own variable
	want "$package installed" "$(inside dpkg-query -W -f '${Version}' $package)" "${version/-/\~}-1"
	want "$package config" "$(inside sh -c "head -1 $yaml; tail -1 $yaml")" \
		$'# The default of an older version.\n# changed here'
	want "$package environment" "$(inside tail -1 "${yaml%.yaml}.env")" '# secret'
	want "$package state" "$(inside cat /var/lib/$package/marker)" kept
	inside rm -f "$yaml.dpkg-dist"

	inside dpkg --remove $package >>"$work/dpkg.log" 2>&1
	want "$package after removing" "$(inside systemctl is-active $package || true)" inactive
	inside test ! -e "/usr/bin/$package" || fail "$package: got a program after removing it, want none"
	want "$package state after removing" "$(inside cat /var/lib/$package/marker)" kept
	want "$package config after removing" "$(inside tail -1 "$yaml")" '# changed here'

	install new || fail "$package: got an error of installing again, see $work/dpkg.log"
	serves $package 'after installing again'
	inside dpkg --purge $package >>"$work/dpkg.log" 2>&1 || fail "$package: got an error of purging, see $work/dpkg.log"
	want "$package after purging" "$(inside systemctl is-active $package || true)" inactive
	unchanged "after purging $package" cat
	echo "packages: $package.deb was installed, upgraded, removed, installed again and purged under systemd" \
		"$(inside systemctl --version | head -1 | cut -d' ' -f2)"
done
finish
boot='' init=''

# 3. The rpm, where no systemd runs. Debian's rpm knows no packages that it could depend on.
everything >"$work/before"
for package in stallspan otelcol-stallspan; do
	yaml=$root/etc/stallspan/${config[$package]}.yaml
	rpm() { command rpm --root "$root" --nodeps "$@" >>"$work/rpm.log" 2>&1; }
	rpm --install "$work/old/$package"-*.rpm || fail "$package: got an error of rpm --install, see $work/rpm.log"
	command rpm --root "$root" --verify --nodeps $package || fail "$package: got other files than the rpm has, want the same"
	echo '# changed here' >>"$yaml"
	rpm --upgrade "$work/new/$package"-*.rpm || fail "$package: got an error of rpm --upgrade, see $work/rpm.log"
	want "$package config" "$(tail -1 "$yaml")" '# changed here'
	chroot "$root" /usr/bin/$package --version >/dev/null || fail "$package: got a program that does not start"
	chroot "$root" getent passwd $package >/dev/null || fail "$package: got no user of the service, want one"
	# What the service would have written, and a user who announces windows.
	chroot "$root" install --directory --mode=700 --owner=$package --group=$package /var/lib/$package
	echo kept >"$root/var/lib/$package/marker"
	chroot "$root" usermod --append --groups $package nobody
	echo '# secret' >>"${yaml%.yaml}.env"
	rpm --erase $package || fail "$package: got an error of rpm --erase, see $work/rpm.log"
	want "$package changed config" "$(tail -1 "$yaml.rpmsave")" '# changed here'
	# Folders that many packages use belong to a package of their own in these distributions.
	relevant() { grep -vE ' d 755 0 0$|^\./root/\.rpmdb/'; }
	# docs/install.md says what is left, and how to remove it.
	left=$({ diff <(relevant <"$work/before") <(everything | relevant) || true; } | sed -n 's/^[<>] //p' |
		cut -d' ' -f1 | LC_ALL=C sort -u | xargs)
	yaml=${yaml#"$root"}
	want "left by rpm --erase $package" "$left" \
		".${yaml%.yaml}.env.rpmsave .$yaml.rpmnew .$yaml.rpmsave ./var/lib/$package ./var/lib/$package/marker $package"
	purge=$(grep '^rm -rf /var/lib/stallspan ' docs/install.md |
		sed -E "s/(userdel|groupdel|lib\/)( ?)stallspan/\1\2$package/g; s/agent/${config[$package]}/")
	chroot "$root" sh -c "$purge" >>"$work/rpm.log" 2>&1 || true # it complains, as docs/install.md says
	unchanged "after what docs/install.md says for rpm --erase $package" relevant
	chroot "$root" test ! -e /etc/stallspan || fail 'got /etc/stallspan, want it gone'
	[[ ! -e $root/usr/share/licenses/$package ]] || fail "got a folder of licenses after rpm --erase $package, want none"
	echo "packages: $package.rpm was installed, upgraded and erased"
done
rm -rf "$root"
