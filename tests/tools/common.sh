# Shared by the get-* scripts: where built tools are kept, and how one is built by one process at a time.
# Sourced with `set -eu` in force.
tools_dir=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dayfly/tools
mkdir -p "$cache"

say() {
    echo "$*" >&2
}

# Installs a Debian package that a tool is built with. As root; else says what is missing.
need_package() { # package
    dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' && return 0
    if [ "$(id -u)" != 0 ]; then
        say "Missing Debian package: $1 (apt-get install --no-install-recommends $1)"
        exit 1
    fi
    apt-get -qq update >&2
    DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends -y "$1" >/dev/null
}

# Builds Go programs of tests/tools/<name> into the cache, once, and prints their directory.
go_build() { # name version ldflags package...
    name=$1 version=$2 ldflags=$3
    shift 3
    dir=$cache/$name-$version
    if [ ! -e "$dir/.complete" ]; then
        exec 9>"$cache/.$name.lock"
        flock 9
    fi
    if [ ! -e "$dir/.complete" ]; then
        go=$("$tools_dir/get-go")
        say "Building $name $version (once, into $dir; it may take some minutes)"
        mkdir -p "$dir"
        (cd "$tools_dir/$name" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=0 "$go" build -trimpath \
            -ldflags "$ldflags" -o "$dir/" "$@") >&2
        touch "$dir/.complete"
    fi
    echo "$dir"
}

# Installs the Python packages that a file of tests/tools pins into a virtual environment of the cache, once, and prints its
# directory.
python_env() { # name requirements
    dir=$cache/$1-$(sha256sum "$tools_dir/$2" | cut -c1-16)
    if [ ! -e "$dir/.complete" ]; then
        exec 9>"$cache/.$1.lock"
        flock 9
    fi
    if [ ! -e "$dir/.complete" ]; then
        need_package python3-venv
        say "Installing the Python packages of tests/tools/$2 (once, into $dir)"
        rm -rf "$dir"
        /usr/bin/python3 -m venv "$dir" >&2
        "$dir/bin/pip" install --quiet --disable-pip-version-check -r "$tools_dir/$2" >&2
        touch "$dir/.complete"
    fi
    echo "$dir"
}

# Installs the Node package that tests/tools/<name> pins into the cache, once, with its digests; dir is its directory then.
npm_install() { # name
    dir=$cache/$1-$(sed -n "s/.*\"$1\": \"\([0-9.]*\)\".*/\1/p" "$tools_dir/$1/package.json")
    if [ ! -e "$dir/.complete" ]; then
        exec 9>"$cache/.$1.lock"
        flock 9
    fi
    if [ ! -e "$dir/.complete" ]; then
        command -v npm >/dev/null || need_package npm
        say "Installing ${dir##*/} (once, into $dir)"
        mkdir -p "$dir"
        cp "$tools_dir/$1/package.json" "$tools_dir/$1/package-lock.json" "$dir/"
        (cd "$dir" && npm ci --no-audit --no-fund --loglevel=error) >&2
        touch "$dir/.complete"
    fi
}
