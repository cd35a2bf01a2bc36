# dayfly: `make` builds, `make demo` shows, `make check` tests, `make help` lists the rest.
#
# One build directory a variant: `make VARIANT=asan` builds into build/asan with AddressSanitizer and
# UndefinedBehaviorSanitizer, VARIANT=tsan with ThreadSanitizer, VARIANT=clang with clang.
# `make TERRAKUBE=0 …` leaves out what the programs do for a Terrakube, and hiredis: build/without-terrakube.
# `make ARCH=arm64 …` builds for another machine than this one, into build/arm64.

VARIANT ?= release
TERRAKUBE ?= 1
VERSION := $(shell cat VERSION)
ARCH ?= $(NATIVE)
NATIVE := $(shell dpkg --print-architecture)
# What tools/setup brings for this architecture: libraries, and for another machine its headers and Debian's libraries.
PARTS := build$(if $(filter-out $(NATIVE),$(ARCH)),/$(ARCH))
ifeq ($(VARIANT),release)
B := $(PARTS)
else
B := $(PARTS)/$(VARIANT)
endif
ifeq ($(TERRAKUBE),0)
B := $(B)/without-terrakube
endif

WARN := -Wall -Wextra -Wconversion -Wshadow -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes \
        -Wvla -Wundef -Wwrite-strings -Wcast-qual \
        -Wno-missing-field-initializers -Werror
# In every build that ships. clang 14 has no zero-init, and sanitizers would not see what it hides.
HARDENING := -D_FORTIFY_SOURCE=3 -fstack-clash-protection -ftrivial-auto-var-init=zero
CFLAGS_release := -O2 -g -ffunction-sections -fdata-sections $(HARDENING)
CFLAGS_clang   := -O1 -g
# Sanitizers hide from gcc what bounds a value: its guesses about truncation are left to the other builds.
CFLAGS_asan    := -O1 -g -Wno-format-truncation -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_tsan    := -O1 -g -Wno-format-truncation -fsanitize=thread
CFLAGS_fuzz    := -O1 -g -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all
LDFLAGS_release := -Wl,--gc-sections -Wl,-z,relro,-z,now
# The tests start these programs tens of thousands of times: without 200,000 relocations a start costs a fifth less.
# gold, which binutils brings, links the hundreds of test programs in half the time.
LDFLAGS_asan    := -no-pie -fsanitize=address,undefined -fuse-ld=gold
LDFLAGS_tsan    := -fsanitize=thread -fuse-ld=gold
LDFLAGS_fuzz    := -fsanitize=address,undefined,fuzzer
# What was compiled before, here or in another checkout, is not compiled again.
CCACHE := $(shell command -v ccache)
ifneq ($(CCACHE),)
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1
endif
CROSS := $(if $(filter $(NATIVE),$(ARCH)),,aarch64-linux-gnu-gcc --sysroot=$(CURDIR)/$(PARTS)/sysroot)
CC := $(CCACHE) $(if $(filter clang fuzz,$(VARIANT)),clang,$(or $(CROSS),gcc))

CPPFLAGS := -D_GNU_SOURCE -DDF_VERSION='"$(VERSION)"' -I. -isystem $(PARTS)/curl/include -isystem $(PARTS)/microhttpd/include \
            -isystem $(PARTS)/hiredis/include
