#!/usr/bin/env bash
# Windows and macOS from here: all crates and their unit tests are checked for them, and the C in them is compiled by Zig.
# Nothing is linked or run; CI does that on those systems. Exit code 75 if compilers cannot be had.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
environment || { echo "there is no Python environment for Zig here"; exit 75; }
"$bin/pip" install --quiet --disable-pip-version-check ziglang==0.17.0 || { echo "Zig cannot be installed here"; exit 75; }

# wrapped TARGET ZIG: Zig as the C compiler and archiver of a target, under the names in the variables that cargo's build
# scripts read. Zig names targets otherwise, so what the scripts say about them is left out.
wrapped() {
    local folder="$PWD/target/tools/zig-$1" name="${1//-/_}"
    mkdir -p "$folder"
    cat > "$folder/cc" << END
#!/usr/bin/env bash
kept=()
for argument; do
    case "\$argument" in
        --target=* | -mmacosx-version-min=* | -march=* | -arch | arm64) ;;
        *) kept+=("\$argument") ;;
    esac
done
exec "$bin/python" -m ziglang cc -target $2 "\${kept[@]}"
END
    printf '#!/usr/bin/env bash\nexec "%s/python" -m ziglang ar "$@"\n' "$bin" > "$folder/ar"
    chmod +x "$folder/cc" "$folder/ar"
    export "CC_$name=$folder/cc" "AR_$name=$folder/ar"
}

for pair in x86_64-pc-windows-gnu=x86_64-windows-gnu aarch64-apple-darwin=aarch64-macos; do
    target="${pair%%=*}"
    rustup target add "$target" 2> /dev/null || { echo "Rust for $target cannot be installed here"; exit 75; }
    wrapped "$target" "${pair##*=}"
    # No SDK of Apple's is needed to compile C that uses the C library alone, which Zig has.
    export SDKROOT=/
    cargo check --locked --quiet --target "$target" --workspace --lib --bins
    cargo check --locked --quiet --target "$target" --lib --profile test
    echo "$target: all crates compile"
done
