# Every target works on a fresh machine with Go; check needs a C compiler too
# (for -race), and what .ci/run installs if nothing may be skipped.

plugins := $(notdir $(patsubst %/,%,$(wildcard plugins/*/)))
nested  := examples/hello examples/disk internal/tools/protogen
lint    := go tool -modfile=internal/tools/lint/go.mod
module  := $(shell go list -m)
version := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The cache is outside of the checkout: a fresh one is linted as fast.
export GOLANGCI_LINT_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/toolhost-lint

# All but race compiles in one way, so that the linter, the tests and what is built share
# the build cache. Linked statically, programs start faster, and a plugin needs no file of
# the system.
export CGO_ENABLED = 0
export GOFLAGS += -trimpath

.PHONY: build install tarball run test soak race rest lint proto generated bench check nested peers agents $(plugins)

# build makes bin/toolhost and bin/plugins/<name>, without debug information: a host hashes
# its plugins. Binaries that a group can write are refused at start, hence the chmod.
build: $(plugins)
	go build -ldflags '-s -w -X main.version=$(version)' -o bin/toolhost ./host
	chmod go-w bin bin/plugins bin/toolhost bin/plugins/*

$(plugins):
	go build -ldflags '-s -w' -o bin/plugins/$@ ./plugins/$@

# install puts the program and the plugins below PREFIX, where the program finds them.
PREFIX ?= /usr/local
install: build
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/toolhost/plugins
	install -m 755 bin/toolhost $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(plugins:%=bin/plugins/%) $(DESTDIR)$(PREFIX)/lib/toolhost/plugins/

# tarball makes what can be unpacked on a machine without Go: program, plugins and docs.
release := toolhost-$(version)-$(shell go env GOOS)-$(shell go env GOARCH)
tarball:
	rm -rf bin/$(release)
	$(MAKE) install PREFIX=/ DESTDIR=bin/$(release)
	cp -r README.md SECURITY.md CHANGELOG.md CONTRIBUTING.md ARCHITECTURE.md LICENSE config.hcl docs examples clients proto bin/$(release)/
	tar -C bin -czf bin/$(release).tar.gz --owner=0 --group=0 $(release)
	rm -rf bin/$(release)

# run builds everything and serves until Ctrl-C; it prints how the host is reached.
run: build
	bin/toolhost serve --config config.hcl

# Tests are linked without what debuggers need, which takes as long as the rest of the
# linking, and vetted by lint. A package has half an hour, for a busy machine. Tests mostly
# wait for programs and time-outs: one for each processor left half of the time of ./host
# unused.
gotest := go test -vet=off -ldflags=-s -timeout 30m -parallel $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))

# test runs every test once, a few rounds of those that repeat: it needs Go only.
test:
	$(gotest) ./...

# soak is test with all rounds of the tests that repeat, and with MCP servers that npm serves,
# which run without a network. It downloads 220 MB; their install scripts do not run.
soak: peers
	npm --prefix internal/tools/servers install --ignore-scripts --no-package-lock --no-audit --no-fund
	TOOLHOST_SOAK=1 $(gotest) -timeout 4h ./...

# race and rest together run every test once. rest runs without the race detector what
# it sees nothing in: packages whose tests start programs all the time, which it makes
# ten times as slow and does not look into; packages in which one goroutine computes;
# and tests in files with the tag "!race".
#
# race watches the other packages, and a host that is served, reloaded and called. It
# leaves SQLite out, which is C made into Go and takes five times as long.
unraced := ./bench ./host $(addprefix ./host/internal/,config config/condition decide/command decide/gitrepo decide/policy plugin/launch plugin/sandbox tools/schema) \
	./internal/archtest ./internal/hostilegit ./internal/landlock \
	./plugins/git ./plugins/memory ./plugins/memory/internal/vectors ./plugins/shell ./plugins/web ./plugins/web/internal/page ./sdk/proc \
	$(addprefix ./plugins/fs/internal/,dfa edit gitignore literal notebook page search textfile thumbnail)
race := $(gotest) -race -gcflags 'modernc.org/...=-race=false'
others := grep -vxF "$$(printf '%s\n' $(unraced))"

race: export GORACE = atexit_sleep_ms=0
race: export CGO_ENABLED = 1
race:
	$(race) $$(go list ./... | sed 's,^$(module),.,' | $(others))
	$(race) -run TestReloadUnderTraffic ./host

rest:
	$(gotest) $(unraced)
	files=$$(grep -l '^func Test' $$(grep -rl --include='*_test.go' '^//go:build.*!race' host internal plugins sdk)) && \
	names=$$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' $$files | paste -sd '|' -) && \
	$(gotest) -run "^($$names)\$$" $$(dirname $$files | sort -u | sed 's,^,./,' | $(others))

# nested tests the modules that ./... does not enter.
nested:
	for m in $(nested); do (cd $$m && go mod tidy -diff && go vet ./... && go test ./...) || exit 1; done

# golangci-lint runs all that go vet looks for, and more: govet in .golangci.yml.
lint:
	test -z "$$(go fix -diff ./... | tee /dev/stderr)"
	test -z "$$($(lint) gofumpt -l . | tee /dev/stderr)"
	$(lint) golangci-lint run ./...
	go mod tidy -diff

# proto generates the Go of the plugin contract.
proto:
	cd internal/tools/protogen && go run . ../../../proto toolplugin/v1/plugin.proto

# peers installs the MCP programs that the tests talk to.
peers:
	npm --prefix internal/tools/mcp install --no-package-lock --no-audit --no-fund

# agents has the real Claude Code and Codex, which it installs, work with the host and a
# mock of their model on this machine, and looks at what the model is sent. It downloads
# 250 MB, so CI plays the same scenarios with clients that treat results alike.
agents:
	npm --prefix internal/tools/agents install --no-package-lock --no-audit --no-fund
	TOOLHOST_AGENTS=1 go test -count=1 -timeout 30m -run 'TestAgents$$' ./host

bench: build peers
	go test -run "^$$" -bench . -skip Users -benchtime 20x ./bench
	go test -run "^$$" -bench Users -benchtime 3x ./bench
	go test -run "^$$" -bench ColdStart -benchtime 20x ./host/internal/plugin/process
	go test -run "^$$" -bench Proxy -benchtime 7x ./host/internal/plugin/process
	go test -run "^$$" -bench Scope/cold -benchtime 60x ./host/internal/plugin/supervisor
	go test -run "^$$" -bench Scope/warm -benchtime 4000x ./host/internal/plugin/supervisor
	go test -run "^$$" -bench . -benchtime 3x ./host/internal/state/journal
	go test -run "^$$" -bench Observe -benchtime 300x ./host/internal/call/pipeline
	go test -run "^$$" -bench Call ./host/internal/state/metrics
	go test -run "^$$" -bench "Decide|Parse|Commands|Covering" ./host/internal/config ./host/internal/decide/command ./host/internal/decide/policy ./host/internal/decide/approval
	go test -run "^$$" -bench . -benchtime 300x ./sdk/proc
	go test -run "^$$" -bench . -benchtime 100x ./plugins/memory
	test -z "$$TOOLHOST_LOCOMO" || go run ./bench/locomo
	go test -run "^$$" -bench . -benchtime 3x ./plugins/web

# generated compares the generated Go with what its source gives now.
generated:
	tmp=$$(mktemp -d) && cp -r proto/. $$tmp && \
	(cd internal/tools/protogen && go run . $$tmp toolplugin/v1/plugin.proto) && \
	diff -r proto $$tmp && rm -r $$tmp

# check is what CI runs.
check: build lint nested generated
	$(MAKE) race
	$(MAKE) rest