BRANCHES := $(if $(filter x86_64-%,$(shell $(CC) -dumpmachine)),-fcf-protection=full,-mbranch-protection=standard)
CFLAGS := -std=gnu17 -fstack-protector-strong $(BRANCHES) -fPIE $(WARN) $(CFLAGS_$(VARIANT)) $(EXTRA_CFLAGS)
LDFLAGS := -pie -Wl,--as-needed $(LDFLAGS_$(VARIANT))
# libarchive and libcurl are linked statically: the shared ones drag in 40 libraries and 36 MB. Debian 12's libmicrohttpd is too old.
ARCHIVE_LIBS := -l:libarchive.a -lz -lzstd -llzma -lbz2 -lnettle
REDIS_LIBS := $(if $(filter 0,$(TERRAKUBE)),,$(PARTS)/hiredis/lib/libhiredis_ssl.a $(PARTS)/hiredis/lib/libhiredis.a)
COMMON_LIBS := -lcjson -lyaml -l:libexpat.a $(PARTS)/curl/lib/libcurl.a $(REDIS_LIBS) $(ARCHIVE_LIBS) -lssl -lcrypto -lpthread -lm
SPAWNER_LIBS := $(PARTS)/microhttpd/lib/libmicrohttpd.a -lgnutls -lsqlite3

# What is for Terrakube alone, and what stands in for it in a build without: whoever calls it is the same in both.
TERRAKUBE_SRC := common/redis/%.c common/terrakube/%.c runner/terrakube/%.c spawner/terrakube/%.c \
                 $(foreach t,terrakube_% jdk redis truststore,tests/unit/test_$(t).c tests/fuzz/fuzz_$(t).c tests/tools/$(t).c)
LEFT_OUT := $(if $(filter 0,$(TERRAKUBE)),$(TERRAKUBE_SRC),%/without/terrakube.c tests/unit/test_without_terrakube%) \
            spawner/main.c runner/main.c runner/platform/main.c
