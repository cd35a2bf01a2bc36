// The Go toolchain that builds the pinned test tools, fetched as a module when the machine has none.
module dayfly.dev/tests/tools/go

go 1.19

require golang.org/toolchain v0.0.1-go1.26.8.linux-amd64
