# SPDX-License-Identifier: MIT
# Another distribution in a folder, for scripts that test there. Sourced after common.sh, by root, in a mount namespace of
# its own (own_mounts), so that the mounts end with the script whatever happens.

# own_mounts SCRIPT ARGUMENTS...: checks what is needed, and starts the script anew with mounts of its own.
own_mounts() {
    [ "$(id -u)" = 0 ] || die "a distribution in a folder needs root" "Run this script as root."
    command -v debootstrap >/dev/null || die "debootstrap is missing" "apt-get install debootstrap"
    if [ -z "${HSI_OWN_MOUNTS:-}" ]; then exec env HSI_OWN_MOUNTS=yes unshare --mount "$@"; fi
}

# bootstrap_debian NAME [options of debootstrap], bootstrap_ubuntu NAME: that distribution into target.
bootstrap_debian() {
    local mirror steps distribution=$1
    shift
    mirror=${HSI_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE) $(LABEL)' 'Created-By: Packages' 'Origin: Debian' |
        awk '$2 == "Debian" { print $1; exit }')}
    [ -n "$mirror" ] || die "apt knows no mirror of Debian here" "Name one in HSI_DEBIAN_MIRROR."
    # A debootstrap that is older than the distribution has no steps of its name; all are made as unstable is.
    steps=/usr/share/debootstrap/scripts/$distribution
    [ -e "$steps" ] || steps=/usr/share/debootstrap/scripts/sid
    debootstrap --variant=minbase "$@" "$distribution" "$target" "$mirror" "$steps"
}

bootstrap_ubuntu() {
    local mirror steps pocket keys=${HSI_UBUNTU_KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}
    mirror=${HSI_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
    # Without these keys debootstrap would go on and check no signature.
    [ -e "$keys" ] || die "the keys of Ubuntu's archive are missing" \
        "apt-get install ubuntu-keyring (Debian 13 and newer), or name their file in HSI_UBUNTU_KEYRING."
    # As above; Ubuntu's releases since 7.10 are all made as that one is.
    steps=/usr/share/debootstrap/scripts/$1
    [ -e "$steps" ] || steps=/usr/share/debootstrap/scripts/gutsy
    # GDAL and QGIS are in universe.
    debootstrap --variant=minbase --components=main,universe --keyring="$keys" "$1" "$target" "$mirror" "$steps"
    # What a user has: the release with its updates. The mirror has the security updates, too.
    for pocket in "" -updates -security; do
        echo "deb $mirror $1$pocket main universe"
    done >"$target/etc/apt/sources.list"
}

# make_distribution NAME FOLDER: bookworm, trixie, forky or noble in FOLDER, made when it is not there. HSI_DEBIAN_MIRROR names
# the mirror of the first three (default: the one that apt uses here), HSI_UBUNTU_MIRROR that of noble (default: Ubuntu's own)
# and HSI_UBUNTU_KEYRING the file of its keys. Sets target, which inside() takes.
make_distribution() {
    local distribution=$1
    target=$2
    if [ ! -e "$target/etc/distribution-is-complete" ]; then
        say "$distribution in $target"
        rm -rf --one-file-system "$target"
        mkdir -p "$target"
        case $distribution in
            noble) bootstrap_ubuntu "$distribution" ;;
            *) bootstrap_debian "$distribution" ;;
        esac
        touch "$target/etc/distribution-is-complete"
    fi
    # Testing's Release file holds for a week, and a mirror may stand still for longer.
    if [ "$distribution" = forky ]; then
        echo 'Acquire::Check-Valid-Until "false";' >"$target/etc/apt/apt.conf.d/90mirror-may-lag"
    fi
    mkdir -p "$target"/{home/hsi/source,ccache,data,proc,sys}
    mount -t proc proc "$target/proc"
    mount --rbind /sys "$target/sys" # a job's limits of memory and processors stand here
    # Terminals, which the tests of completion want; the folder's own, not this machine's.
    mkdir -p "$target/dev/pts"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$target/dev/pts"
    ln -sf pts/ptmx "$target/dev/ptmx"
    cp -L /etc/resolv.conf "$target/etc/resolv.conf"
    inside apt-get -q update
}