sources = $(filter-out $(LEFT_OUT),$(sort $(wildcard $(1))))
COMMON_SRC := $(call sources,common/*/*.c)
SPAWNER_SRC := $(call sources,spawner/*.c spawner/*/*.c spawner/*/*/*.c)
RUNNER_SRC := $(call sources,runner/*.c runner/*/*.c)
UNIT_SRC := $(call sources,tests/unit/test_*.c)
FUZZ_SRC := $(call sources,tests/fuzz/fuzz_*.c)
BENCH_SRC := $(call sources,tests/bench/bench_*.c)
TOOL_SRC := $(call sources,tests/tools/*.c)
ALL_SRC := $(COMMON_SRC) $(SPAWNER_SRC) $(RUNNER_SRC) spawner/main.c runner/main.c runner/platform/main.c
obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
UNIT_BIN := $(patsubst tests/unit/%.c,$(B)/tests/%,$(UNIT_SRC))
BENCH_BIN := $(patsubst tests/bench/%.c,$(B)/bench/%,$(BENCH_SRC))
TOOL_BIN := $(patsubst tests/tools/%.c,$(B)/tools/%,$(TOOL_SRC))
FUZZ_BIN := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(FUZZ_SRC))
REPLAY_BIN := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(FUZZ_SRC))

# Commands are shown by what they make; `make V=1` shows them whole.
ifneq ($(V),1)
SAY = @printf '  %-4s %s\n'
Q := @
else
SAY := @:
endif
JOBS := $(shell nproc)

## build build/dayfly, dayfly-runner and dayfly-platform, after installing what that needs
.PHONY: all
all: setup-build
	@$(MAKE) --no-print-directory -j$(JOBS) programs

.PHONY: programs
programs: $(B)/dayfly $(B)/dayfly-runner $(B)/dayfly-platform

.PHONY: setup-build setup-check setup-images
setup-build setup-check setup-images: setup-%:
	@ARCH=$(ARCH) tools/setup $*

$(B)/libcommon.a: $(call obj,$(COMMON_SRC))
$(B)/libspawner.a: $(call obj,$(SPAWNER_SRC))
$(B)/librunner.a: $(call obj,$(RUNNER_SRC))
$(B)/lib%.a:
	@mkdir -p $(@D) && rm -f $@
	$(SAY) AR $@
	$(Q)$(AR) crs $@ $^

# The runner has little to allocate, and a sanitizer brings an allocator of its own. libfaketime and jemalloc wait for each other:
# tests/integration/test_clocks.py runs the program with the C library's.
LIBC_BIN := $(B)/tools/dayfly-libc
ALLOCATOR :=
$(B)/dayfly: ALLOCATOR := $(if $(filter release clang,$(VARIANT)),-l:libjemalloc_pic.a)
$(B)/dayfly $(LIBC_BIN): $(call obj,spawner/main.c) $(B)/libspawner.a $(B)/libcommon.a
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(SPAWNER_LIBS) $(ALLOCATOR) $(COMMON_LIBS)

$(B)/dayfly-runner: $(call obj,runner/main.c) $(B)/librunner.a $(B)/libcommon.a
	$(SAY) LD $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(COMMON_LIBS)

$(B)/dayfly-platform: $(call obj,runner/platform/main.c) $(B)/librunner.a $(B)/libcommon.a
	$(SAY) LD $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(COMMON_LIBS)

# A checkout that was set up before a library was added.
BUILT_LIBS := $(addprefix $(PARTS)/,curl microhttpd hiredis)
$(BUILT_LIBS):
	@ARCH=$(ARCH) tools/setup build

$(B)/obj/%.o: %.c VERSION | $(if $(REDIS_LIBS),$(BUILT_LIBS),$(filter-out $(PARTS)/hiredis,$(BUILT_LIBS)))
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# The assembler reads it (.incbin); the compiler's dependencies do not know.
$(B)/obj/spawner/api/openapi.o: spawner/api/openapi.yaml

# Tests, benchmarks and test tools may use every library.
TEST_LIBS = $(B)/libspawner.a $(B)/librunner.a $(B)/libcommon.a
$(B)/tests/%: $(B)/obj/tests/unit/%.o $(B)/libspawner.a $(B)/librunner.a $(B)/libcommon.a
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $< $(TEST_LIBS) $(SPAWNER_LIBS) $(COMMON_LIBS) -lcmocka
$(B)/tests/test_buf: LDFLAGS += -Wl,--wrap=free
$(B)/bench/%: $(B)/obj/tests/bench/%.o $(B)/libspawner.a $(B)/librunner.a $(B)/libcommon.a
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $< $(TEST_LIBS) $(SPAWNER_LIBS) $(COMMON_LIBS)
$(B)/tools/%: $(B)/obj/tests/tools/%.o $(B)/libspawner.a $(B)/librunner.a $(B)/libcommon.a
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $< $(TEST_LIBS) $(SPAWNER_LIBS) $(COMMON_LIBS) -lcmocka

# Tests of the model that write down what they show it.
RECORD_BIN := $(addprefix $(B)/record/,model model_arguments model_source model_workflow placement)
$(B)/record/%: $(B)/obj/tests/unit/test_%.o $(B)/obj/tests/unit/record_admit.o $(B)/libspawner.a $(B)/librunner.a $(B)/libcommon.a
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(Q)$(CC) $(LDFLAGS) -Wl,--wrap=df_model_admit -Wl,--wrap=df_placement_check -o $@ $(filter %.o,$^) \
	  $(TEST_LIBS) $(SPAWNER_LIBS) $(COMMON_LIBS) -lcmocka

.PHONY: unit-programs unit-objects bench-programs tool-programs
unit-programs: $(UNIT_BIN)
# For the warnings, where other variants run them.
unit-objects: $(call obj,$(UNIT_SRC))
bench-programs: $(BENCH_BIN)
tool-programs: $(TOOL_BIN) $(RECORD_BIN) $(LIBC_BIN)

## run the unit tests; `make unit T=buf` runs tests/unit/test_buf.c alone
.PHONY: unit
unit: $(if $(T),$(B)/tests/test_$(T),$(UNIT_BIN))
	@for t in $^; do $$t || exit 1; done

WRAPPED := malloc calloc realloc reallocarray strdup strndup vasprintf
## fail every allocation of common/ in turn, under AddressSanitizer
.PHONY: torture
torture:
	@$(MAKE) --no-print-directory VARIANT=asan build/asan/torture
	build/asan/torture
build/asan/torture: build/asan/obj/tests/torture/torture.o build/asan/libcommon.a
	$(SAY) LD $@
	$(Q)$(CC) $(LDFLAGS) $(WRAPPED:%=-Wl,--wrap=%) -o $@ $^ $(COMMON_LIBS)

# Fuzzers are built by clang with the sanitizers; `make fuzz F=json SECONDS=60` runs one for a while.
.PHONY: fuzz-programs
fuzz-programs:
	@$(MAKE) --no-print-directory VARIANT=fuzz build-fuzz
ifeq ($(VARIANT),fuzz)
.PHONY: build-fuzz
build-fuzz: $(FUZZ_BIN)
build/fuzz/fuzz_%: build/fuzz/obj/tests/fuzz/fuzz_%.o $(B)/libspawner.a $(B)/librunner.a $(B)/libcommon.a
	$(SAY) LD $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $< $(TEST_LIBS) $(SPAWNER_LIBS) $(COMMON_LIBS)
endif
# The same parsers over their corpora, from what is built for the other tests: `make VARIANT=asan replays`.
.PHONY: replays
replays: $(REPLAY_BIN)
$(B)/fuzz/fuzz_%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/obj/tests/fuzz/replay.o $(B)/libspawner.a $(B)/librunner.a $(B)/libcommon.a
	$(SAY) LD $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(TEST_LIBS) $(SPAWNER_LIBS) $(COMMON_LIBS)

## fuzz a parser for a while: `make fuzz F=json SECONDS=60`
.PHONY: fuzz
SECONDS ?= 60
fuzz: fuzz-programs
	@mkdir -p build/fuzz/work/$(F)
	build/fuzz/fuzz_$(F) -max_total_time=$(SECONDS) build/fuzz/work/$(F) tests/fuzz/corpus/$(F)

# What clang warns of in the tests: it need not make code for that. What it warns of in the product, clang-tidy says.
ifeq ($(VARIANT),clang)
.PHONY: warnings
warnings: $(patsubst %.c,$(B)/obj/%.ok,$(UNIT_SRC) $(BENCH_SRC) $(TOOL_SRC) $(FUZZ_SRC) tests/fuzz/replay.c)
$(B)/obj/%.ok: %.c
	@mkdir -p $(@D)
	$(SAY) WARN $<
	$(Q)clang $(CPPFLAGS) $(CFLAGS) -fsyntax-only -MMD -MP -MT $@ -MF $(@:.ok=.d) $<
	@touch $@
endif

## clang-format the sources; `make tidy` looks at them with clang-tidy
.PHONY: format
.PHONY: format-check tidy
FORMAT_SRC = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')
format:
	clang-format -i $(FORMAT_SRC)
format-check:
	@printf '%s\n' $(FORMAT_SRC) | xargs -P $(JOBS) -n 50 clang-format --dry-run -Werror

## install the pre-commit hook: format of what is staged, tests/style, the quick check
.PHONY: hooks
hooks:
	@mkdir -p "$$(git rev-parse --git-path hooks)"
	@hook="$$(git rev-parse --git-path hooks)/pre-commit"; script="$(CURDIR)/tools/pre-commit"; \
	  [ "$$(readlink "$$hook")" = "$$script" ] || ln -s "$$script" "$$hook"

# Stamps remember the clean files until a header changes, tests/tidy by what they consist of. The static analyzer follows 20,000 states of
# a function, which takes a fifth of the time of all 225,000: those are for `make soak`.
TIDY_NODES ?= 20000
TIDY := build/tidy/$(TIDY_NODES)
TIDY_STAMPS := $(patsubst %.c,$(TIDY)/%.stamp,$(ALL_SRC) $(sort $(wildcard */without/*.c)))
tidy: $(TIDY_STAMPS)
$(TIDY)/%.stamp: %.c .clang-tidy $(sort $(wildcard common/*/*.h spawner/*.h spawner/*/*.h spawner/*/*/*.h runner/*.h runner/*/*.h))
	@mkdir -p $(@D)
	@tests/tidy $< $(CPPFLAGS) -std=gnu17 $(filter-out -Werror,$(WARN)) -Xclang -analyzer-config -Xclang max-nodes=$(TIDY_NODES)
	@touch $@

