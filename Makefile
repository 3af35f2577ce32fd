# Everything a person or CI does with this source. `make` alone lists it.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help first-node first-node-down build test tools lint test-unit test-lab

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
REPORT      := go run ./lab/cmd/test-report
# Looked for when it is needed, which is after `tools`.
RACE         = $(if $(shell command -v gcc),-race)
UNIT         = CGO_ENABLED=$(if $(RACE),1,0) go test -json $(RACE) -timeout 20m $$(go list ./... | grep -v /lab/ | grep -vE '$(SLOW)')
# A key is derived slowly on purpose, a release is compressed, and a launcher starts
# hundreds of programs: the race detector takes ten times as long over them. What they
# do at the same time is tested with it in the packages that they call; a launcher does
# nothing at the same time.
SLOW         = /(release/(cmd/mesh-release|internal/keys)|host/internal/launcher)$$
PLAIN        = go test -json -timeout 20m $$(go list ./... | grep -E '$(SLOW)')
# The binaries, beside the real tools, on real machines: one after the other, as
# each wants the computer to itself. In CI a test that cannot run fails;
# elsewhere it is skipped, with the reason.
LAB          = $(if $(filter true,$(CI)),NOX_REQUIRE_MACHINE=1) go test -json -count=1 -p 1 -timeout 40m -tags machine ./lab/... $(ENGINES)
# Kinds of resources beside the real engines and package managers, each in a root
# or on a socket of its own.
ENGINES      = ./host/internal/resource/container ./host/internal/resource/packages
# 8 GB in 64 MiB, which the race detector's own memory would hide.
LARGE        = go test -json -count=1 -tags machine -run T26T46 ./bundle

help: ## list what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

first-node: ## raise a first node from this source, without root, and leave it running
	@go run ./lab/cmd/mesh-lab up

first-node-down: ## end that node and remove all of it
	@go run ./lab/cmd/mesh-lab down

build: ## compile the three programs into ./bin
	CGO_ENABLED=0 go build -trimpath -o bin/ ./host/cmd/mesh-host ./controlplane/cmd/mesh-controller ./release/cmd/mesh-release

test: tools lint ## all that CI runs (as root: with real machines)
	@{ bad=0; $(UNIT) || bad=1; $(PLAIN) || bad=1; $(LARGE) || bad=1; $(LAB) || bad=1; exit $$bad; } | $(REPORT)

tools: ## install what the tests use (root on Debian), or say what is missing
	@lab/tools.sh

lint: ## gofmt, go vet, staticcheck
	@bad=$$(gofmt -l .); [ -z "$$bad" ] || { echo "not as gofmt writes it:" $$bad; exit 1; }
	go vet ./...
	go vet -tags machine ./...
	go run $(STATICCHECK) -tags machine ./...

test-unit: ## tests that any Linux user can run
	@{ bad=0; $(UNIT) || bad=1; $(PLAIN) || bad=1; exit $$bad; } | $(REPORT)

test-lab: ## journeys, oracles and machine tests (root for most)
	@$(LAB) | $(REPORT)
