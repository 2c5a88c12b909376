# SPDX-License-Identifier: MIT
# Installs another distribution in a folder, for scripts that test there. Source it after common.sh, as root, in a
# separate mount namespace (own_mounts), so that the mounts always end with the script.

# own_mounts SCRIPT ARGUMENTS...: checks the requirements, and restarts the script with its own mounts.
own_mounts() {
    [ "$(id -u)" = 0 ] || die "a distribution in a folder needs root" "Run this script as root."
    command -v debootstrap >/dev/null || die "debootstrap is missing" "apt-get install debootstrap"
    if [ -z "${HSI_OWN_MOUNTS:-}" ]; then exec env HSI_OWN_MOUNTS=yes unshare --mount "$@"; fi
}

# bootstrap_debian NAME [options of debootstrap], bootstrap_ubuntu NAME: bootstraps the distribution in target.
bootstrap_debian() {
    local mirror steps distribution=$1
    shift
    mirror=${HSI_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE) $(LABEL)' 'Created-By: Packages' 'Origin: Debian' |
        awk '$2 == "Debian" { print $1; exit }')}
    [ -n "$mirror" ] || die "apt knows no mirror of Debian here" "Name one in HSI_DEBIAN_MIRROR."
    # A debootstrap that is older than the distribution has no script for it; all distributions can use unstable's.
    steps=/usr/share/debootstrap/scripts/$distribution
    [ -e "$steps" ] || steps=/usr/share/debootstrap/scripts/sid
    debootstrap --variant=minbase "$@" "$distribution" "$target" "$mirror" "$steps"
}

bootstrap_ubuntu() {
    local mirror steps pocket keys=${HSI_UBUNTU_KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}
    mirror=${HSI_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
    # Without these keys, debootstrap would continue without checking signatures.
    [ -e "$keys" ] || die "the keys of Ubuntu's archive are missing" \
        "apt-get install ubuntu-keyring (Debian 13 and newer), or name their file in HSI_UBUNTU_KEYRING."
    # The same: all Ubuntu releases since 7.10 use this script.
    steps=/usr/share/debootstrap/scripts/$1
    [ -e "$steps" ] || steps=/usr/share/debootstrap/scripts/gutsy
    # GDAL and QGIS are in universe.
    debootstrap --variant=minbase --components=main,universe --keyring="$keys" "$1" "$target" "$mirror" "$steps"
    # A user's sources: the release with its updates. The mirror also has the security updates.
    for pocket in "" -updates -security; do
        echo "deb $mirror $1$pocket main universe"
    done >"$target/etc/apt/sources.list"
}

# make_distribution NAME FOLDER: bookworm, trixie, forky or noble in FOLDER, made if it is missing. HSI_DEBIAN_MIRROR
# names the mirror of the first three (default: the mirror of apt here), HSI_UBUNTU_MIRROR that of noble (default:
# Ubuntu's own) and HSI_UBUNTU_KEYRING the file of its keys. Sets target, which inside() uses.
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
    # Testing's Release file is valid for a week, but a mirror may be older.
    if [ "$distribution" = forky ]; then
        echo 'Acquire::Check-Valid-Until "false";' >"$target/etc/apt/apt.conf.d/90mirror-may-lag"
    fi
    mkdir -p "$target"/{home/hsi/source,ccache,data,proc,sys}
    mount -t proc proc "$target/proc"
    mount --rbind /sys "$target/sys" # contains a job's limits of memory and processors
    # Terminals for the tests of completion, separate from this machine's.
    mkdir -p "$target/dev/pts"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$target/dev/pts"
    ln -sf pts/ptmx "$target/dev/ptmx"
    cp -L /etc/resolv.conf "$target/etc/resolv.conf"
    inside apt-get -q update
}

# emulate_arm64: lets this kernel run programs for 64-bit ARM, with target's qemu-user, until the script ends. If the
# machine does so already, nothing changes.
emulate_arm64() {
    local registry=$target/proc/sys/fs/binfmt_misc
    inside apt-get -q -y -o Acquire::Retries=3 --no-install-recommends install qemu-user
    mountpoint -q "$registry" || mount -t binfmt_misc binfmt_misc "$registry" ||
        die "this kernel takes no emulators (binfmt_misc)" "modprobe binfmt_misc"
    if compgen -G "$registry/*aarch64*" >/dev/null; then return 0; fi
    # An ELF file of 64 bits for the machine 183. The kernel opens the emulator now, so that it works in any root (F), and
    # passes it the name by which a program is called (P).
    # shellcheck disable=SC2016  # the inner shell writes, since the kernel searches for the emulator in its root
    inside sh -c 'printf "%s" "$1" >/proc/sys/fs/binfmt_misc/register' sh \
        ':hsi-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64:PF'
    # shellcheck disable=SC2064  # this registry
    trap "echo -1 >'$registry/hsi-aarch64'" EXIT
}

# make_arm64 NAME PACKAGE...: the same distribution for 64-bit ARM in target/arm64, made if it is missing, with these
# packages. Compilers find headers and libraries there. Programs that run in target also find the libraries, since these
# are in folders with the architecture's name. (Two architectures in one root would fail for packages that were rebuilt
# for one of them, since dpkg does not accept two versions of a package.)
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
    mount --bind "$outer/dev/pts" "$arm/dev/pts" # apt writes its log through a terminal
    ln -sf pts/ptmx "$arm/dev/ptmx"
    cp -L /etc/resolv.conf "$arm/etc/resolv.conf"
    if [ -e "$outer/etc/apt/apt.conf.d/90mirror-may-lag" ]; then cp "$outer/etc/apt/apt.conf.d/90mirror-may-lag" "$arm/etc/apt/apt.conf.d/"; fi
    target=$arm inside apt-get -q update
    target=$arm inside apt-get -q -y -o Acquire::Retries=3 --no-install-recommends install "$@"
    target=$arm inside apt-get clean
    for link in "$arm"/usr/lib/*.so.*; do # libraries outside such folders
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

# inside COMMAND...: runs a command in the distribution, as root.
inside() {
    chroot "$target" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        "$@" </dev/null
}