## the main job in front of your eyes: plan, approve, apply, change, destroy
.PHONY: demo
demo: all
	@tests/demo

## the same with a pod for each step, on KUBECONFIG's cluster or a one-node Kubernetes made here
.PHONY: demo-kubernetes
demo-kubernetes: setup-build setup-images
	@$(if $(KUBECONFIG),,tools/setup cluster)
	@$(MAKE) --no-print-directory -j$(JOBS) programs
	@WITH_TOFU=$$(tests/tools/get-tofu) images/build
	@tests/demo-kubernetes

## start a real one-node Kubernetes for tests and for you (as root); `make cluster-down` removes it
.PHONY: cluster-up cluster-down
cluster-up cluster-down: cluster-%:
	@tests/cluster/cluster $*
	@if [ $* = down ]; then tests/cluster/cluster verify-gone; fi

# With podman or docker at hand buildah is not needed.
## container images of spawner, runner, platform and the executor of Terrakube, as OCI archives in build/images
.PHONY: images
images: $(if $(shell command -v buildah podman docker),setup-build,setup-images)
	@$(MAKE) --no-print-directory -j$(JOBS) programs
	@ARCH=$(ARCH) images/build spawner runner platform terrakube

# What the API server is to refuse comes from the tables of the model: after a change of them.
## make the custom resource definitions in charts/dayfly/files/crds anew
.PHONY: crds
crds: $(B)/tools/schemas
	@for k in $$($< list); do \
	  $< $$k >charts/dayfly/files/crds/$$k.yaml || exit 1; done

