# Shared by the scripts beside it; sourced, not run.

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Package names of the given lists, without the comments.
package_names() { sed -e 's/#.*//' -e 's/[[:space:]].*//' -e '/^$/d' "$@"; }

# Installs what is missing of the given lists. Touches nothing, and needs no rights, when all is there.
install_missing() {
  local wanted present missing
  mapfile -t wanted < <(package_names "$@")
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    printf 'Not a Debian system, so nothing is installed here. Needed, by their Debian names:\n  %s\n' \
           "${wanted[*]}"
    return
  fi
  present=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "${wanted[@]}" \
            2>/dev/null | sed -n 's/ installed$//p' || true)
  mapfile -t missing < <(printf '%s\n' "${wanted[@]}" | grep -vxF -e "$present" || true)
  [[ ${#missing[@]} -eq 0 ]] && return

  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  if [[ $EUID -ne 0 ]]; then
    command -v sudo >/dev/null ||
      die "packages are missing and neither root nor sudo is there to install them; as root, run:" \
          "apt-get install --no-install-recommends ${missing[*]}"
    as_root=(sudo "${as_root[@]}")
  fi
  say "Installing ${missing[*]}"
  local install=("${as_root[@]}" apt-get install --yes -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300
                 --no-install-recommends "${missing[@]}")
  # A fresh image has no package lists at all; an old one may have lists that point nowhere.
  if ! apt-cache show "${missing[@]}" >/dev/null 2>&1; then
    "${as_root[@]}" apt-get update -qq
    "${install[@]}"
  elif ! "${install[@]}"; then
    "${as_root[@]}" apt-get update -qq
    "${install[@]}"
  fi
}

# Configures a preset and builds the given targets with every core.
#   build PRESET TARGET...
build() {
  local preset=$1
  shift
  say "Building $preset: $*"
  cmake --preset "$preset" >"build/configure-$preset.log" 2>&1 ||
    { cat "build/configure-$preset.log"; die "configuring the preset $preset failed"; }
  cmake --build --preset "$preset" -j "$(nproc)" --target "$@"
}

# What every script sets before it builds or starts anything.
prepare_environment() {
  mkdir -p build
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  [[ -n ${HOME:-} ]] || export CCACHE_DIR=$PWD/build/ccache
  # Open MPI refuses to start as root, and with more ranks than cores, unless told.
  if [[ $EUID -eq 0 ]]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
  export OMPI_MCA_rmaps_base_oversubscribe=1
}
