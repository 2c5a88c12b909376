# SPDX-License-Identifier: MIT
# Another distribution in a folder, for scripts that test there. Sourced after common.sh, by root, in a mount namespace of
# its own (own_mounts), so that the mounts end with the script whatever happens.

# own_mounts SCRIPT ARGUMENTS...: checks what is needed, and starts the script anew with mounts of its own.
own_mounts() {
    [ "$(id -u)" = 0 ] || die "a distribution in a folder needs root" "Run this script as root."
    command -v debootstrap >/dev/null || die "debootstrap is missing" "apt-get install debootstrap"
    if [ -z "${HSI_OWN_MOUNTS:-}" ]; then exec env HSI_OWN_MOUNTS=yes unshare --mount "$@"; fi
}

# make_distribution NAME FOLDER: bookworm, trixie or forky in FOLDER, made when it is not there. HSI_DEBIAN_MIRROR names the
# mirror (default: the one that apt uses here). Sets target, which inside() takes.
make_distribution() {
    local distribution=$1 mirror steps
    target=$2
    if [ ! -e "$target/etc/distribution-is-complete" ]; then
        say "$distribution in $target"
        mirror=${HSI_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE) $(LABEL)' 'Created-By: Packages' 'Origin: Debian' |
            awk '$2 == "Debian" { print $1; exit }')}
        [ -n "$mirror" ] || die "apt knows no mirror of Debian here" "Name one in HSI_DEBIAN_MIRROR."
        # A debootstrap that is older than the distribution has no steps of its name; all are made as unstable is.
        steps=/usr/share/debootstrap/scripts/$distribution
        [ -e "$steps" ] || steps=/usr/share/debootstrap/scripts/sid
        rm -rf --one-file-system "$target"
        mkdir -p "$target"
        debootstrap --variant=minbase "$distribution" "$target" "$mirror" "$steps"
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

# inside COMMAND...: runs it in the distribution, as root.
inside() {
    chroot "$target" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        "$@" </dev/null
}