## make the schemas of documents in spawner/api/openapi.yaml anew
.PHONY: openapi
openapi: $(B)/tools/schemas
	@$< openapi spawner/api/openapi.yaml >$(B)/openapi.yaml && cp $(B)/openapi.yaml spawner/api/

## make the tables of keys and commands in docs/configuration.md and docs/cli.md anew
.PHONY: docs
docs: $(B)/tools/doc_tables
	@for p in docs/configuration.md docs/cli.md; do \
	  $< $$p >$(B)/page.md && cp $(B)/page.md $$p || exit 1; done

PREFIX ?= /usr/local
BINDIR := $(PREFIX)/bin
DATADIR := $(PREFIX)/share
UNITDIR ?= $(PREFIX)/lib/systemd/system
## install programs, manual pages, completions and the systemd unit below PREFIX (/usr/local)
.PHONY: install-programs
install-programs: all
	@$(MAKE) --no-print-directory install-files

.PHONY: install-files
install-files: man
	install -D -t $(DESTDIR)$(BINDIR) $(B)/dayfly $(B)/dayfly-runner $(B)/dayfly-platform
	install -D -m 644 -t $(DESTDIR)$(DATADIR)/man/man1 $(B)/man/*.1
	install -D -m 644 -t $(DESTDIR)$(DATADIR)/doc/dayfly packaging/dayfly.yaml docs/*.md
	install -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(DATADIR)/bash-completion/completions
	install -d $(DESTDIR)$(DATADIR)/zsh/site-functions $(DESTDIR)$(DATADIR)/fish/vendor_completions.d
	sed 's,@BINDIR@,$(BINDIR),' packaging/dayfly.service >$(DESTDIR)$(UNITDIR)/dayfly.service
	$(B)/dayfly completion bash >$(DESTDIR)$(DATADIR)/bash-completion/completions/dayfly
	$(B)/dayfly completion zsh >$(DESTDIR)$(DATADIR)/zsh/site-functions/_dayfly
	$(B)/dayfly completion fish >$(DESTDIR)$(DATADIR)/fish/vendor_completions.d/dayfly.fish

# What install-programs makes in a PREFIX of its own; those of the system stay, also if they are empty.
OWN_DIRS := $(patsubst $(PREFIX)/%,%,$(filter $(PREFIX)/%,$(BINDIR) $(UNITDIR) $(addprefix $(DATADIR)/,man/man1 doc \
            bash-completion/completions zsh/site-functions fish/vendor_completions.d)))
## remove what install-programs installed below PREFIX; data and configuration stay
.PHONY: uninstall-programs
uninstall-programs:
	rm -f $(addprefix $(DESTDIR)$(BINDIR)/,dayfly dayfly-runner dayfly-platform) $(DESTDIR)$(UNITDIR)/dayfly.service
	rm -f $(DESTDIR)$(DATADIR)/man/man1/dayfly.1 $(DESTDIR)$(DATADIR)/man/man1/dayfly-*.1
	rm -f $(DESTDIR)$(DATADIR)/bash-completion/completions/dayfly $(DESTDIR)$(DATADIR)/zsh/site-functions/_dayfly
	rm -f $(DESTDIR)$(DATADIR)/fish/vendor_completions.d/dayfly.fish
	rm -rf $(DESTDIR)$(DATADIR)/doc/dayfly
	$(if $(filter /usr /usr/local,$(PREFIX)),,@cd $(DESTDIR)$(PREFIX) && for d in $(OWN_DIRS); do \
	  [ ! -d $$d ] || rmdir -p --ignore-fail-on-non-empty $$d; done)

## the manual pages, in build/man, from the same table as --help
.PHONY: man
man: programs
	@rm -rf $(B)/man && mkdir -p $(B)/man
	$(Q)$(B)/dayfly help --man $(B)/man
	$(Q)for page in dayfly-runner dayfly-platform; do \
	  sed 's/@VERSION@/$(VERSION)/' packaging/$$page.1 >$(B)/man/$$page.1 || exit 1; done

## a Debian package, in build/deb
.PHONY: deb
deb: all
	@packaging/deb

# The operator, with the targets that people know from others. What is done is done to the cluster of kubectl's current context.
NAMESPACE ?= dayfly
NAME ?= dayfly
IMG ?= localhost/dayfly-spawner:$(VERSION)
# dayfly-runner for dayfly-spawner; for any other name that name with -runner behind it, before the tag.
IMG_FILE := $(notdir $(IMG))
IMG_NAME := $(firstword $(subst :, ,$(IMG_FILE)))
RUNNER_NAME := $(if $(findstring dayfly-spawner,$(IMG_NAME)),$(subst dayfly-spawner,dayfly-runner,$(IMG_NAME)),$(IMG_NAME)-runner)
RUNNER_IMG ?= $(patsubst %$(IMG_FILE),%$(patsubst $(IMG_NAME)%,$(RUNNER_NAME)%,$(IMG_FILE)),$(IMG))
ifneq ($(filter docker-build docker-push deploy build-installer,$(MAKECMDGOALS)),)
ifeq ($(IMG),$(RUNNER_IMG))
$(error IMG and RUNNER_IMG are both $(IMG): spawner and runner are two images, give RUNNER_IMG a name of its own or leave it out)
endif
endif
KUBECTL ?= kubectl
CONTAINER_TOOL ?=
RENDER = @mkdir -p build && NAMESPACE=$(NAMESPACE) IMG=$(IMG) RUNNER_IMG=$(RUNNER_IMG) NAME=$(NAME) KUBECTL='$(KUBECTL)' rbac/render
APPLY = $(KUBECTL) apply --server-side --force-conflicts --field-manager dayfly-make
## the custom resource definitions, into the cluster of kubectl's context
.PHONY: install
install:
	$(APPLY) -k rbac/crds

## take them away, and with them every Executor, Run and TaskAction; refused while that would leave something half deleted
.PHONY: uninstall
uninstall:
	@KUBECTL="$(KUBECTL)" rbac/may-uninstall
	$(KUBECTL) delete --ignore-not-found -k rbac/crds

## the operator into NAMESPACE (dayfly), with its definitions: `make deploy IMG=… RUNNER_IMG=…`
.PHONY: deploy
deploy: install
	$(RENDER) operator | $(APPLY) -f -

## keep the names of people in custom resources: the webhook and the policy of a running operator (docs/operator.md)
.PHONY: admission
admission:
	$(RENDER) admission | $(APPLY) -f -

## take the operator away; its namespace stays, with every Executor and its state, and so do the definitions
.PHONY: undeploy
undeploy:
	@# Its pods first: the leader gives the Lease back while it may.
	$(KUBECTL) -n $(NAMESPACE) delete deployment dayfly --ignore-not-found --cascade=foreground
	@KUBECTL="$(KUBECTL)" rbac/let-go $(NAMESPACE)
	$(RENDER) inside | $(KUBECTL) delete --ignore-not-found -f -

DIST ?= dist
## dist/install.yaml: everything for one `kubectl apply -f`
.PHONY: build-installer
build-installer:
	@mkdir -p $(DIST)
	$(RENDER) all >$(DIST)/install.yaml

## images of spawner and runner, with the tofu of PATH (WITH_TOFU=FILE|none), named IMG and RUNNER_IMG; in build/images and the tool's own store
.PHONY: docker-build
docker-build: $(if $(shell command -v buildah podman docker),setup-build,setup-images)
	@$(MAKE) --no-print-directory -j$(JOBS) programs
	@tool=$$(images/tool) && WITH_TOFU="$$tool" IMAGE_TOOL=$(CONTAINER_TOOL) IMG=$(IMG) RUNNER_IMG=$(RUNNER_IMG) images/build

## push them to their registry; PUSH_FLAGS=… for the tool
.PHONY: docker-push
docker-push:
	@IMAGE_TOOL=$(CONTAINER_TOOL) IMG=$(IMG) RUNNER_IMG=$(RUNNER_IMG) images/push $(PUSH_FLAGS)

## write what the chart has from elsewhere: the admission policy, parts of its schema, the table of values in its README
.PHONY: chart
chart:
	@$$(tests/tools/get-python) charts/sync

## run every test suite; the last line counts them all
.PHONY: check
check: setup-check
	@tests/run

## the quick look before a commit: release build, unit tests, style
.PHONY: quick
quick: setup-check
	@tests/run --quick

## what is long by nature: fuzzing (DAYFLY_FUZZ_SECONDS=600 each), both sweeps, ten thousand objects
.PHONY: soak
soak: setup-check
	@tests/run --soak

## kill the spawner at every one of its system calls during a provision (check: at 100)
.PHONY: crash-sweep
## kill the spawner at random moments of 100 runs in pods, replicas of 200, and all that 60 workflows need (check: of 30, 16 and 12); DAYFLY_FAULT_SEED=… repeats one
.PHONY: fault-sweep
crash-sweep fault-sweep: setup-check
	@tests/run --soak build $@

## measure, and write the table of docs/benchmarks.md
.PHONY: bench
bench: setup-check
	@$(MAKE) --no-print-directory -j$(JOBS) programs bench-programs
	@tests/bench/run --write

## this list
.PHONY: help
help:
	@awk '/^## / { text = substr($$0, 4) } \
	  /^\.PHONY: / && text { printf "make %-16s %s\n", $$2 == "all" ? "" : $$2, text; text = "" }' $(MAKEFILE_LIST)

## remove build/
.PHONY: clean
clean:
	@if [ -d build/cluster ]; then tests/cluster/cluster down; fi
	rm -rf build

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
