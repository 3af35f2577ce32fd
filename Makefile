# Everything a person or CI does with this source. `make` alone lists it.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help first-node first-node-down build test tools lint test-unit test-machine

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
REPORT      := go run ./lab/cmd/test-report
# Looked for when it is needed, which is after `tools`.
RACE         = $(if $(shell command -v gcc),-race)
UNIT         = CGO_ENABLED=$(if $(RACE),1,0) go test -json $(RACE) ./...
# In CI a machine test that cannot run fails; elsewhere it is skipped.
MACHINE      = $(if $(filter true,$(CI)),NOX_REQUIRE_MACHINE=1) go test -json -count=1 -p 1 -timeout 25m -tags machine ./lab/machine ./lab/machinetest

help: ## list what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

first-node: ## raise a first node from this source, without root, and leave it running
	@go run ./lab/cmd/mesh-lab up

first-node-down: ## end that node and remove all of it
	@go run ./lab/cmd/mesh-lab down

build: ## compile the three programs into ./bin
	CGO_ENABLED=0 go build -trimpath -o bin/ ./host/cmd/mesh-host ./controlplane/cmd/mesh-controller ./release/cmd/mesh-release

test: tools lint ## all that CI runs (as root: with real machines)
	@{ bad=0; $(UNIT) || bad=1; $(MACHINE) || bad=1; exit $$bad; } | $(REPORT)

tools: ## install what the tests use (root on Debian), or say what is missing
	@lab/tools.sh

lint: ## gofmt, go vet, staticcheck
	@bad=$$(gofmt -l .); [ -z "$$bad" ] || { echo "not as gofmt writes it:" $$bad; exit 1; }
	go vet ./...
	go vet -tags machine ./...
	go run $(STATICCHECK) -tags machine ./...

test-unit: ## tests that any Linux user can run
	@$(UNIT) | $(REPORT)

test-machine: ## tests on real machines with systemd (root)
	@$(MACHINE) | $(REPORT)