# emulate_arm64: from here on this kernel runs programs for 64-bit ARM, in target's qemu-user, until the script ends; where the
# machine does so already, that stays.
emulate_arm64() {
    local registry=$target/proc/sys/fs/binfmt_misc
    inside apt-get -q -y -o Acquire::Retries=3 --no-install-recommends install qemu-user
    mountpoint -q "$registry" || mount -t binfmt_misc binfmt_misc "$registry" ||
        die "this kernel takes no emulators (binfmt_misc)" "modprobe binfmt_misc"
    if compgen -G "$registry/*aarch64*" >/dev/null; then return 0; fi
    # An ELF file of 64 bits for the machine 183. The kernel opens the emulator now, so it is found in any root (F), and gives
    # it the name that a program is called by (P).
    # shellcheck disable=SC2016  # the shell inside writes, for the kernel looks for the emulator in its root
    inside sh -c 'printf "%s" "$1" >/proc/sys/fs/binfmt_misc/register' sh \
        ':hsi-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64:PF'
    # shellcheck disable=SC2064  # this registry
    trap "echo -1 >'$registry/hsi-aarch64'" EXIT
}

# make_arm64 NAME PACKAGE...: the same distribution for 64-bit ARM in target/arm64, made when it is not there, with these
# packages. What is compiled for it finds headers and libraries there; what runs in target finds the libraries, too, for
# these lie in folders that bear the architecture's name. (Two architectures in one root would do but for packages that were
# built once more for one of them: dpkg takes no two versions of one.)
make_arm64() {
    local distribution=$1 outer=$target arm=$target/arm64 libraries=usr/lib/aarch64-linux-gnu link name
    shift
    emulate_arm64
    if [ ! -e "$arm/etc/distribution-is-complete" ]; then
        say "$distribution for arm64 in $arm"
        rm -rf --one-file-system "$arm"
        mkdir -p "$arm"
        target=$arm bootstrap_debian "$distribution" --arch=arm64
        touch "$arm/etc/distribution-is-complete"
    fi
    mount -t proc proc "$arm/proc"
    mkdir -p "$arm/dev/pts"
    mount --bind "$outer/dev/pts" "$arm/dev/pts" # apt writes its log by a terminal
    ln -sf pts/ptmx "$arm/dev/ptmx"
    cp -L /etc/resolv.conf "$arm/etc/resolv.conf"
    if [ -e "$outer/etc/apt/apt.conf.d/90mirror-may-lag" ]; then cp "$outer/etc/apt/apt.conf.d/90mirror-may-lag" "$arm/etc/apt/apt.conf.d/"; fi
    target=$arm inside apt-get -q update
    target=$arm inside apt-get -q -y -o Acquire::Retries=3 --no-install-recommends install "$@"
    target=$arm inside apt-get clean
    for link in "$arm"/usr/lib/*.so.*; do # those that lie in no such folder
        if [ -e "$link" ] && [ ! -e "$arm/$libraries/${link##*/}" ]; then cp -a "$link" "$arm/$libraries/"; fi
    done
    mkdir -p "$outer/$libraries"
    mount --bind "$arm/$libraries" "$outer/$libraries"
    ln -sfn aarch64-linux-gnu/ld-linux-aarch64.so.1 "$outer/usr/lib/ld-linux-aarch64.so.1"
    for link in "$arm"/etc/alternatives/*-aarch64-linux-gnu; do
        name=${link##*/}
        ln -sfn "$(readlink "$link")" "$outer/etc/alternatives/$name"
    done
}

# inside COMMAND...: runs it in the distribution, as root.
inside() {
    chroot "$target" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        "$@" </dev/null
}
