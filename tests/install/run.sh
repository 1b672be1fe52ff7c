#!/usr/bin/env bash
# Installs a build of kvkeep into an empty prefix and uses it from outside: by CMake and by pkg-config, shared and static,
# in C and in C++. Every program built is also run.
set -euo pipefail

usage() {
    echo "usage: tests/install/run.sh BUILD_DIR"
    echo "Installs the build in BUILD_DIR into a temporary prefix, builds the consumer project against it and runs it."
}

if [[ $# -ne 1 || $1 == --help ]]; then
    usage
    [[ $# -eq 1 ]] && exit 0
    exit 2
fi

build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

cmake --install "$build" --prefix "$prefix" >"$work/install.log"
libdir=$(dirname "$(find "$prefix" -name libkvkeep.so)")

echo "== exported symbols"
foreign=$(nm -D --defined-only "$libdir/libkvkeep.so" | awk '$3 !~ /^kvk_/ { print $3 }')
if [[ -n $foreign ]]; then
    echo "libkvkeep.so exports more than kvk_*: $foreign"
    exit 1
fi
declared=$(sed -n 's/^KVK_API.*[ *]\(kvk_[a-z_]*\)(.*/\1/p' "$prefix"/include/kvkeep/*.h | sort)
exported=$(nm -D --defined-only "$libdir/libkvkeep.so" | awk '{ print $3 }' | sort)
diff <(echo "$declared") <(echo "$exported") || {
    echo "what the headers declare (<) is not what libkvkeep.so exports (>)"
    exit 1
}
echo "$(wc -l <<<"$exported") functions, all kvk_*, all declared"

echo "== CMake: find_package(kvkeep)"
cmake -S "$here" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >"$work/configure.log"
cmake --build "$work/consumer" >"$work/build.log"
for program in c_shared c_static cpp_shared cpp_static; do
    "$work/consumer/$program"
    echo "$program runs"
done

export PKG_CONFIG_PATH=$libdir/pkgconfig
words() { # KIND: the compiler's words for a shared or a static program, one a line
    case $1 in
    shared) pkg-config --cflags --libs kvkeep && echo "-Wl,-rpath,$libdir" ;;
    static) echo -static && pkg-config --static --cflags --libs kvkeep ;;
    esac | tr ' ' '\n' | grep .
}
cp "$here/consumer.c" "$work/consumer.cpp"
for kind in shared static; do
    echo "== pkg-config: $kind"
    mapfile -t flags < <(words "$kind")
    gcc -std=c17 -Wall -Wextra -Wpedantic -Werror "$here/consumer.c" -o "$work/c_$kind" "${flags[@]}"
    "$work/c_$kind"
    echo "C runs"
    g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror "$work/consumer.cpp" -o "$work/cpp_$kind" "${flags[@]}"
    "$work/cpp_$kind"
    echo "C++ runs"
done

echo "== the installed examples"
mapfile -t flags < <(words shared)
for example in "$prefix"/share/doc/kvkeep/examples/*.c; do
    gcc -std=c17 -Wall -Wextra -Wpedantic -Werror "$example" -o "$work/example" "${flags[@]}" -lm
    "$work/example" >"$work/example.log"
    echo "$(basename "$example") runs"
done

echo "== the installed command and pages"
if [[ -e $build/bin/kvkeep ]]; then
    "$prefix/bin/kvkeep" --version
fi
for file in share/man/man1/kvkeep.1 share/man/man3/kvkeep.3 share/doc/kvkeep/LICENSE; do
    [[ -s $prefix/$file ]] || {
        echo "not installed: $file"
        exit 1
    }
done
